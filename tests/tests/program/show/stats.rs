//! What `--stats` says, against a twin that sorts and adds.

use serde_json::{Value, json};

use super::{Made, bytes, f32s, places};

/// The statistics of a document, against those of a list, found by sorting and adding.
fn assert_stats(stats: &Value, all: &[f64]) {
    let mut finite: Vec<f64> = all.iter().copied().filter(|value| value.is_finite()).collect();
    finite.sort_by(f64::total_cmp);
    let count = |is: fn(&f64) -> bool| json!(all.iter().filter(|value| is(value)).count());
    assert_eq!(stats["elements"], json!(all.len()));
    assert_eq!(stats["zeros"], count(|value| *value == 0.0));
    assert_eq!(stats["nan"], count(|value| value.is_nan()));
    assert_eq!(stats["positive_infinities"], count(|value| *value == f64::INFINITY));
    assert_eq!(stats["negative_infinities"], count(|value| *value == f64::NEG_INFINITY));
    let (Some(min), Some(max)) = (finite.first(), finite.last()) else {
        for key in ["min", "max", "mean", "std", "histogram"] {
            assert_eq!(stats[key], Value::Null);
        }
        return;
    };
    let number = |value: &Value| match value.as_bool() {
        Some(truth) => f64::from(u8::from(truth)),
        None => value.as_f64().unwrap(),
    };
    assert_eq!((number(&stats["min"]) as f32, number(&stats["max"]) as f32), (*min as f32, *max as f32));
    // Scaled, so that nothing overflows.
    let n = finite.len() as f64;
    let largest = max.abs().max(min.abs()).max(f64::MIN_POSITIVE);
    let mean = finite.iter().map(|value| value / largest).sum::<f64>() / n * largest;
    let std = finite.iter().map(|value| (value / largest - mean / largest).powi(2)).sum::<f64>();
    let std = (std / n).sqrt() * largest;
    let near = |found: &Value, expected: f64| (found.as_f64().unwrap() - expected).abs() <= 1e-11 * largest;
    assert!(near(&stats["mean"], mean), "{} {mean}", stats["mean"]);
    assert!(near(&stats["std"], std), "{} {std}", stats["std"]);

    let edges: Vec<f64> = stats["histogram"]["edges"]
        .as_array()
        .unwrap()
        .iter()
        .map(|edge| edge.as_f64().expect("an edge is a number"))
        .collect();
    assert!(edges.is_sorted_by(|one, other| one < other), "{edges:?}");
    // The largest f64 is below no edge: it is in the last bin.
    let below = |value: f64, edge: f64| value < edge || edge == f64::MAX;
    assert!(edges.len() <= 24 && edges[0] <= *min && below(*max, edges[edges.len() - 1]), "{edges:?}");
    let counts: Vec<usize> = edges
        .windows(2)
        .map(|bin| finite.iter().filter(|value| bin[0] <= **value && below(**value, bin[1])).count())
        .collect();
    assert!(counts[0] > 0 && counts[counts.len() - 1] > 0, "{counts:?}");
    assert_eq!(stats["histogram"]["counts"], json!(counts), "{edges:?}");
}

#[test]
fn statistics_are_those_of_a_naive_twin() {
    let wave = |count: usize, scale: f64, shift: f64| -> Vec<f64> {
        (0..count)
            .map(|place| ((place as f64 * 0.7).sin() + (place as f64 * 0.013).cos()) * scale + shift)
            .collect()
    };
    let mixed =
        [&wave(50, 1.0, 0.0)[..], &[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::INFINITY, 0.0, -0.0]]
            .concat();
    let outlier = [&wave(5000, 1e-3, 0.0)[..], &[1e6]].concat();
    let lists: Vec<Vec<f64>> = vec![
        vec![],
        vec![0.0],
        vec![-0.0, 0.0],
        vec![0.7, 0.7, 0.7],
        vec![-3.0],
        vec![f64::NAN],
        vec![f64::INFINITY, f64::NAN, f64::NEG_INFINITY],
        wave(10_000, 1.0, 0.0),
        wave(10_000, 1e-3, 1e6),
        wave(300, 1e-30, 0.0),
        wave(300, 1e30, 3e30),
        wave(5, 1.0, 0.0),
        vec![0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0],
        vec![1.0, 1.0 + f64::EPSILON, 1.0 + 2.0 * f64::EPSILON],
        mixed,
        outlier,
    ];
    let wide: Vec<Vec<f64>> = vec![
        vec![f64::MAX, f64::MIN],
        vec![-f64::MAX, f64::MAX, 1e308, 5e-324],
        vec![1e308, 1.7e308],
        vec![f64::MAX, f64::MAX, f64::MAX],
        vec![5e-324, 1e-323, 0.0],
        vec![-1e-310, 1e-310, 3e-309],
        vec![1e300, -1e-300, 0.0],
    ];
    let single = |list: &Vec<f64>| list.iter().map(|value| *value as f32).collect::<Vec<f32>>();
    let shapes: Vec<[u64; 1]> = lists.iter().chain(&wide).map(|list| [list.len() as u64]).collect();
    let names: Vec<String> = (0..shapes.len()).map(|place| place.to_string()).collect();
    let all = || lists.iter().chain(&wide);
    let doubles = Made::of(
        &all()
            .zip(&shapes)
            .zip(&names)
            .map(|((list, shape), name)| {
                (name.as_str(), "F64", &shape[..], bytes(list, |value| value.to_le_bytes()))
            })
            .collect::<Vec<_>>(),
    );
    let singles = Made::of(
        &lists
            .iter()
            .zip(&shapes)
            .zip(&names)
            .map(|((list, shape), name)| (name.as_str(), "F32", &shape[..], f32s(&single(list))))
            .collect::<Vec<_>>(),
    );
    for (list, name) in all().zip(&names) {
        assert_stats(&doubles.json(&[name, "--stats"])["stats"], list);
        doubles.show(&[name, "--stats"]).expect(0);
    }
    for (list, name) in lists.iter().zip(&names) {
        let list: Vec<f64> = single(list).into_iter().map(f64::from).collect();
        assert_stats(&singles.json(&[name, "--stats"])["stats"], &list);
    }
}

#[test]
fn statistics_of_integers_truth_values_complex_numbers_and_slices() {
    let longs = [i64::MIN, -5, 0, 7, i64::MAX];
    let odd = [u64::MAX, u64::MAX - 1, 0];
    let made = Made::of(&[
        ("u32", "U32", &[40, 50], places(&[40, 50])),
        ("i8", "I8", &[256], (0..=255).collect()),
        ("bool", "BOOL", &[5], vec![0, 1, 1, 0, 1]),
        ("true", "BOOL", &[2], vec![1, 1]),
        ("odd", "BOOL", &[4], vec![0, 2, 1, 255]),
        ("i64", "I64", &[5], bytes(&longs, |value| value.to_le_bytes())),
        ("u64", "U64", &[3], bytes(&odd, |value| value.to_le_bytes())),
        ("c", "C64", &[4], f32s(&[3.0, -4.0, 0.0, 0.0, f32::NAN, 1.0, 0.0, f32::NEG_INFINITY])),
        ("f6", "F6_E2M3", &[4], vec![0x48, 0xF0, 0x81]),
    ]);
    let stats = |arguments: &[&str]| made.json(&[arguments, &["--stats"]].concat())["stats"].clone();
    assert_stats(&stats(&["u32"]), &(0..2000).map(f64::from).collect::<Vec<_>>());
    assert_stats(&stats(&["i8"]), &(-128..128).map(f64::from).collect::<Vec<_>>());
    assert_stats(&stats(&["bool"]), &[0.0, 1.0, 1.0, 0.0, 1.0]);
    assert_stats(&stats(&["true"]), &[1.0, 1.0]);
    assert_stats(&stats(&["f6"]), &[1.0, 0.125, 7.5, -0.0]);
    // What is no truth value is counted, and takes part in nothing else.
    let found = stats(&["odd"]);
    assert_eq!((&found["elements"], &found["not_boolean"], &found["nan"]), (&json!(4), &json!(2), &json!(0)));
    assert_eq!((&found["min"], &found["max"], &found["mean"]), (&json!(false), &json!(true), &json!(0.5)));
    assert_eq!((&stats(&["bool"])["not_boolean"], &stats(&["i8"])["not_boolean"]), (&json!(0), &Value::Null));
    assert!(made.show(&["odd", "--stats"]).expect(0).contains("  not 0, 1  2 (50.0 %)\n"));
    assert_eq!((&stats(&["bool"])["min"], &stats(&["bool"])["max"]), (&json!(false), &json!(true)));
    // Longer than an f64, yet exact.
    let found = stats(&["i64"]);
    assert_eq!((&found["min"], &found["max"]), (&json!(i64::MIN), &json!(i64::MAX)));
    assert_eq!(found["mean"], json!(0.2));
    let found = stats(&["u64"]);
    assert_eq!((&found["min"], &found["max"]), (&json!(0), &json!(u64::MAX)));
    // Of complex numbers the magnitudes, which is said.
    let found = stats(&["c"]);
    assert_eq!(found["of"], "magnitudes");
    assert_stats(&found, &[5.0, 0.0, f64::NAN, f64::INFINITY]);
    assert!(made.show(&["c", "--stats"]).expect(0).contains("magnitudes"));
    assert_eq!(stats(&["i8"])["of"], "values");

    for (slice, rows, columns) in
        [("0", 0..1, 0..50), ("1:3,:", 1..3, 0..50), (":,-1", 0..40, 49..50), ("5:5", 5..5, 0..50)]
    {
        let expected: Vec<f64> = rows
            .flat_map(|row: u32| columns.clone().map(move |column: u32| f64::from(row * 50 + column)))
            .collect();
        assert_stats(&stats(&["u32", "--slice", slice]), &expected);
    }
}

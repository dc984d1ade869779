//! What `--slice` takes, against a twin that walks; and what it refuses.

use serde_json::{Value, json};

use super::{Made, Tensor, places};

/// The indices that Python takes of a dimension, found by walking; and whether the dimension stays.
fn taken(part: &str, dim: u64) -> (Vec<u64>, bool) {
    let pieces: Vec<&str> = part.split(':').collect();
    let number = |place: usize| pieces.get(place).and_then(|text| text.parse::<i64>().ok());
    let from_end = |index: i64| if index < 0 { index + dim as i64 } else { index };
    if pieces.len() == 1 {
        return (vec![from_end(number(0).unwrap()) as u64], false);
    }
    let (start, stop) = (number(0).map_or(0, from_end).max(0), number(1).map_or(dim as i64, from_end));
    let step = number(2).unwrap_or(1);
    let walk =
        (0..dim as i64).filter(|index| *index >= start && *index < stop && (index - start) % step == 0);
    (walk.map(|index| index as u64).collect(), true)
}

/// Lists in lists, as NumPy's `tolist`; without elements an empty list.
fn nested(shape: &[u64], parts: &[(Vec<u64>, bool)], first: u64) -> Value {
    let Some(((dim, rest), ((indices, keeps), parts))) = shape.split_first().zip(parts.split_first()) else {
        return json!(first);
    };
    let mut items = indices.iter().map(|index| {
        assert!(index < dim);
        nested(rest, parts, first + index * rest.iter().product::<u64>())
    });
    if *keeps { Value::Array(items.collect()) } else { items.next().unwrap() }
}

#[test]
fn slices_are_those_of_numpy() {
    let shapes: [&[u64]; 4] = [&[6], &[4, 5], &[3, 4, 5], &[2, 3, 2, 5]];
    let names = ["one", "two", "three", "four"];
    let tensors: Vec<Tensor<'_>> =
        names.iter().zip(shapes).map(|(name, shape)| (*name, "U32", shape, places(shape))).collect();
    let made = Made::of(&tensors);
    let choices = [
        ":", "0", "-1", "1", "0:2", "1:", ":-1", "::2", "1::2", "-3:", "-99:99", "::99", "2:1", "5:", "-1:",
        "-2:-1", "1:99:3", "0:0",
    ];
    let mut pick = 0_usize;
    for (name, shape) in names.iter().zip(shapes) {
        for round in 0..60 {
            let parts: Vec<&str> = (0..shape.len().min(1 + round % 4))
                .map(|_| {
                    pick =
                        pick.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    choices[(pick >> 33) % choices.len()]
                })
                .collect();
            let slice = parts.join(",");
            let whole = std::iter::repeat(&":");
            let all: Vec<(Vec<u64>, bool)> =
                parts.iter().chain(whole).zip(shape).map(|(part, dim)| taken(part, *dim)).collect();
            let dims: Vec<usize> =
                all.iter().filter(|(_, keeps)| *keeps).map(|(indices, _)| indices.len()).collect();
            let expected = if all.iter().any(|(indices, _)| indices.is_empty()) {
                json!([])
            } else {
                nested(shape, &all, 0)
            };
            let document = made.json(&[name, "--slice", &slice]);
            assert_eq!(document["slice_shape"], json!(dims), "{name} {slice}");
            assert_eq!(document["shape"], json!(shape), "{name} {slice}");
            assert_eq!(document["values"], expected, "{name} {slice}");
        }
    }
}

#[test]
fn slices_that_make_no_sense_are_wrong_usage() {
    let made = Made::of(&[("w", "U32", &[2, 3], places(&[2, 3])), ("s", "U8", &[], vec![7])]);
    let table = [
        ("w", "::-1", "expected a step of at least 1, found -1"),
        ("w", "::0", "expected a step of at least 1, found 0"),
        ("w", "", "expected an index or a range"),
        ("w", "0,", "expected an index or a range"),
        ("w", "x", "expected an integer, found x"),
        ("w", "\u{1b}[2J", "expected an integer, found "),
        ("w", "1:2:3:4", "expected at most start:stop:step"),
        ("w", "0,0,0", "the slice has 3 parts, and the tensor is of rank 2"),
        ("s", "0", "the slice has 1 part, and the tensor is of rank 0"),
        ("w", "2", "index 2 is out of range for dimension 0, which has size 2"),
        ("w", ":,-4", "index -4 is out of range for dimension 1, which has size 3"),
    ];
    for (name, slice, complaint) in table {
        let ran = made.show(&[name, "--slice", slice]);
        assert_eq!(ran.expect(2), "", "{slice}");
        assert!(ran.err.contains(complaint), "{slice}: {}", ran.err);
        assert!(!ran.err.contains('\u{1b}'), "{:?}", ran.err);
    }
    let ran = made.show(&["w", "--raw", "--stats"]);
    assert!(ran.expect(2).is_empty() && ran.err.contains("cannot be used with"), "{ran:?}");
}

//! What a person reads: small tables to the byte, and large ones of numbers that tell where they should stand.
//!
//! Where a table leaves things out, each number is the element's place in the tensor, so that it can be held against the
//! index at its row and column.

use super::{Made, Tensor, bytes, f32s, places};

#[test]
fn tables_to_the_byte() {
    let made = Made::of(&[
        ("scalar", "F32", &[], f32s(&[3.25])),
        ("matrix", "F32", &[2, 3], f32s(&[1.0, f32::NAN, f32::INFINITY, -0.0, 0.25, -1e-20])),
        (
            "vector",
            "I16",
            &[12],
            bytes(&[0_i16, 1, -2, 3, 4, 5, 6, 7, 8, 9, 10, -11], |value| value.to_le_bytes()),
        ),
        ("long", "U8", &[500], (0..500).map(|place| (place % 256) as u8).collect()),
        ("square", "U32", &[40, 60], places(&[40, 60])),
        ("cube", "U32", &[9, 2, 2], places(&[9, 2, 2])),
        ("empty", "F64", &[3, 0], Vec::new()),
        ("complex", "C64", &[2], f32s(&[1.5, -2.0, -10.0, 0.25])),
        ("evil\u{1b}[2J", "BOOL", &[2, 2], vec![0, 1, 1, 1]),
        ("odd", "BOOL", &[2, 2], vec![0, 1, 2, 255]),
        ("", "U8", &[1], vec![7]),
    ]);
    let table: &[(&[&str], &str)] = &[
        (&["scalar"], "scalar: F32 [], 1 parameter, 4 B\n\n  3.25\n"),
        (
            &["matrix"],
            "\
matrix: F32 [2, 3], 6 parameters, 24 B

        0     1       2
  0   1.0   NaN     inf
  1  -0.0  0.25  -1e-20
",
        ),
        (
            &["matrix", "--raw"],
            "\
matrix: F32 [2, 3], 6 parameters, 24 B
  codes     hexadecimal

            0         1         2
  0  3f800000  7fc00000  7f800000
  1  80000000  3e800000  9e3ce508
",
        ),
        (
            &["matrix", "--slice", "-1,::2"],
            "\
matrix: F32 [2, 3], 6 parameters, 24 B
  slice     [1, ::2], of shape [2]

  [0]  -0.0    -1e-20
",
        ),
        (
            &["vector"],
            "\
vector: I16 [12], 12 parameters, 24 B

  [0]    0    1   -2    3    4    5    6    7    8    9   10  -11
",
        ),
        (&["empty"], "empty: F64 [3, 0], 0 parameters, 0 B\n\n  no elements\n"),
        (
            &["vector", "-s", "5:2"],
            "vector: I16 [12], 12 parameters, 24 B\n  slice     [5:5], of shape [0]\n\n  no elements\n",
        ),
        (&["complex"], "complex: C64 [2], 2 parameters, 16 B\n\n  [0]    1.5-2.0i   -10.0+0.25i\n"),
        (
            &["evil\u{1b}[2J"],
            "\
evil\\u{1b}[2J: BOOL [2, 2], 4 parameters, 4 B

         0     1
  0  false  true
  1   true  true
",
        ),
        (
            &["odd"],
            "\
odd: BOOL [2, 2], 4 parameters, 4 B

         0     1
  0  false  true
  1     2!  255!

  BOOL is 0 or 1; the other bytes are marked with a !
",
        ),
        (
            &["odd", "--slice", "0"],
            "odd: BOOL [2, 2], 4 parameters, 4 B\n  slice     [0, :], of shape [2]\n\n  [0]  false   true\n",
        ),
        (&[""], "\"\": U8 [1], 1 parameter, 1 B\n\n  [0]  7\n"),
        (
            &["long"],
            "\
long: U8 [500], 500 parameters, 500 B

    [0]    0    1    2    3    4    5    6    7    8    9
   [10]   10   11   12   13   14   15   16   17   18   19
   [20]   20   21   22   23   24   25   26   27   28   29
   [30]   30   31   32   33   34   35   36   37   38   39
   [40]   40   41   42   43   44   45   46   47   48   49
      …  400 more values
  [450]  194  195  196  197  198  199  200  201  202  203
  [460]  204  205  206  207  208  209  210  211  212  213
  [470]  214  215  216  217  218  219  220  221  222  223
  [480]  224  225  226  227  228  229  230  231  232  233
  [490]  234  235  236  237  238  239  240  241  242  243
",
        ),
        (
            &["square"],
            "\
square: U32 [40, 60], 2.4 thousand parameters, 9.6 kB

         0     1     2     3     4     5  …    54    55    56    57    58    59
   0     0     1     2     3     4     5  …    54    55    56    57    58    59
   1    60    61    62    63    64    65  …   114   115   116   117   118   119
   2   120   121   122   123   124   125  …   174   175   176   177   178   179
   3   180   181   182   183   184   185  …   234   235   236   237   238   239
   4   240   241   242   243   244   245  …   294   295   296   297   298   299
   5   300   301   302   303   304   305  …   354   355   356   357   358   359
   6   360   361   362   363   364   365  …   414   415   416   417   418   419
   7   420   421   422   423   424   425  …   474   475   476   477   478   479
   …  24 more rows
  32  1920  1921  1922  1923  1924  1925  …  1974  1975  1976  1977  1978  1979
  33  1980  1981  1982  1983  1984  1985  …  2034  2035  2036  2037  2038  2039
  34  2040  2041  2042  2043  2044  2045  …  2094  2095  2096  2097  2098  2099
  35  2100  2101  2102  2103  2104  2105  …  2154  2155  2156  2157  2158  2159
  36  2160  2161  2162  2163  2164  2165  …  2214  2215  2216  2217  2218  2219
  37  2220  2221  2222  2223  2224  2225  …  2274  2275  2276  2277  2278  2279
  38  2280  2281  2282  2283  2284  2285  …  2334  2335  2336  2337  2338  2339
  39  2340  2341  2342  2343  2344  2345  …  2394  2395  2396  2397  2398  2399
",
        ),
        (
            &["cube", "--slice", ":,:,-1:"],
            "\
cube: U32 [9, 2, 2], 36 parameters, 144 B
  slice     [:, :, 1:2], of shape [9, 2, 1]

  [0, :, 1:2]
     1
  0  1
  1  3

  [1, :, 1:2]
     1
  0  5
  1  7

  …  5 more blocks

  [7, :, 1:2]
      1
  0  29
  1  31

  [8, :, 1:2]
      1
  0  33
  1  35
",
        ),
        (
            &["matrix", "--stats"],
            "\
matrix: F32 [2, 3], 6 parameters, 24 B

  values    6
  min       -1e-20
  max       1.0
  mean      0.3125
  std       0.40984
  zeros     1 (16.7 %)
  NaN       1 (16.7 %)
  inf       1 (16.7 %)
  -inf      0

   from  count
  -0.05      1  ████████████████████████████████████████████████████████████████
   0         1  ████████████████████████████████████████████████████████████████
   0.05      0
   0.1       0
   0.15      0
   0.2       0
   0.25      1  ████████████████████████████████████████████████████████████████
   0.3       0
   0.35      0
   0.4       0
   0.45      0
   0.5       0
   0.55      0
   0.6       0
   0.65      0
   0.7       0
   0.75      0
   0.8       0
   0.85      0
   0.9       0
   0.95      0
   1         1  ████████████████████████████████████████████████████████████████
",
        ),
    ];
    for (arguments, expected) in table {
        let ran = made.show(arguments);
        let out = ran.expect(0);
        assert_eq!(out, *expected, "{arguments:?}");
        assert_eq!(ran.err, "");
    }
}

/// Each number of a table is its own place in the tensor, so it tells whether row, column and title are right.
#[test]
fn every_number_stands_at_its_index() {
    let shapes: &[&[u64]] = &[
        &[1],
        &[7],
        &[321],
        &[5000],
        &[1, 1],
        &[3, 4],
        &[20, 48],
        &[21, 49],
        &[100, 1],
        &[1, 100],
        &[300, 300],
        &[2, 3, 4],
        &[7, 9, 50],
        &[3, 1, 5, 9],
        &[2, 2, 2, 2, 2, 2],
        &[1, 1, 1, 1, 3],
        &[4, 3, 2, 9, 3],
    ];
    let names: Vec<String> = shapes.iter().map(|shape| format!("{shape:?}")).collect();
    let tensors: Vec<Tensor<'_>> =
        names.iter().zip(shapes).map(|(name, shape)| (name.as_str(), "U32", *shape, places(shape))).collect();
    let made = Made::of(&tensors);
    let slices = [
        "",
        ":",
        "1:",
        "-1:",
        "::2",
        "-300:-1:3",
        "0",
        "-1",
        "0,:",
        "0,-1:",
        ":,0",
        ":,::3",
        "1:,1:",
        ":,:,1:",
        "0,:,0",
    ];
    let mut numbers = 0;
    for (name, shape) in names.iter().zip(shapes) {
        for slice in slices {
            let mut arguments = vec![name.as_str()];
            if !slice.is_empty() {
                arguments.extend(["--slice", slice]);
            }
            if slice.split(',').count() > shape.len() {
                made.show(&arguments).expect(2);
                continue;
            }
            let ran = made.show(&arguments);
            let out = ran.expect(0);
            assert!(out.lines().count() < 70, "{out}");
            assert!(out.lines().skip(1).all(|line| line.chars().count() <= 80), "{out}");
            numbers += right_numbers(out, shape, slice);
        }
    }
    assert!(numbers > 10_000, "{numbers}");
}

/// Asserts that all numbers of a table are right; counts them.
fn right_numbers(out: &str, shape: &[u64], slice: &str) -> usize {
    if out.ends_with("\n\n  no elements\n") {
        return 0;
    }
    // What the slice does to the dimensions: whether they stay, and the index and the step they have.
    let parts: Vec<&str> = if slice.is_empty() { Vec::new() } else { slice.split(',').collect() };
    let kept: Vec<usize> =
        (0..shape.len()).filter(|&axis| parts.get(axis).is_none_or(|part| part.contains(':'))).collect();
    let step = |axis: usize| {
        parts.get(axis).and_then(|part| part.split(':').nth(2)).map_or(1, |step| step.parse().unwrap())
    };
    let mut index: Vec<u64> = (0..shape.len())
        .map(|axis| match parts.get(axis) {
            Some(part) if !part.contains(':') => {
                part.parse::<i64>().unwrap().rem_euclid(shape[axis] as i64) as u64
            }
            _ => 0,
        })
        .collect();
    let place = |index: &[u64]| index.iter().zip(shape).fold(0, |place, (index, dim)| place * dim + index);
    let (mut columns, mut count): (Vec<Option<u64>>, usize) = (Vec::new(), 0);
    let body = out.split_once("\n\n").unwrap().1;
    let mut table_begins = kept.len() >= 2;
    for line in body.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.is_empty() {
            table_begins = true;
        } else if kept.len() > 2 && line.trim_start().starts_with('[') {
            let title = line.trim().trim_matches(['[', ']']);
            for (axis, text) in title.split(", ").enumerate() {
                if let Ok(at) = text.parse() {
                    index[axis] = at;
                }
            }
        } else if words[0] == "…" && line.ends_with(['s', 'e', 'w', 'k']) {
            assert_eq!(words[2], "more", "{line}");
        } else if table_begins && kept.len() >= 2 {
            columns = words.iter().map(|word| word.parse().ok()).collect();
            table_begins = false;
        } else if kept.is_empty() {
            assert_eq!(words, [place(&index).to_string()], "{out}");
            count += 1;
        } else if let [axis] = kept[..] {
            for (along, word) in words[1..].iter().enumerate() {
                index[axis] =
                    words[0].trim_matches(['[', ']']).parse::<u64>().unwrap() + along as u64 * step(axis);
                assert_eq!(*word, place(&index).to_string(), "{out}");
                count += 1;
            }
        } else {
            let [.., row, column] = kept[..] else { unreachable!() };
            index[row] = words[0].parse().unwrap();
            assert_eq!(words.len(), columns.len() + 1, "{out}");
            for (word, at) in words[1..].iter().zip(&columns) {
                match at {
                    None => assert_eq!(*word, "…"),
                    Some(at) => {
                        index[column] = *at;
                        assert_eq!(*word, place(&index).to_string(), "{out}");
                        count += 1;
                    }
                }
            }
        }
    }
    assert!(count > 0, "{out}");
    count
}

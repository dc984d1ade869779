//! `show`: the values of one tensor, for people as a table and for programs as one document; and statistics of them.
//!
//! Small outputs are compared to the byte. Where a table leaves things out, each number that it shows is the element's
//! place in the tensor, so that it can be held against the index at its row and column. Slices and statistics are held
//! against twins that walk and sort.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{collect, program, run, run_in, skipped};

/// A model of tensors with these names, dtypes, shapes and bytes, which belong together.
struct Made {
    directory: TempDir,
}

type Tensor<'t> = (&'t str, &'t str, &'t [u64], Vec<u8>);

const FILE: &str = "m.safetensors";

impl Made {
    fn of(tensors: &[Tensor<'_>]) -> Self {
        let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
        for (name, dtype, shape, bytes) in tensors {
            let begin = data.len();
            data.extend(bytes);
            let entry = json!({"dtype": dtype, "shape": shape, "data_offsets": [begin, data.len()]});
            header.insert((*name).to_string(), entry);
        }
        let header = serde_json::to_string(&header).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let bytes = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data].concat();
        fs::write(directory.path().join(FILE), bytes).unwrap();
        Self { directory }
    }

    fn show(&self, arguments: &[&str]) -> super::Ran {
        run_in(self.directory.path(), ["show", FILE].iter().chain(arguments))
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let ran = self.show(&[arguments, &["--json"]].concat());
        let out = ran.expect(0);
        assert_eq!(ran.err, "");
        assert_eq!(out.lines().count(), 1, "{out}");
        serde_json::from_str(out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }
}

fn bytes<const N: usize, T>(values: &[T], encode: impl Fn(&T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(encode).collect()
}

fn f32s(values: &[f32]) -> Vec<u8> {
    bytes(values, |value| value.to_le_bytes())
}

/// A tensor in which each element is its own place.
fn places(shape: &[u64]) -> Vec<u8> {
    (0..shape.iter().product::<u64>()).flat_map(|place| u32::try_from(place).unwrap().to_le_bytes()).collect()
}

/// The dtype, the bytes of four elements, their values and their codes. Worked out from the formats, by hand.
#[test]
fn every_dtype() {
    let two_two = |values: Value| {
        let mut values = values.as_array().unwrap().clone();
        json!([values.drain(..2).collect::<Vec<_>>(), values])
    };
    let table: Vec<(&str, Vec<u8>, Value, Value)> = vec![
        ("BOOL", vec![0, 1, 1, 0], json!([false, true, true, false]), json!([0, 1, 1, 0])),
        ("F4", vec![0x52, 0xF8], json!([1.0, 3.0, -0.0, -6.0]), json!([2, 5, 8, 15])),
        ("F6_E2M3", vec![0x48, 0xF0, 0x81], json!([1.0, 0.125, 7.5, -0.0]), json!([8, 1, 31, 32])),
        ("F6_E3M2", vec![0x4C, 0xF0, 0x81], json!([1.0, 0.0625, 28.0, -0.0]), json!([12, 1, 31, 32])),
        ("U8", vec![0, 1, 128, 255], json!([0, 1, 128, 255]), json!([0, 1, 128, 255])),
        ("I8", vec![0, 1, 128, 255], json!([0, 1, -128, -1]), json!([0, 1, 128, 255])),
        (
            "F8_E5M2",
            vec![0x3C, 0x80, 0xFC, 0x7F],
            json!([1.0, -0.0, "-Infinity", "NaN"]),
            json!([60, 128, 252, 127]),
        ),
        (
            "F8_E4M3",
            vec![0x38, 0x80, 0x7E, 0xFF],
            json!([1.0, -0.0, 448.0, "NaN"]),
            json!([56, 128, 126, 255]),
        ),
        (
            "F8_E8M0",
            vec![127, 128, 120, 255],
            json!([1.0, 2.0, 0.0078125, "NaN"]),
            json!([127, 128, 120, 255]),
        ),
        (
            "F8_E4M3FNUZ",
            vec![0x40, 0xC0, 0x7F, 0x80],
            json!([1.0, -1.0, 240.0, "NaN"]),
            json!([64, 192, 127, 128]),
        ),
        (
            "F8_E5M2FNUZ",
            vec![0x40, 0xC0, 0x7F, 0x80],
            json!([1.0, -1.0, 57344.0, "NaN"]),
            json!([64, 192, 127, 128]),
        ),
        (
            "I16",
            bytes(&[0, -1, i16::MIN, i16::MAX], |value: &i16| value.to_le_bytes()),
            json!([0, -1, -32768, 32767]),
            json!([0, 65535, 32768, 32767]),
        ),
        (
            "U16",
            bytes(&[0, 1, 32768, u16::MAX], |value| value.to_le_bytes()),
            json!([0, 1, 32768, 65535]),
            json!([0, 1, 32768, 65535]),
        ),
        (
            "F16",
            bytes(&[0x3C00_u16, 0x8000, 0x7BFF, 0x7C00], |code| code.to_le_bytes()),
            json!([1.0, -0.0, 65504.0, "Infinity"]),
            json!([0x3C00, 0x8000, 0x7BFF, 0x7C00]),
        ),
        (
            "BF16",
            bytes(&[0x3F80_u16, 0x8000, 0x3DCD, 0xFF80], |code| code.to_le_bytes()),
            json!([1.0, -0.0, 0.100097656, "-Infinity"]),
            json!([0x3F80, 0x8000, 0x3DCD, 0xFF80]),
        ),
        (
            "I32",
            bytes(&[0, -1, i32::MIN, i32::MAX], |value: &i32| value.to_le_bytes()),
            json!([0, -1, i32::MIN, i32::MAX]),
            json!([0, u32::MAX, 1_u32 << 31, i32::MAX]),
        ),
        (
            "U32",
            bytes(&[0, 1, 2, u32::MAX], |value| value.to_le_bytes()),
            json!([0, 1, 2, u32::MAX]),
            json!([0, 1, 2, u32::MAX]),
        ),
        (
            "F32",
            f32s(&[0.1, -0.0, f32::MAX, f32::NAN]),
            json!([0.1, -0.0, 3.4028235e38, "NaN"]),
            json!([0x3DCC_CCCD_u32, 1_u32 << 31, 0x7F7F_FFFF, 0x7FC0_0000]),
        ),
        (
            "C64",
            f32s(&[1.0, -2.0, 0.0, f32::INFINITY, f32::NAN, 0.5, -0.0, 0.1]),
            json!([[1.0, -2.0], [0.0, "Infinity"], ["NaN", 0.5], [-0.0, 0.1]]),
            json!([
                [0x3F80_0000, 0xC000_0000_u32],
                [0, 0x7F80_0000],
                [0x7FC0_0000, 0x3F00_0000],
                [1_u32 << 31, 0x3DCC_CCCD]
            ]),
        ),
        (
            "F64",
            bytes(&[0.1, -0.0, f64::MAX, f64::NEG_INFINITY], |value| value.to_le_bytes()),
            json!([0.1, -0.0, f64::MAX, "-Infinity"]),
            json!([0.1_f64.to_bits(), 1_u64 << 63, f64::MAX.to_bits(), f64::NEG_INFINITY.to_bits()]),
        ),
        (
            "I64",
            bytes(&[0, -1, i64::MIN, i64::MAX], |value: &i64| value.to_le_bytes()),
            json!([0, -1, i64::MIN, i64::MAX]),
            json!([0, u64::MAX, 1_u64 << 63, i64::MAX]),
        ),
        (
            "U64",
            bytes(&[0, 1, 1 << 63, u64::MAX], |value: &u64| value.to_le_bytes()),
            json!([0, 1, 1_u64 << 63, u64::MAX]),
            json!([0, 1, 1_u64 << 63, u64::MAX]),
        ),
    ];
    let known: Vec<&str> = safestep_tests::twin::dtypes::DTYPES.iter().map(|(name, _)| *name).collect();
    assert_eq!(table.iter().map(|(dtype, ..)| *dtype).collect::<Vec<_>>(), known);
    let tensors: Vec<Tensor<'_>> =
        table.iter().map(|(dtype, bytes, ..)| (*dtype, *dtype, &[2, 2][..], bytes.clone())).collect();
    let made = Made::of(&tensors);
    for (dtype, _, values, codes) in &table {
        let (values, codes) = (two_two(values.clone()), two_two(codes.clone()));
        let document = made.json(&[dtype]);
        let head = json!({"name": dtype, "dtype": dtype, "shape": [2, 2], "slice_shape": [2, 2]});
        let with = |key: &str, value: &Value| {
            let mut head = head.clone();
            head[key] = value.clone();
            // As text, for `==` takes -0.0 and 0.0 as the same.
            head.to_string()
        };
        assert_eq!(document.to_string(), with("values", &values));
        assert_eq!(made.json(&[dtype, "--raw"]).to_string(), with("codes", &codes));

        // One element in the middle of a byte, or of all.
        let one = made.json(&[dtype, "--slice", "1,0"]);
        assert_eq!(one["values"].to_string(), values[1][0].to_string(), "{dtype}");

        // People get each number, and of each code as many digits as there can be.
        let ran = made.show(&[dtype]);
        assert_eq!(ran.expect(0).lines().count(), 5, "{}", ran.out);
        let ran = made.show(&[dtype, "--raw"]);
        let row = ran.expect(0).lines().last().unwrap();
        let bits = safestep_tests::twin::dtypes::bits(dtype).unwrap();
        let texts: Vec<&str> = row.split_whitespace().skip(1).collect();
        let digits = if *dtype == "C64" { 8 } else { bits.div_ceil(4) as usize };
        assert!(texts.iter().all(|text| text.len() == digits), "{dtype}: {row}");
        let code = u64::from_str_radix(texts.last().unwrap(), 16).unwrap();
        let last = if *dtype == "C64" { &codes[1][1][1] } else { &codes[1][1] };
        assert_eq!(last.as_u64(), Some(code), "{dtype}");
        made.show(&[dtype, "--stats"]).expect(0);
    }
}

#[test]
fn floats_read_back_as_the_same() {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let singles: Vec<f32> = (0..20_000).map(|_| f32::from_bits(random() as u32)).collect();
    let doubles: Vec<f64> = (0..20_000).map(|_| f64::from_bits(random())).collect();
    let made = Made::of(&[
        ("f32", "F32", &[20_000], f32s(&singles)),
        ("f64", "F64", &[20_000], bytes(&doubles, |value| value.to_le_bytes())),
    ]);
    // The texts themselves: a JSON library may round as it likes.
    let texts = |name: &str| {
        let ran = made.show(&[name, "--json"]);
        let list = ran.expect(0).split("\"values\":[").nth(1).unwrap().strip_suffix("]}\n").unwrap();
        list.split(',').map(|text| text.trim_matches('"').to_string()).collect::<Vec<_>>()
    };
    for (text, value) in texts("f32").iter().zip(&singles) {
        let read: f32 = text.parse().unwrap();
        assert!(read.to_bits() == value.to_bits() || read.is_nan() && value.is_nan(), "{text} {value}");
    }
    for (text, value) in texts("f64").iter().zip(&doubles) {
        let read: f64 = text.parse().unwrap();
        assert!(read.to_bits() == value.to_bits() || read.is_nan() && value.is_nan(), "{text} {value}");
    }
}

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

         0     1     2     3     4     5  …    55    56    57    58    59
   0     0     1     2     3     4     5  …    55    56    57    58    59
   1    60    61    62    63    64    65  …   115   116   117   118   119
   2   120   121   122   123   124   125  …   175   176   177   178   179
   3   180   181   182   183   184   185  …   235   236   237   238   239
   4   240   241   242   243   244   245  …   295   296   297   298   299
   5   300   301   302   303   304   305  …   355   356   357   358   359
   6   360   361   362   363   364   365  …   415   416   417   418   419
   7   420   421   422   423   424   425  …   475   476   477   478   479
   …  24 more rows
  32  1920  1921  1922  1923  1924  1925  …  1975  1976  1977  1978  1979
  33  1980  1981  1982  1983  1984  1985  …  2035  2036  2037  2038  2039
  34  2040  2041  2042  2043  2044  2045  …  2095  2096  2097  2098  2099
  35  2100  2101  2102  2103  2104  2105  …  2155  2156  2157  2158  2159
  36  2160  2161  2162  2163  2164  2165  …  2215  2216  2217  2218  2219
  37  2220  2221  2222  2223  2224  2225  …  2275  2276  2277  2278  2279
  38  2280  2281  2282  2283  2284  2285  …  2335  2336  2337  2338  2339
  39  2340  2341  2342  2343  2344  2345  …  2395  2396  2397  2398  2399
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
  std       0.409649
  zeros     1 (16.7 %)
  NaN       1 (16.7 %)
  inf       1 (16.7 %)
  -inf      0

   from  count
  -0.05      1  ████████████████████████████████
   0         1  ████████████████████████████████
   0.05      0
   0.1       0
   0.15      0
   0.2       0
   0.25      1  ████████████████████████████████
   0.3       0
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
        .map(|edge| match edge.as_str() {
            Some(text) => text.replace("Infinity", "inf").parse().unwrap(),
            None => edge.as_f64().unwrap(),
        })
        .collect();
    assert!(edges.is_sorted_by(|one, other| one < other), "{edges:?}");
    assert!(edges.len() <= 24 && edges[0] <= *min && *max < edges[edges.len() - 1], "{edges:?}");
    let counts: Vec<usize> = edges
        .windows(2)
        .map(|bin| finite.iter().filter(|value| bin[0] <= **value && **value < bin[1]).count())
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

#[test]
fn a_name_that_is_not_there() {
    let made = Made::of(&[
        ("h.0.weight", "U8", &[1], vec![1]),
        ("h.0.bias", "U8", &[1], vec![1]),
        ("evil\u{1b}[2J", "U8", &[1], vec![1]),
        ("", "U8", &[1], vec![1]),
    ]);
    let table = [
        ("h.0.wieght", "m.safetensors has no tensor \"h.0.wieght\"; did you mean \"h.0.weight\"?\n"),
        ("bias", "m.safetensors has no tensor \"bias\"; did you mean \"h.0.bias\"?\n"),
        ("H.0", "m.safetensors has no tensor \"H.0\"; did you mean \"h.0.bias\" or \"h.0.weight\"?\n"),
        ("evil", "m.safetensors has no tensor \"evil\"; did you mean \"evil\\u{1b}[2J\"?\n"),
        ("\u{9b}31m", "m.safetensors has no tensor \"\\u{9b}31m\"; 'safestep inspect' lists what it has\n"),
    ];
    for (name, complaint) in table {
        let ran = made.show(&[name]);
        assert_eq!(ran.expect(2), "", "{name}");
        assert_eq!(ran.err, format!("safestep: {complaint}"));
    }
    // The empty name is one.
    made.show(&[""]).expect(0);
    let ran = run(["show", "reference/empty.safetensors", "w"]);
    assert!(ran.expect(2).is_empty() && ran.err.ends_with("has no tensor \"w\"; it has none\n"), "{ran:?}");
}

#[test]
fn files_that_are_bad_or_cannot_be_read() {
    let ran = run(["show", "rules/r1_short_one.safetensors", "w"]);
    assert_eq!(ran.expect(1), "");
    assert!(ran.err.starts_with("rules/r1_short_one.safetensors: R1.short at byte 1: "), "{ran:?}");
    for file in ["none", "reference"] {
        let ran = run(["show", file, "w"]);
        assert_eq!(ran.expect(3), "");
        assert!(ran.err.starts_with("safestep: cannot open "), "{ran:?}");
    }
}

/// A model of one tensor of 100 GB, which takes no room on the disk.
fn huge(directory: &Path, shape: &str) -> bool {
    const LEN: u64 = 100_000_000_000;
    let path = directory.join(FILE);
    if fs::File::create(&path).and_then(|file| file.set_len(LEN)).is_err() {
        skipped("the file system has no files of 100 GB");
        return false;
    }
    let header = format!("{{\"w\":{{\"dtype\":\"U8\",\"shape\":{shape},\"data_offsets\":[0,{LEN}]}}}}");
    let header = format!("{header:width$}", width = header.len().next_multiple_of(8));
    fs::write(&path, [&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat()).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(8 + header.len() as u64 + LEN).unwrap();
    true
}

#[test]
fn of_100_gigabytes_only_what_is_shown_is_read() {
    let directory = tempfile::tempdir().unwrap();
    if !huge(directory.path(), "[1000, 100, 1000000]") {
        return;
    }
    let table: &[&[&str]] = &[
        &[],
        &["--raw"],
        &["--slice", "-1"],
        &["--slice", ":,5,::1000"],
        &["--json", "--slice", ":,-1,0"],
        &["--json", "--slice", "::10,::10,::100000"],
        &["--stats", "--slice", "7,::9,:1000"],
        &["--stats", "--slice", ":,3,:2"],
    ];
    for arguments in table {
        let began = Instant::now();
        let ran = run_in(directory.path(), ["show", FILE, "w"].iter().chain(*arguments));
        assert!(!ran.expect(0).is_empty());
        assert!(began.elapsed() < Duration::from_secs(5), "{arguments:?}: {:?}", began.elapsed());
    }
}

#[test]
fn an_interrupt_ends_statistics() {
    let directory = tempfile::tempdir().unwrap();
    if !huge(directory.path(), "[100000000000]") {
        return;
    }
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        // A signal that comes before the program is ready for it ends it as any other.
        let ran = (1..=10).map(|patience: u64| {
            let mut command = program();
            command.current_dir(directory.path()).args(["show", FILE, "w", "--stats"]);
            let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            thread::sleep(Duration::from_millis(100 * patience));
            Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap();
            collect(child)
        });
        let ran = ran.into_iter().find(|ran| ran.status.code().is_some()).unwrap();
        assert_eq!(ran.expect(code), "");
        assert_eq!(ran.err, "safestep: interrupted; nothing was changed\n");
    }
}

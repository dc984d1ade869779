//! The twin against a table written by hand: the sign `§` stands in each header where the break or note is to be.

use super::{Break, Model, Options, judge};

fn file(header: &[u8], data_len: u64) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header);
    bytes.resize(bytes.len() + usize::try_from(data_len).unwrap(), 0);
    bytes
}

fn judge_header(header: &str, data_len: u64) -> Result<Model, Break> {
    let bytes = file(header.as_bytes(), data_len);
    judge(&bytes, bytes.len() as u64, &Options::default())
}

/// The offset of `§` in the file, and the header without it.
fn marked(header: &str) -> (u64, String) {
    let at = header.find('§').unwrap_or_else(|| panic!("no mark in {header}"));
    (8 + at as u64, header.replace('§', ""))
}

fn check(header: &str, data_len: u64, rule: &'static str, tensor: Option<&str>) {
    let (offset, plain) = marked(header);
    let expected = Break { rule, offset, tensor: tensor.map(str::to_owned) };
    assert_eq!(judge_header(&plain, data_len), Err(expected), "{header}");
}

fn bad(rule: &'static str, cases: &[(&str, Option<&str>)]) {
    for (header, tensor) in cases {
        check(header, 4, rule, *tensor);
    }
}

#[test]
fn frames() {
    let verdict = |bytes: &[u8], file_len, header_bytes_max| {
        let options = Options { header_bytes_max, dtypes: None };
        judge(bytes, file_len, &options).map_err(|found| (found.rule, found.offset, found.tensor))
    };
    for len in 0..8 {
        assert_eq!(verdict(&[0; 8], len, 100).unwrap_err(), ("R1.short", len, None));
    }
    let good = file(b"{}", 0);
    assert_eq!(verdict(&good, 10, 1).unwrap_err(), ("R1.too_large", 0, None));
    assert!(verdict(&good, 10, 2).is_ok());
    assert_eq!(verdict(&good, 9, 2).unwrap_err(), ("R1.past_end", 0, None));
    assert_eq!(verdict(&[0xff; 9], 9, u64::MAX).unwrap_err(), ("R1.past_end", 0, None));
    assert_eq!(verdict(&[0xff; 9], 9, u64::MAX - 1).unwrap_err(), ("R1.too_large", 0, None));
    assert_eq!(verdict(&file(b"", 0), 8, 2).unwrap_err(), ("R2.start", 8, None));
}

#[test]
fn starts_and_encodings() {
    bad("R2.start", &[("§ {}", None), ("§\u{feff}{}", None), ("§[]", None), ("§\"\"", None)]);
    for (bytes, offset) in [
        (&b"{\"\xff\":1"[..], 10),
        (b"{} \x80", 11),
        (b"{\xed\xa0\x80", 9),
        (b"{\xc3", 9),
        (b"{\"\xc3\"}", 10),
    ] {
        let bytes = file(bytes, 0);
        let found = judge(&bytes, bytes.len() as u64, &Options::default()).unwrap_err();
        assert_eq!(found, Break { rule: "R2.utf8", offset, tensor: None });
    }
}

#[test]
fn texts_that_are_no_json() {
    let plain = [
        "{§",
        "{\"§",
        "{\"a\"§",
        "{\"a\":§",
        "{\"a\":1§",
        "{\"a\":[§",
        "{\"a\":[1§",
        "{\"a\":[1,§",
        "{§,}",
        "{§]",
        "{§1:2}",
        "{\"a\"§,",
        "{\"a\"§1",
        "{\"a\":1§ §",
        "{\"a\":1,§}",
        "{\"a\":[1,§]}",
        "{\"a\":[§,1]}",
        "{\"a\":1§\"b\":2}",
        "{\"a\":[1§:2]}",
        "{\"a\":[1§}",
        "{\"a\":[[]§}",
    ];
    let numbers = [
        "0§1",
        "-§",
        "-§x",
        "-0§0",
        "1.§",
        "1.§e1",
        "1e§",
        "1e+§",
        "1e§x",
        "§+1",
        "§.5",
        "1§x",
        "0§x1",
        "1.5§.5",
        "1e5§e",
        "§NaN",
        "-§Infinity",
        "-§-1",
        "1§_0",
    ];
    let literals = ["t§", "tru§", "tru§x", "nul§L", "§True", "f§", "false§s", "null§null", "§undefined"];
    let strings = [
        "\"§\n\"",
        "\"§\u{0}\"",
        "\"§\u{1f}\"",
        "\"\u{7f}§",
        "\"\\\\§",
        "\"\\§",
        "\"\\u§",
        "\"\\u1§",
        "\"\\u123§",
        "\"§\\x\"",
        "\"§\\'\"",
        "\"§\\U0041\"",
        "\"§\\u12G4\"",
        "\"§\\uG",
        "\"§\\u123\"",
        "\"§\\u+123\"",
        "\"§\\é\"",
        "\"§\\u\u{e9}000\"",
    ];
    let surrogates = [
        "\"§\\udc00\"",
        "\"§\\udfff\\ud800\"",
        "\"\\ud800§",
        "\"\\ud800\\§",
        "\"\\ud800\\u§",
        "\"\\ud800\\udc0§",
        "\"§\\ud800\"",
        "\"§\\ud800x",
        "\"§\\ud800\\n\"",
        "\"§\\ud800\\x\"",
        "\"§\\ud800\\\"\"",
        "\"\\ud800§\\uzzzz\"",
        "\"\\ud800§\\u00\"",
        "\"§\\ud800\\u0041\"",
        "\"§\\ud800\\ud800\\udc00\"",
        "\"§\\uDBFF\\uE000\"",
    ];
    for header in plain {
        bad("R2.json", &[(&header.replacen("§ §", " §", 1), None)]);
    }
    for value in numbers.iter().chain(&literals).chain(&strings).chain(&surrogates) {
        bad("R2.json", &[(&format!("{{\"a\":{value}"), None)]);
    }
    for key in strings.iter().chain(&surrogates) {
        bad("R2.json", &[(&format!("{{\"a\":{{\"b\":{{}},{key}"), None)]);
    }
}

#[test]
fn depth() {
    let nested = |depth: usize, mark: &str| {
        format!("{{\"a\":{}{mark}{}{}}}", "[".repeat(126), "[".repeat(depth - 127), "]".repeat(depth - 1))
    };
    bad("R4.field", &[(&nested(127, "").replacen('[', "§[", 1), Some("a"))]);
    bad("R2.json", &[(&nested(128, "§"), None), (&nested(200, "§"), None)]);
    let objects = format!("{{{}\"a\":§{{", "\"a\":{".repeat(126));
    bad("R2.json", &[(&objects, None)]);
}

#[test]
fn verdicts_on_the_top_level() {
    let trailing =
        ["{}§x", "{}  §}", "{} \n\t\r§{}", "{}§\0", "{}§\u{a0}", "{\"a\":1}§,", "{}§\u{c}", "{}§\u{feff}"];
    for header in trailing {
        bad("R2.trailing", &[(header, None)]);
    }
    bad(
        "R2.duplicate",
        &[
            (r#"{"a":1,§"a":1}"#, Some("a")),
            (r#"{"a":1,"b":2,§"\u0061":1,"b":3}"#, Some("a")),
            (r#"{"":1,"b":2,§"":1}"#, Some("")),
            (r#"{"/":1,§"\/":1}"#, Some("/")),
            (r#"{"😀":1,§"\ud83d\uDE00":1}"#, Some("😀")),
            (r#"{"__metadata__":null,§"__metadata__":null}"#, Some("__metadata__")),
            (r#"{"__metadata__":[],§"__metad\u0061ta__":{"a":1,"a":2}}"#, Some("__metadata__")),
            (r#"{"__metadata__":{"k":1,§"k":2}}"#, Some("k")),
            (r#"{"__metadata__":{"k":1,"l":2,§"l":2},"__metadata__":{}}"#, Some("l")),
            (r#"{"a":{"dtype":1,§"dtype":2}}"#, Some("a")),
            (r#"{"a":{"zz":1,"z":2,§"\u007az":2}}"#, Some("a")),
            (r#"{"a":{"zz":1,§"zz":2},"a":{}}"#, Some("a")),
            // Deeper scopes are nobody's business.
            (
                r#"{"a":{"z":{"b":1,"b":2},"y":[{"b":1,"b":2}]},"__metadata__":{"x":{"b":1,"b":2}},§"a":1}"#,
                Some("a"),
            ),
        ],
    );
    bad(
        "R4.field",
        &[(r#"{"a":{§"z":{"b":1,"b":2}}}"#, Some("a")), (r#"{"a":§[{"b":1,"b":2}]}"#, Some("a"))],
    );
    bad(
        "R3.metadata",
        &[
            (r#"{"__metadata__":§[]}"#, Some("__metadata__")),
            (r#"{"a":1,"__metadata__":§"x"}"#, Some("__metadata__")),
            (r#"{"__\u006detadata__":§false}"#, Some("__metadata__")),
            (r#"{"__metadata__":{"a":"","b":§null,"c":1}}"#, Some("b")),
            (r#"{"__metadata__":{"":§{}}}"#, Some("")),
        ],
    );
}

#[test]
fn verdicts_on_entries() {
    let with = |fields: &str| format!("{{\"a\":{{{fields}}}}}");
    let fields = [
        (r#"{"a":§null}"#, "a"),
        (r#"{"a":§["F32",[1],[0,4]]}"#, "a"),
        (r#"{"a":{§}}"#, "a"),
        (r#"{"a":{"dtype":1,"shape":2 §}}"#, "a"),
        (r#"{"a":{"dtype":1,"shape":2,§"Shape":2}}"#, "a"),
        (r#"{"a":{§"x":1,"dtype":1,"shape":2,"data_offsets":3}}"#, "a"),
        (r#"{"b":{"dtype":1,"shape":2,"data_offs\u0065ts":3},"a":§3}"#, "a"),
        (r#"{"\u0000":§3}"#, "\0"),
        (r#"{"__metadata":§null}"#, "__metadata"),
    ];
    for (header, tensor) in fields {
        bad("R4.field", &[(header, Some(tensor))]);
    }
    for dtype in ["null", "\"f32\"", "\"F32 \"", "\"\"", "{\"F32\":null}", "[\"F32\"]", "22", "\"F8\""] {
        bad("R4.dtype", &[(&with(&format!("\"data_offsets\":0,\"dtype\":§{dtype},\"shape\":0")), Some("a"))]);
    }
    for shape in [
        "§null",
        "§3",
        "§{}",
        "§\"\"",
        "[1,§1.0]",
        "[§1e3]",
        "[§-0]",
        "[§-1]",
        "[§\"1\"]",
        "[0,§[1]]",
        "[§true]",
    ] {
        bad(
            "R4.shape",
            &[(&with(&format!("\"data_offsets\":0,\"dtype\":\"U8\",\"shape\":{shape}")), Some("a"))],
        );
    }
    bad(
        "R4.shape",
        &[(&with(r#""shape":[§18446744073709551616],"dtype":"U8","data_offsets":[]"#), Some("a"))],
    );
    for offsets in [
        "§null",
        "§{}",
        "[§]",
        "[0 §]",
        "[0,4,§4]",
        "[§1.0]",
        "[§-0,x]",
        "[0,§null,1]",
        "[5,§4,3]",
        "[5,§-0,3]",
        "[0,§1e1]",
        "[§[],0]",
        "[0,4,§5,6,7]",
        "[1,§0]",
        "[0,§18446744073709551616]",
    ] {
        let offsets = offsets.replace("-0,x", "-0,\"x\"");
        bad(
            "R4.offsets",
            &[(&with(&format!("\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":{offsets}")), Some("a"))],
        );
    }
}

#[test]
fn verdicts_on_sizes() {
    let entry = |dtype: &str, shape: &str, end: &str| {
        format!("{{\"a\":{{\"dtype\":\"{dtype}\",\"shape\":{shape},\"data_offsets\":{end}}}}}")
    };
    for (dtype, shape) in [
        ("U8", "§[18446744073709551615]"),
        ("F64", "§[288230376151711744]"),
        ("F4", "§[4294967296,4294967296,0]"),
        ("U8", "§[9223372036854775808,2,0]"),
        ("F4", "§[4611686018427387904]"),
    ] {
        bad("R4.overflow", &[(&entry(dtype, shape, "[0,1]"), Some("a"))]);
    }
    for (dtype, shape) in [("F4", "§[]"), ("F4", "§[3,5]"), ("F6_E2M3", "§[2]"), ("F6_E3M2", "§[2,3]")] {
        bad("R4.bits", &[(&entry(dtype, shape, "[0,1]"), Some("a"))]);
    }
    for (dtype, shape, end) in [
        ("F32", "[1]", "§[0,3]"),
        ("F32", "[]", "§[0,5]"),
        ("F4", "[2]", "§[0,2]"),
        ("U8", "[0,9223372036854775808,2]", "§[0,1]"),
    ] {
        bad("R4.size", &[(&entry(dtype, shape, end), Some("a"))]);
    }
}

#[test]
fn verdicts_on_tiling() {
    /// A name, a size and the spelled offsets.
    type Row<'a> = (&'a str, u64, &'a str);
    fn header(tensors: &[Row<'_>]) -> String {
        let entries: Vec<String> = tensors
            .iter()
            .map(|(name, size, offsets)| {
                format!("\"{name}\":{{\"dtype\":\"U8\",\"shape\":[{size}],\"data_offsets\":{offsets}}}")
            })
            .collect();
        format!("{{{}}}", entries.join(","))
    }
    let tiling: [(&str, &[Row<'_>], &str); 7] = [
        ("R5.gap", &[("a", 4, "§[1,5]")], "a"),
        ("R5.gap", &[("a", 1, "§[3,4]"), ("b", 2, "[0,2]")], "a"),
        ("R5.overlap", &[("a", 2, "§[1,3]"), ("b", 2, "[0,2]")], "a"),
        ("R5.overlap", &[("a", 2, "[0,2]"), ("b", 2, "§[0,2]")], "b"),
        ("R5.overlap", &[("a", 2, "[0,2]"), ("b", 0, "§[1,1]")], "b"),
        // The gap stands first in the header, the overlap in the data.
        ("R5.overlap", &[("a", 1, "[9,10]"), ("b", 2, "[0,2]"), ("c", 2, "§[1,3]")], "c"),
        ("R5.gap", &[("a", 2, "[7,9]"), ("b", 2, "§[6,8]"), ("c", 2, "[0,2]")], "b"),
    ];
    for (rule, tensors, tensor) in tiling {
        bad(rule, &[(&header(tensors), Some(tensor))]);
    }
    let surplus = |text: &str| judge_header(text, 5).unwrap_err();
    let header = header(&[("a", 1, "[3,4]"), ("b", 3, "[0,3]")]);
    let end = 8 + header.len() as u64;
    assert_eq!(surplus(&header), Break { rule: "R5.surplus", offset: end + 4, tensor: None });
    assert_eq!(surplus("{}"), Break { rule: "R5.surplus", offset: 10, tensor: None });
    let short = judge_header(&header, 3).unwrap_err();
    assert_eq!(short, Break { rule: "R5.past_end", offset: end + 3, tensor: Some("a".into()) });
}

#[test]
fn earlier_rules_win_wherever_they_stand() {
    // Each header breaks the rules from one on to the last; dropping the first break leaves the next.
    let parts = [
        ("R2.trailing", "", "x"),
        ("R2.duplicate", r#","z":0,"z":1"#, ""),
        ("R3.metadata", r#","__metadata__":0"#, ""),
        ("R4.field", r#","y":0"#, ""),
        ("R4.dtype", r#","x":{"dtype":0,"shape":0,"data_offsets":0}"#, ""),
        ("R4.shape", r#","w":{"dtype":"U8","shape":0,"data_offsets":0}"#, ""),
        ("R4.offsets", r#","v":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":0}"#, ""),
        ("R4.overflow", r#","u":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,1]}"#, ""),
        ("R4.bits", r#","t":{"dtype":"F4","shape":[3],"data_offsets":[0,1]}"#, ""),
        ("R4.size", r#","s":{"dtype":"U8","shape":[3],"data_offsets":[9,10]}"#, ""),
        ("R5.gap", r#","r":{"dtype":"U8","shape":[3],"data_offsets":[90,93]}"#, ""),
        ("R5.surplus", "", ""),
    ];
    for (first, (rule, _, _)) in parts.iter().enumerate() {
        let entries: String = parts[first..].iter().rev().map(|(_, entry, _)| *entry).collect();
        let after: String = parts[first..].iter().map(|(_, _, after)| *after).collect();
        let header = format!("{{{}}}{after}", entries.trim_start_matches(','));
        assert_eq!(judge_header(&header, 4).unwrap_err().rule, *rule, "{header}");
    }
}

#[test]
fn callers_can_narrow_the_dtypes() {
    let header = br#"{"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}"#;
    let bytes = file(header, 1);
    let with = |dtypes: &[&str]| {
        let dtypes = Some(dtypes.iter().map(|name| (*name).to_owned()).collect());
        judge(&bytes, bytes.len() as u64, &Options { dtypes, ..Options::default() })
    };
    assert!(with(&["F32", "U8"]).is_ok());
    assert_eq!(with(&["F32"]), Err(Break { rule: "R4.dtype", offset: 22, tensor: Some("a".into()) }));
    assert!(with(&[]).is_err());
}

#[test]
fn notes() {
    let cases = [
        ("note.header_length", r"{}", None, 0),
        ("note.padding", "{} §\n \t\r   ", None, 3),
        ("note.null_metadata", r#"{"__metadata__":§null}  "#, None, 1),
        (
            "note.alignment",
            r#"{"a":{"dtype":"I16","shape":[],"data_offsets":[0,2]},"b":{"dtype":"F32","shape":[0],"data_offsets":[2,2]},"c":{"dtype":"F32","shape":[],"data_offsets":§[2,6]}}"#,
            Some("c"),
            1,
        ),
        (
            "note.order",
            r#"{"b":{"dtype":"U8","shape":[],"data_offsets":[0,1]},§"a":{"dtype":"U8","shape":[],"data_offsets":[1,2]}}"#,
            Some("a"),
            1,
        ),
        (
            "note.order",
            r#"{"a":{"dtype":"U8","shape":[],"data_offsets":[1,2]},§"b":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}"#,
            Some("b"),
            1,
        ),
        (
            "note.order",
            r#"{"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]},§"b":{"dtype":"I8","shape":[],"data_offsets":[1,2]}}"#,
            Some("b"),
            1,
        ),
        (
            "note.name",
            r#"{§"":{"dtype":"U8","shape":[],"data_offsets":[0,1]},"a\u0085":{"dtype":"U8","shape":[],"data_offsets":[1,2]}}"#,
            Some(""),
            2,
        ),
        ("note.rows", r#"{"a":{"dtype":"F4","shape":§[2,3],"data_offsets":[0,3]}}"#, Some("a"), 1),
    ];
    for (id, header, tensor, count) in cases {
        let (offset, plain) = if count == 0 { (0, header.to_owned()) } else { marked(header) };
        let padded_len = plain.len().next_multiple_of(if count == 0 { 1 } else { 8 });
        let plain = format!("{plain:<padded_len$}");
        let ends = plain.split("\"data_offsets\":[").skip(1).map(|tail| {
            let (_, end) = tail.split_once(']').unwrap().0.split_once(',').unwrap();
            end.parse().unwrap()
        });
        let data_len = ends.max().unwrap_or(0);
        let model = judge_header(&plain, data_len).unwrap();
        let note =
            model.notes.iter().find(|note| note.id == id).unwrap_or_else(|| panic!("{id} on {header}"));
        assert_eq!(
            (note.offset, note.tensor.as_deref(), note.count),
            (offset, tensor, count.max(1)),
            "{header}"
        );
        // Two bytes of I16 before an F32 are in no writer's order.
        let others = usize::from(id == "note.alignment");
        assert_eq!(model.notes.len(), 1 + others, "{header}");
    }
}

#[test]
fn a_good_file() {
    let header = r#"{"__metadata__":{"k":"v"},"a":{"dtype":"F16","shape":[2,1],"data_offsets":[0,4]}}"#;
    let header = format!("{header:<88}");
    let model = judge_header(&header, 4).unwrap();
    assert_eq!((model.header_len, model.data_len, model.null_metadata), (88, 4, false));
    assert_eq!(model.metadata, Some(vec![("k".to_owned(), "v".to_owned())]));
    let tensor = &model.tensors[0];
    assert_eq!(
        (tensor.name.as_str(), tensor.dtype.as_str(), tensor.bits, tensor.elements),
        ("a", "F16", 16, 2)
    );
    assert_eq!((tensor.begin, tensor.end, tensor.place, &tensor.shape[..]), (0, 4, 0, &[2, 1][..]));
    assert_eq!(model.notes, []);
}

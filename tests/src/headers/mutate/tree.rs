//! Turns a plan into JSON text, in one of many spellings, and the faults of form.

use crate::headers::random::Random;

use super::plan::{Metadata, Plan, TEXTS};

/// JSON before it is text.
#[derive(Clone)]
pub(super) enum Json {
    /// Text as it is to stand; not always good.
    Token(String),
    Array(Vec<Json>),
    Object(Vec<Member>),
}

#[derive(Clone)]
pub(super) struct Member {
    /// What the key says.
    key: String,
    /// How it is spelled, with its quotes.
    spelled: String,
    value: Json,
}

const METADATA: &str = "__metadata__";

impl Json {
    pub(super) fn of_plan(random: &mut Random, plan: &Plan) -> Self {
        let escapes_percent = random.pick(&[0, 0, 0, 10, 50, 100]);
        let mut members: Vec<Member> = Vec::new();
        for tensor in &plan.tensors {
            let numbers =
                |list: &[u64]| Self::Array(list.iter().map(|size| Self::Token(size.to_string())).collect());
            let dtype = Self::Token(spell(random, tensor.dtype, escapes_percent));
            let mut fields = vec![
                Member::spell(random, "dtype", dtype, escapes_percent),
                Member::spell(random, "shape", numbers(&tensor.shape), escapes_percent),
                Member::spell(random, "data_offsets", numbers(&[tensor.begin, tensor.end]), escapes_percent),
            ];
            if random.chance(15) {
                random.shuffle(&mut fields);
            }
            members.push(Member::spell(random, &tensor.name, Self::Object(fields), escapes_percent));
        }
        let metadata = match &plan.metadata {
            Metadata::Absent => None,
            Metadata::Null => Some(Self::Token("null".to_owned())),
            Metadata::Pairs(pairs) => {
                let mut member = |(key, value): &(String, String)| {
                    let value = Self::Token(spell(random, value, escapes_percent));
                    Member::spell(random, key, value, escapes_percent)
                };
                Some(Self::Object(pairs.iter().map(&mut member).collect()))
            }
        };
        if let Some(metadata) = metadata {
            let place = if random.chance(75) { 0 } else { random.below(members.len() + 1) };
            members.insert(place, Member::spell(random, METADATA, metadata, escapes_percent));
        }
        Self::Object(members)
    }

    /// The text, in one of the usual layouts or an unusual one.
    pub(super) fn render(&self, random: &mut Random) -> Vec<u8> {
        let layout = random.pick(&[
            Layout::Tight,
            Layout::Tight,
            Layout::Tight,
            Layout::Python,
            Layout::Pretty,
            Layout::Loose,
        ]);
        let mut text = String::new();
        self.write(random, layout, 0, &mut text);
        text.into_bytes()
    }

    fn write(&self, random: &mut Random, layout: Layout, level: usize, text: &mut String) {
        let (brackets, count) = match self {
            Self::Token(token) => return text.push_str(token),
            Self::Array(items) => (['[', ']'], items.len()),
            Self::Object(members) => (['{', '}'], members.len()),
        };
        text.push(brackets[0]);
        for place in 0..count {
            if place > 0 {
                layout.blanks(random, Gap::BeforeComma, level, text);
                text.push(',');
            }
            let gap = if place > 0 { Gap::AfterComma } else { Gap::Inside };
            layout.blanks(random, gap, level + 1, text);
            match self {
                Self::Token(_) => {}
                Self::Array(items) => items[place].write(random, layout, level + 1, text),
                Self::Object(members) => {
                    text.push_str(&members[place].spelled);
                    layout.blanks(random, Gap::BeforeColon, level, text);
                    text.push(':');
                    layout.blanks(random, Gap::AfterColon, level, text);
                    members[place].value.write(random, layout, level + 1, text);
                }
            }
        }
        if count > 0 || layout == Layout::Loose {
            layout.blanks(random, Gap::Inside, level, text);
        }
        text.push(brackets[1]);
    }

    fn members(&mut self) -> &mut Vec<Member> {
        if !matches!(self, Self::Object(_)) {
            *self = Self::Object(Vec::new());
        }
        match self {
            Self::Object(members) => members,
            _ => unreachable!("it was made an object"),
        }
    }

    fn items(&mut self) -> &mut Vec<Self> {
        if !matches!(self, Self::Array(_)) {
            *self = Self::Array(Vec::new());
        }
        match self {
            Self::Array(items) => items,
            _ => unreachable!("it was made an array"),
        }
    }
}

impl Member {
    fn spell(random: &mut Random, key: &str, value: Json, escapes_percent: usize) -> Self {
        Self { key: key.to_owned(), spelled: spell(random, key, escapes_percent), value }
    }
}

/// A JSON string, in which so many of the characters are escaped that need not be.
fn spell(random: &mut Random, text: &str, escapes_percent: usize) -> String {
    let mut spelled = String::from('"');
    for char in text.chars() {
        let must = char < ' ' || char == '"' || char == '\\';
        let short = "\"\\/\u{8}\u{c}\n\r\t".chars().position(|one| one == char);
        if !must && !random.chance(escapes_percent) {
            spelled.push(char);
        } else if let Some(place) = short.filter(|_| random.chance(70)) {
            spelled.push('\\');
            spelled.push(char::from(b"\"\\/bfnrt"[place]));
        } else {
            for unit in char.encode_utf16(&mut [0; 2]) {
                let escape =
                    if random.chance(50) { format!("\\u{unit:04x}") } else { format!("\\u{unit:04X}") };
                spelled.push_str(&escape);
            }
        }
    }
    spelled.push('"');
    spelled
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// Nothing, as most writers do.
    Tight,
    /// A blank behind commas and colons, as Python's `json` does.
    Python,
    /// A token a line, indented.
    Pretty,
    /// Any white space, here and there.
    Loose,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Gap {
    Inside,
    BeforeComma,
    AfterComma,
    BeforeColon,
    AfterColon,
}

impl Layout {
    fn blanks(self, random: &mut Random, gap: Gap, level: usize, text: &mut String) {
        match (self, gap) {
            (Self::Python, Gap::AfterComma | Gap::AfterColon) | (Self::Pretty, Gap::AfterColon) => {
                text.push(' ');
            }
            (Self::Pretty, Gap::Inside | Gap::AfterComma) => {
                text.push('\n');
                text.push_str(&"  ".repeat(level));
            }
            (Self::Loose, _) => {
                while random.chance(25) {
                    text.push(random.pick(&[' ', '\n', '\t', '\r']));
                }
            }
            _ => {}
        }
    }
}

type Fault = fn(&mut Random, &mut Json);

/// Wrong fields, forms, keys, values, depths.
pub(super) const FAULTS: &[Fault] = &[
    repeat_member,
    repeat_member,
    repeat_metadata,
    repeat_pair,
    repeat_field,
    unknown_field,
    unknown_field,
    drop_field,
    drop_field,
    entry_form,
    entry_as_array,
    dtype_form,
    dtype_form,
    shape_form,
    shape_element,
    shape_element,
    offsets_form,
    offsets_element,
    offsets_element,
    metadata_form,
    metadata_value,
    metadata_value,
    call_an_entry_metadata,
    deep,
    bad_token,
    bad_token,
    odd_token,
];

/// Text that is good JSON, and odd.
const ODD: [&str; 24] = [
    "null",
    "true",
    "false",
    "0",
    "1",
    "-0",
    "-1",
    "1.0",
    "1e3",
    "0e0",
    "0.5E-7",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999",
    "1e999",
    "-1.5e99999999999",
    "\"\"",
    "\"1\"",
    "[]",
    "{}",
    "[0]",
    "[1,[2,{\"a\":null}],\"\\u00e9\"]",
    "{\"a\":1,\"a\":2}",
    "{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}",
];

/// Text that is no JSON value.
const BAD: [&str; 30] = [
    "",
    "01",
    "-",
    "+1",
    ".5",
    "1.",
    "1e",
    "1e+",
    "0x1",
    "1_0",
    "NaN",
    "-Infinity",
    "tru",
    "nul",
    "True",
    "falsee",
    "[1,]",
    "{,}",
    "[",
    "]",
    "{\"a\":1,}",
    "{\"a\"}",
    "{1:2}",
    "'a'",
    "\"a",
    "\"\\x\"",
    "\"\t\"",
    "\"\\ud800\"",
    "\"\\udc00\\ud800\"",
    "\"\\u12\"",
];

fn odd(random: &mut Random) -> Json {
    Json::Token(random.pick(&ODD).to_owned())
}

/// An entry to damage; a header without one gets one.
fn some_entry<'a>(random: &mut Random, json: &'a mut Json) -> &'a mut Member {
    let members = json.members();
    if members.iter().all(|member| member.key == METADATA) {
        let word = |word: &str| Json::Token(word.to_owned());
        let offsets = Json::Array(vec![word("0"), word("4")]);
        let fields =
            [("dtype", word("\"F32\"")), ("shape", Json::Array(Vec::new())), ("data_offsets", offsets)];
        let fields = fields.map(|(name, value)| Member::spell(random, name, value, 0));
        members.push(Member::spell(random, "w", Json::Object(fields.into()), 0));
    }
    let mut entries: Vec<_> = members.iter_mut().filter(|member| member.key != METADATA).collect();
    let place = random.below(entries.len());
    entries.swap_remove(place)
}

fn field<'a>(random: &mut Random, json: &'a mut Json, name: &str) -> &'a mut Json {
    let fields = some_entry(random, json).value.members();
    let place = fields.iter().position(|field| field.key == name).unwrap_or_else(|| {
        fields.push(Member::spell(random, name, Json::Array(Vec::new()), 0));
        fields.len() - 1
    });
    &mut fields[place].value
}

fn metadata<'a>(random: &mut Random, json: &'a mut Json) -> &'a mut Json {
    let members = json.members();
    let place = members.iter().position(|member| member.key == METADATA).unwrap_or_else(|| {
        members.insert(0, Member::spell(random, METADATA, Json::Object(Vec::new()), 10));
        0
    });
    &mut members[place].value
}

/// Repeats one of the members under another spelling of its key, now and then with another value.
fn repeat(random: &mut Random, members: &mut Vec<Member>) {
    if members.is_empty() {
        let value = Json::Token("\"v\"".to_owned());
        members.push(Member::spell(random, "k", value, 0));
    }
    let place = random.below(members.len());
    let mut copy = members[place].clone();
    let escapes_percent = random.pick(&[0, 30, 100]);
    copy.spelled = spell(random, &copy.key, escapes_percent);
    if random.chance(20) {
        copy.value = odd(random);
    }
    members.insert(random.below(members.len() + 1), copy);
}

fn insert(random: &mut Random, members: &mut Vec<Member>, key: &str, value: Json) {
    let place = random.below(members.len() + 1);
    let member = Member::spell(random, key, value, 5);
    members.insert(place, member);
}

fn repeat_member(random: &mut Random, json: &mut Json) {
    repeat(random, json.members());
}

fn repeat_metadata(random: &mut Random, json: &mut Json) {
    let copy = metadata(random, json).clone();
    insert(random, json.members(), METADATA, copy);
}

fn repeat_pair(random: &mut Random, json: &mut Json) {
    let pairs = metadata(random, json).members();
    repeat(random, pairs);
}

fn repeat_field(random: &mut Random, json: &mut Json) {
    if random.chance(40) {
        unknown_field(random, json);
    }
    let entry = some_entry(random, json);
    repeat(random, entry.value.members());
}

fn unknown_field(random: &mut Random, json: &mut Json) {
    let words = ["Dtype", "dtypes", "shap", "data_offset", "offsets", "device"];
    let key = if random.chance(50) { random.pick(&words) } else { random.pick(&TEXTS) };
    let value = odd(random);
    let entry = some_entry(random, json);
    insert(random, entry.value.members(), key, value);
}

fn drop_field(random: &mut Random, json: &mut Json) {
    let fields = some_entry(random, json).value.members();
    if !fields.is_empty() {
        fields.remove(random.below(fields.len()));
    }
}

fn entry_form(random: &mut Random, json: &mut Json) {
    let value = odd(random);
    some_entry(random, json).value = value;
}

fn entry_as_array(random: &mut Random, json: &mut Json) {
    let entry = some_entry(random, json);
    let values = entry.value.members().iter().map(|field| field.value.clone());
    entry.value = Json::Array(values.collect());
}

fn dtype_form(random: &mut Random, json: &mut Json) {
    let dtype = field(random, json, "dtype");
    let Json::Token(token) = dtype else { return };
    let forms = [
        format!("{{{token}:null}}"),
        format!("{{{token}:{{}}}}"),
        format!("{{{token}:[]}}"),
        format!("{{{token}:0}}"),
        format!("[{token}]"),
        token.to_lowercase(),
        token.replace('F', "f"),
        token.replace(['1', '3', '6'], "2"),
        "\"F8\"".to_owned(),
        "\"F32 \"".to_owned(),
        random.pick(&ODD).to_owned(),
    ];
    *token = forms[random.below(forms.len())].clone();
}

fn shape_form(random: &mut Random, json: &mut Json) {
    let value = odd(random);
    *field(random, json, "shape") = value;
}

fn offsets_form(random: &mut Random, json: &mut Json) {
    let value = odd(random);
    *field(random, json, "data_offsets") = value;
}

fn shape_element(random: &mut Random, json: &mut Json) {
    let sizes = field(random, json, "shape").items();
    element(random, sizes);
}

fn offsets_element(random: &mut Random, json: &mut Json) {
    let offsets = field(random, json, "data_offsets").items();
    element(random, offsets);
}

/// Replaces, inserts, removes or swaps.
fn element(random: &mut Random, items: &mut Vec<Json>) {
    let place = random.below(items.len() + 1);
    let value = odd(random);
    match (random.below(5), items.get_mut(place)) {
        (0 | 1, Some(item)) => *item = value,
        (2, Some(_)) => drop(items.remove(place)),
        (3, Some(_)) => items.swap(0, place),
        _ => items.insert(place, value),
    }
}

fn metadata_form(random: &mut Random, json: &mut Json) {
    let value = odd(random);
    *metadata(random, json) = value;
}

fn metadata_value(random: &mut Random, json: &mut Json) {
    let value = odd(random);
    let key = random.pick(&TEXTS);
    let pairs = metadata(random, json).members();
    if pairs.is_empty() || random.chance(20) {
        insert(random, pairs, key, value);
    } else {
        let place = random.below(pairs.len());
        pairs[place].value = value;
    }
}

fn call_an_entry_metadata(random: &mut Random, json: &mut Json) {
    let escapes_percent = random.pick(&[0, 20]);
    let spelled = spell(random, METADATA, escapes_percent);
    let entry = some_entry(random, json);
    (entry.key, entry.spelled) = (METADATA.to_owned(), spelled);
}

/// A value that is as deep as is allowed, or too deep, or nearly so.
fn deep(random: &mut Random, json: &mut Json) {
    let depth = 122 + random.below(8);
    let arrays = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let objects = format!("{}0{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    let value = Json::Token(if random.chance(50) { arrays } else { objects });
    *some_value(random, json) = value;
}

fn bad_token(random: &mut Random, json: &mut Json) {
    let value = Json::Token(random.pick(&BAD).to_owned());
    *some_value(random, json) = value;
}

fn odd_token(random: &mut Random, json: &mut Json) {
    let value = odd(random);
    *some_value(random, json) = value;
}

/// Any value below the outermost.
fn some_value<'a>(random: &mut Random, json: &'a mut Json) -> &'a mut Json {
    let entry = some_entry(random, json);
    descend(random, &mut entry.value)
}

fn descend<'a>(random: &mut Random, json: &'a mut Json) -> &'a mut Json {
    let count = match json {
        Json::Token(_) => 0,
        Json::Array(items) => items.len(),
        Json::Object(members) => members.len(),
    };
    if count == 0 || random.chance(30) {
        return json;
    }
    let place = random.below(count);
    match json {
        Json::Token(_) => unreachable!("a token holds nothing"),
        Json::Array(items) => descend(random, &mut items[place]),
        Json::Object(members) => descend(random, &mut members[place].value),
    }
}

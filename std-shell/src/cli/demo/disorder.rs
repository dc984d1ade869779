//! A model file becomes the same content in a layout that no rule forbids and nobody wants.

use safestep::Model;

/// The header's entries backwards, its length odd, its padding a tab.
pub(super) fn of(model: &Model, whole: &[u8]) -> Vec<u8> {
    let mut entries: Vec<String> = model
        .index()
        .iter()
        .map(|entry| {
            let (begin, end) = (entry.span().begin(), entry.span().end());
            format!(
                "{}:{{\"dtype\":\"{}\",\"shape\":{},\"data_offsets\":[{begin},{end}]}}",
                json(&entry.name().to_string()),
                entry.dtype(),
                entry.shape()
            )
        })
        .collect();
    entries.reverse();
    let metadata = model.index().metadata().into_iter().flatten();
    let pairs: Vec<String> = metadata
        .map(|(key, value)| format!("{}:{}", json(&key.to_string()), json(&value.to_string())))
        .collect();
    entries.push(format!("\"__metadata__\":{{{}}}", pairs.join(",")));
    let mut header = format!("{{{}}}\t", entries.join(",\n "));
    if header.len().is_multiple_of(2) {
        header.push('\t');
    }
    let data = model.frame().data_span().of(whole).unwrap_or_default();
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}

fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

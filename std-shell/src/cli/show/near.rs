//! A name that no tensor has becomes those that may have been meant.

use safestep_core::Index;

/// How many are named at the most.
const NAMES: usize = 3;

/// Longer names are nobody's typing error.
const LONGEST_BYTES: usize = 256;

/// The names of tensors that are close to that one, the closest first.
pub(super) fn near(index: &Index<'_, '_>, name: &str) -> Vec<String> {
    let mut nearest: Vec<(usize, String)> = Vec::new();
    for entry in index.iter() {
        let other = entry.name().to_string();
        if let Some(distance) = distance(name, &other) {
            let place = nearest.partition_point(|(found, _)| *found <= distance);
            nearest.insert(place, (distance, other));
            nearest.truncate(NAMES);
        }
    }
    nearest.into_iter().map(|(_, name)| name).collect()
}

/// How far apart the names are, unless it is too far. To leave out what stands before or behind is a small error.
fn distance(name: &str, other: &str) -> Option<usize> {
    if name.is_empty() || name.len().max(other.len()) > LONGEST_BYTES {
        return None;
    }
    let most = (name.len() / 6).max(2).min(name.len().saturating_sub(1));
    if other.len().abs_diff(name.len()) <= most {
        let edits = strsim::osa_distance(name, other);
        if edits <= most {
            return Some(edits);
        }
    }
    let inside = other.to_lowercase().contains(&name.to_lowercase());
    inside.then(|| other.len().saturating_add(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_are_near_and_other_names_are_far() {
        let table = [
            ("weight", "wieght", Some(1)),
            ("weight", "weigth", Some(1)),
            ("weight", "Weight", Some(1)),
            ("weight", "bias", None),
            ("a", "b", None),
            ("a", "A", Some(1)),
            ("", "a", None),
            ("wte", "transformer.wte.weight", Some(24)),
            ("WTE", "transformer.wte.weight", Some(24)),
            ("layers.0.attn.q_proj.weight", "layers.1.attn.q_proj.weight", Some(1)),
        ];
        for (name, other, expected) in table {
            assert_eq!(distance(name, other), expected, "{name} {other}");
        }
        assert_eq!(distance(&"a".repeat(300), &"a".repeat(300)), None);
    }
}

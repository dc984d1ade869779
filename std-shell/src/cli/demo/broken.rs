//! A good file becomes bad ones, each as it happens in life.

use safestep_core::Rule;

/// A way to break a file.
pub(super) struct Case {
    pub(super) file: &'static str,
    /// What has happened to it.
    pub(super) story: &'static str,
    /// The rule that it breaks then.
    pub(super) rule: Rule,
    pub(super) make: fn(&[u8]) -> Vec<u8>,
}

pub(super) const CASES: &[Case] = &[
    Case {
        file: "cut.safetensors",
        story: "A download that stopped early:",
        rule: Rule::DataShort,
        make: |whole| whole.get(..whole.len().saturating_sub(100)).unwrap_or_default().to_vec(),
    },
    Case {
        file: "typo.safetensors",
        story: "A header edited by hand, \"F32\" became \"F23\":",
        rule: Rule::Dtype,
        make: |whole| replaced(whole, "\"F32\"", "\"F23\""),
    },
    Case {
        file: "twice.safetensors",
        story: "Two tensors of one name, of which some readers take the first and some the last:",
        rule: Rule::Duplicate,
        make: |whole| replaced(whole, "layers.1.mlp.weight", "layers.0.mlp.weight"),
    },
    Case {
        file: "shape.safetensors",
        story: "A shape that promises more than there is:",
        rule: Rule::Size,
        make: |whole| replaced(whole, "\"shape\":[64,16]", "\"shape\":[64,61]"),
    },
    Case {
        file: "stranger.safetensors",
        story: "A pickle under the name of a model:",
        rule: Rule::TooLarge,
        // The list [1, 2, 3], as `pickle.dumps` writes it.
        make: |_| b"\x80\x04\x95\x0b\0\0\0\0\0\0\0]\x94(K\x01K\x02K\x03e.".to_vec(),
    },
];

/// The file with the first place of `old` overwritten by `new`, which is as long.
fn replaced(whole: &[u8], old: &str, new: &str) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    let place = bytes.windows(old.len()).position(|window| window == old.as_bytes());
    if let Some(target) = place.and_then(|place| bytes.get_mut(place..place.saturating_add(new.len()))) {
        target.copy_from_slice(new.as_bytes());
    }
    bytes
}

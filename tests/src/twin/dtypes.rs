//! Turns a dtype's name into its size and its place in the order that the reference gives dtypes.

/// Every dtype, in the reference's order (its writer goes from the last to the first), with the bits of an element.
pub const DTYPES: [(&str, u64); 22] = [
    ("BOOL", 8),
    ("F4", 4),
    ("F6_E2M3", 6),
    ("F6_E3M2", 6),
    ("U8", 8),
    ("I8", 8),
    ("F8_E5M2", 8),
    ("F8_E4M3", 8),
    ("F8_E8M0", 8),
    ("F8_E4M3FNUZ", 8),
    ("F8_E5M2FNUZ", 8),
    ("I16", 16),
    ("U16", 16),
    ("F16", 16),
    ("BF16", 16),
    ("I32", 32),
    ("U32", 32),
    ("F32", 32),
    ("C64", 64),
    ("F64", 64),
    ("I64", 64),
    ("U64", 64),
];

/// The bits of an element, or `None` for a name that is no dtype. Case counts.
#[must_use]
pub fn bits(name: &str) -> Option<u64> {
    DTYPES.iter().find(|(known, _)| *known == name).map(|(_, bits)| *bits)
}

/// The row in [`DTYPES`], or `None` for a name that is no dtype.
#[must_use]
pub fn rank(name: &str) -> Option<usize> {
    DTYPES.iter().position(|(known, _)| *known == name)
}

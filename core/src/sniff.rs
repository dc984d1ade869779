//! The first bytes of a file that is no safetensors file become a guess at what it is.

use core::fmt;

/// What a file seems to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Seems {
    /// A zip archive, as `torch.save` writes it.
    Zip,
    /// A pickle, which can run code when it is loaded.
    Pickle,
    /// A GGUF model.
    Gguf,
    /// A git-lfs pointer.
    GitLfs,
    /// A web page.
    Html,
    /// A gzip stream.
    Gzip,
    /// A NumPy array.
    Npy,
    /// An HDF5 container.
    Hdf5,
    /// An ONNX model.
    Onnx,
}

/// Guesses from the first bytes of a file, a few dozen of them, what it is if it is no safetensors file.
///
/// Ask it when R1 or R2.start is broken: a good safetensors file can begin like something else.
///
/// ```
/// use safestep_core::{Seems, sniff};
/// assert_eq!(sniff(b"GGUF\x03\0\0\0"), Some(Seems::Gguf));
/// assert_eq!(sniff(b"\x02\0\0\0\0\0\0\0{}"), None);
/// ```
#[must_use]
pub fn sniff(first: &[u8]) -> Option<Seems> {
    const MAGIC: &[(&[u8], Seems)] = &[
        (b"PK\x03\x04", Seems::Zip),
        (b"PK\x05\x06", Seems::Zip),
        (b"GGUF", Seems::Gguf),
        (b"version https://git-lfs", Seems::GitLfs),
        (b"\x1f\x8b", Seems::Gzip),
        (b"\x93NUMPY", Seems::Npy),
        (b"\x89HDF\r\n\x1a\n", Seems::Hdf5),
    ];
    if let Some((_, seems)) = MAGIC.iter().find(|(magic, _)| first.starts_with(magic)) {
        return Some(*seems);
    }
    match *first {
        // PROTO 2 to 5; protocols 0 and 1 have no mark of their own.
        [0x80, 2..=5, ..] => Some(Seems::Pickle),
        // Field 1, ir_version; then field 2, producer_name, or another early field of a ModelProto.
        [0x08, 1..=31, 0x12 | 0x1A | 0x22 | 0x3A | 0x42, ..] => Some(Seems::Onnx),
        _ if is_html(first) => Some(Seems::Html),
        _ => None,
    }
}

fn is_html(first: &[u8]) -> bool {
    let text = first.trim_ascii_start();
    let begins = |tag: &[u8]| text.get(..tag.len()).is_some_and(|text| text.eq_ignore_ascii_case(tag));
    begins(b"<!doctype html") || begins(b"<html") || begins(b"<head") || begins(b"<?xml")
}

impl fmt::Display for Seems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Zip => {
                "a zip archive (PyTorch's .pt, which holds a pickle: it can run code when it is loaded)"
            }
            Self::Pickle => "a Python pickle (it can run code when it is loaded)",
            Self::Gguf => "a GGUF model",
            Self::GitLfs => "a git-lfs pointer (the model itself was not downloaded)",
            Self::Html => "a web page",
            Self::Gzip => "a gzip file",
            Self::Npy => "a NumPy .npy array",
            Self::Hdf5 => "an HDF5 file",
            Self::Onnx => "an ONNX model",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::string::ToString;

    /// First bytes, and how what they seem to be is called.
    const BEGINNINGS: [(&[u8], &str); 15] = [
        (b"PK\x03\x04\x14\0", "a zip archive (PyTorch's .pt"),
        (b"PK\x05\x06\0\0", "a zip archive (PyTorch's .pt"),
        (b"\x80\x02}", "a Python pickle"),
        (b"\x80\x05\x95", "a Python pickle"),
        (b"GGUF\x03\0\0\0", "a GGUF model"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a git-lfs pointer"),
        (b"\n <!DOCTYPE html>", "a web page"),
        (b"<HTML>", "a web page"),
        (b"<head>", "a web page"),
        (b"<?xml version", "a web page"),
        (b"\x1f\x8b\x08", "a gzip file"),
        (b"\x93NUMPY\x01\0", "a NumPy .npy array"),
        (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
        (b"\x08\x01\x12\x07pytorch", "an ONNX model"),
        (b"\x08\x1f\x42\x02", "an ONNX model"),
    ];

    #[test]
    fn other_formats_are_known_by_their_first_bytes() {
        for (first, words) in BEGINNINGS {
            let seems = sniff(first).unwrap().to_string();
            assert!(seems.starts_with(words), "{first:x?}: {seems}");
        }
    }

    #[test]
    fn beginnings_of_nothing_known() {
        const UNKNOWN: [&[u8]; 12] = [
            b"",
            b"\x80",
            b"\x80\x01}",
            b"\x80\x06}",
            b"\x08\0\x12",
            b"\x08\x20\x12",
            b"\x08\x01\x13",
            b"\x08\x01",
            b"GGU",
            b"<htm",
            b"<body>",
            b"{\"a\":1}",
        ];
        for first in UNKNOWN {
            assert_eq!(sniff(first), None, "{first:x?}");
        }
    }
}

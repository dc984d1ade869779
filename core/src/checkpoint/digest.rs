//! Bytes in pieces of any size become a SHA-256 digest, and digests become hexadecimal digits and come back from them.
//!
//! The compression function is that of the crate `sha2`, which uses the machine's own instructions where there are any. The
//! padding around it (FIPS 180-4, section 5.1.1) is done here: the crate's own buffer links a way to panic.

use core::fmt;

/// A SHA-256 digest. Displays as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// The name of a commit in git: a SHA-1, 40 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GitSha([u8; 20]);

macro_rules! hexadecimal {
    ($type:ident, $bytes:literal, $digits:literal) => {
        impl $type {
            /// From its bytes.
            #[must_use]
            pub const fn new(bytes: [u8; $bytes]) -> Self {
                Self(bytes)
            }

            /// Its bytes.
            #[must_use]
            pub const fn as_bytes(&self) -> &[u8; $bytes] {
                &self.0
            }

            /// From hexadecimal digits; `None` unless there are exactly as many as it takes, all in lower case.
            #[must_use]
            pub fn parse(hex: &str) -> Option<Self> {
                Self::of_digits(hex.bytes())
            }

            pub(crate) fn of_digits(digits: impl Iterator<Item = u8>) -> Option<Self> {
                bytes_of(digits).map(Self)
            }

            /// Its hexadecimal digits.
            #[must_use]
            pub fn hex(&self) -> [u8; $digits] {
                let mut hex = [b'0'; $digits];
                write_digits(&self.0, &mut hex);
                hex
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(core::str::from_utf8(&self.hex()).unwrap_or_default())
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(core::str::from_utf8(&self.hex()).unwrap_or_default())
            }
        }
    };
}

hexadecimal!(Digest, 32, 64);
hexadecimal!(GitSha, 20, 40);

/// So many bytes from twice as many lower-case digits, and no more.
pub(crate) fn bytes_of<const N: usize>(mut digits: impl Iterator<Item = u8>) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let nibble = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit & 15),
        b'a'..=b'f' => Some((digit & 15).wrapping_add(9)),
        _ => None,
    };
    for byte in &mut bytes {
        let high = nibble(digits.next()?)?;
        *byte = high << 4 | nibble(digits.next()?)?;
    }
    if digits.next().is_some() { None } else { Some(bytes) }
}

/// Two digits a byte, as far as there is room.
pub(crate) fn write_digits(bytes: &[u8], hex: &mut [u8]) {
    let (pairs, _) = hex.as_chunks_mut::<2>();
    for (byte, [high, low]) in bytes.iter().zip(pairs) {
        *high = digit(byte >> 4);
        *low = digit(*byte);
    }
}

#[expect(clippy::indexing_slicing, reason = "a nibble is always a place of 16")]
fn digit(nibble: u8) -> u8 {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    DIGITS[usize::from(nibble & 15)]
}

/// SHA-256 of bytes that come in pieces.
///
/// ```
/// use safestep_core::checkpoint::Sha256;
/// let mut hash = Sha256::new();
/// hash.update(b"a");
/// hash.update(b"bc");
/// assert_eq!(hash.digest(), Sha256::of(b"abc"));
/// assert!(Sha256::of(b"abc").to_string().starts_with("ba7816bf"));
/// ```
#[derive(Clone)]
pub struct Sha256 {
    state: [u32; 8],
    /// Bytes that do not fill a block yet; how many is what `len_bytes` leaves over.
    block: [u8; BLOCK_BYTES],
    len_bytes: u64,
}

impl Sha256 {
    /// Of no bytes yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { state: START, block: [0; BLOCK_BYTES], len_bytes: 0 }
    }

    /// The digest of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Digest {
        let mut hash = Self::new();
        hash.update(bytes);
        hash.digest()
    }

    /// Takes in the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        let used = self.used();
        self.len_bytes = self.len_bytes.wrapping_add(crate::span::count(bytes.len()));
        if used > 0 {
            let room = self.block.get_mut(used..).unwrap_or_default();
            let Some((head, tail)) = rest.split_at_checked(room.len()) else {
                return room.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            };
            room.iter_mut().zip(head).for_each(|(to, from)| *to = *from);
            sha2::block_api::compress256(&mut self.state, &[self.block]);
            rest = tail;
        }
        let (blocks, tail) = rest.as_chunks::<BLOCK_BYTES>();
        sha2::block_api::compress256(&mut self.state, blocks);
        self.block.iter_mut().zip(tail).for_each(|(to, from)| *to = *from);
    }

    /// The digest of all that was taken in.
    #[must_use]
    pub fn digest(mut self) -> Digest {
        let bits = self.len_bytes.wrapping_mul(8);
        let padding = LENGTH_AT.wrapping_sub(self.used()).wrapping_sub(1) & (BLOCK_BYTES - 1);
        self.update(&[0x80]);
        self.update([0; BLOCK_BYTES].get(..padding).unwrap_or_default());
        self.update(&bits.to_be_bytes());
        let mut digest = [0; 32];
        let (words, _) = digest.as_chunks_mut::<4>();
        words.iter_mut().zip(self.state).for_each(|(to, word)| *to = word.to_be_bytes());
        Digest(digest)
    }

    /// How many bytes of the block wait.
    fn used(&self) -> usize {
        let [low, ..] = self.len_bytes.to_le_bytes();
        usize::from(low) & (BLOCK_BYTES - 1)
    }
}

impl Default for Sha256 {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sha256 of {} bytes", self.len_bytes)
    }
}

const BLOCK_BYTES: usize = 64;
/// Where in the last block the length in bits stands.
const LENGTH_AT: usize = 56;
/// FIPS 180-4, section 5.3.3.
const START: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use sha2::Digest as _;
    use std::string::ToString as _;
    use std::vec::Vec;

    #[test]
    fn published_examples() {
        let table: [(&[u8], &str); 3] = [
            (b"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            (b"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
            ),
        ];
        for (bytes, hex) in table {
            assert_eq!(Sha256::of(bytes).to_string(), hex);
            assert_eq!(Digest::parse(hex), Some(Sha256::of(bytes)));
        }
    }

    #[test]
    fn every_length_in_any_pieces_is_what_the_crate_says() {
        let bytes: Vec<u8> = (0..400_u32).map(|place| (place.wrapping_mul(31) % 251) as u8).collect();
        let step = if cfg!(miri) { 37 } else { 1 };
        for len in (0..bytes.len()).step_by(step) {
            let expected: [u8; 32] = sha2::Sha256::digest(&bytes[..len]).into();
            for cut in [0, 1, 7, 63, 64, 65, 128, len] {
                let (head, tail) = bytes[..len].split_at(cut.min(len));
                let mut hash = Sha256::new();
                hash.update(head);
                tail.chunks(cut.max(1)).for_each(|piece| hash.update(piece));
                assert_eq!(hash.digest().as_bytes(), &expected, "{len} cut at {cut}");
            }
        }
    }

    #[test]
    fn digits_are_lower_case_and_exactly_as_many() {
        let good = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(GitSha::parse(good).unwrap().to_string(), good);
        for bad in [&good[1..], &good.to_uppercase(), &[good, "0"].concat(), "", &good.replace('f', "g")] {
            assert_eq!(GitSha::parse(bad), None, "{bad}");
        }
    }
}

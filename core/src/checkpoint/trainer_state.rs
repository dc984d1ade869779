//! The text of a trainer state becomes numbers, and numbers the text.
//!
//! ```text
//! {"config_sha256":null,"data_cursor":{"offset":6,"shard":0},"git_sha":null,"lr":0.0003,
//!  "rng_state":{"inc":"000000000000006d","state":"185706b82c2e03f8"},"step":50,"tokens_seen":204800}
//! ```
//!
//! Compact, keys sorted (the line break above is for the eye). Numbers of 64 bits that are no counts stand as hexadecimal
//! digits, so that no reader of JSON rounds them.

use crate::checkpoint::decimal::{Shortest, nearest};
use crate::checkpoint::digest::{Digest, GitSha, bytes_of, write_digits};
use crate::checkpoint::document::{Document, SHA256};
use crate::checkpoint::error::DocumentError;
use crate::checkpoint::manifest::encode;
use crate::json::Kind;
use crate::span::ByteLen;
use crate::tensor::writer::integer;
use core::fmt;

/// Where a training run stands, besides its parameters and its optimizer.
///
/// ```
/// use safestep_core::checkpoint::TrainerState;
/// let state = TrainerState { step: 50, tokens_seen: 204_800, lr: Some(3e-4), ..TrainerState::default() };
/// let mut text = [0; 512];
/// let text = state.encode(&mut text).unwrap().unwrap();
/// assert!(text.starts_with(br#"{"config_sha256":null,"data_cursor":null,"git_sha":null,"lr":0.0003,"#));
/// assert_eq!(TrainerState::parse(text), Ok(state));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TrainerState {
    /// The digest of the configuration under which the state was made.
    pub config_sha256: Option<Digest>,
    /// Where the next window of tokens starts.
    pub data_cursor: Option<DataCursor>,
    /// The commit of the training program.
    pub git_sha: Option<GitSha>,
    /// The learning rate: any finite number. It comes back bit for bit.
    pub lr: Option<f64>,
    /// The state of the generator.
    pub rng_state: Option<RngState>,
    /// How many optimizer steps were done.
    pub step: u64,
    /// How many tokens were trained on.
    pub tokens_seen: u64,
}

/// A place in the token stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataCursor {
    /// Where the next window starts, in tokens.
    pub offset: u64,
    /// In which shard.
    pub shard: u64,
}

/// The state of a PCG32 generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RngState {
    /// The increment, which is odd.
    pub inc: u64,
    /// The state proper.
    pub state: u64,
}

/// Why a trainer state is not written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TrainerStateRefusal {
    /// The increment of the generator is even.
    EvenIncrement {
        /// The increment.
        found: u64,
    },
    /// The learning rate is not finite.
    LearningRate {
        /// The rate.
        found: f64,
    },
}

impl TrainerState {
    /// Reads a trainer state. Keys may stand in any order and white space anywhere between tokens.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn parse(text: &[u8]) -> Result<Self, DocumentError> {
        let mut state = Self::default();
        Document::read(text, &KEYS, |document, key| {
            match key {
                0 => state.config_sha256 = digits(document, "config_sha256", SHA256, Digest::new)?,
                1 => state.data_cursor = data_cursor(document)?,
                2 => state.git_sha = digits(document, "git_sha", GIT_SHA, GitSha::new)?,
                3 => state.lr = lr(document)?,
                4 => state.rng_state = rng_state(document)?,
                5 => state.step = document.integer("step")?,
                _ => state.tokens_seen = document.integer("tokens_seen")?,
            }
            Ok(())
        })?;
        Ok(state)
    }

    /// Whether it can be written.
    ///
    /// # Errors
    /// What a reader would refuse.
    pub fn check(&self) -> Result<(), TrainerStateRefusal> {
        if let Some(RngState { inc: found, .. }) = self.rng_state
            && found & 1 == 0
        {
            return Err(TrainerStateRefusal::EvenIncrement { found });
        }
        match self.lr {
            Some(found) if !found.is_finite() => Err(TrainerStateRefusal::LearningRate { found }),
            _ => Ok(()),
        }
    }

    /// Hands the text over in pieces.
    ///
    /// # Errors
    /// What [`check`](Self::check) says, before anything is handed over; inside, the first error of `sink`, which then gets
    /// nothing more.
    pub fn write<E>(
        &self,
        sink: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<Result<(), E>, TrainerStateRefusal> {
        self.check()?;
        Ok(self.write_checked(sink))
    }

    /// The text, in memory that is lent.
    ///
    /// # Errors
    /// What [`check`](Self::check) says; inside, the length needed, if `out` is shorter.
    pub fn encode<'o>(&self, out: &'o mut [u8]) -> Result<Result<&'o [u8], ByteLen>, TrainerStateRefusal> {
        self.check()?;
        Ok(encode(out, |sink| self.write_checked(sink)))
    }

    fn write_checked<E>(&self, mut sink: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        sink(b"{\"config_sha256\":")?;
        quoted(self.config_sha256.map(|sha| sha.hex()).as_ref().map(<[u8; 64]>::as_slice), &mut sink)?;
        sink(b",\"data_cursor\":")?;
        match self.data_cursor {
            Some(DataCursor { offset, shard }) => {
                sink(b"{\"offset\":")?;
                integer(offset, &mut sink)?;
                sink(b",\"shard\":")?;
                integer(shard, &mut sink)?;
                sink(b"}")?;
            }
            None => sink(b"null")?,
        }
        sink(b",\"git_sha\":")?;
        quoted(self.git_sha.map(|sha| sha.hex()).as_ref().map(<[u8; 40]>::as_slice), &mut sink)?;
        sink(b",\"lr\":")?;
        match self.lr {
            Some(lr) => sink(Shortest::of(lr).as_bytes())?,
            None => sink(b"null")?,
        }
        sink(b",\"rng_state\":")?;
        match self.rng_state {
            Some(RngState { inc, state }) => {
                sink(b"{\"inc\":")?;
                quoted(Some(&hex(inc)), &mut sink)?;
                sink(b",\"state\":")?;
                quoted(Some(&hex(state)), &mut sink)?;
                sink(b"}")?;
            }
            None => sink(b"null")?,
        }
        sink(b",\"step\":")?;
        integer(self.step, &mut sink)?;
        sink(b",\"tokens_seen\":")?;
        integer(self.tokens_seen, &mut sink)?;
        sink(b"}")
    }
}

impl core::error::Error for TrainerStateRefusal {}

impl fmt::Display for TrainerStateRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EvenIncrement { found } => {
                write!(f, "expected an odd increment of the generator, found {found:016x}")
            }
            Self::LearningRate { found } => write!(f, "expected a finite learning rate, found {found}"),
        }
    }
}

/// Digits in quotes, or null.
fn quoted<E>(digits: Option<&[u8]>, sink: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    let Some(digits) = digits else { return sink(b"null") };
    sink(b"\"")?;
    sink(digits)?;
    sink(b"\"")
}

fn hex(value: u64) -> [u8; 16] {
    let mut digits = [b'0'; 16];
    write_digits(&value.to_be_bytes(), &mut digits);
    digits
}

/// Hexadecimal digits in quotes, or null.
fn digits<T, const N: usize>(
    document: &mut Document<'_>,
    key: &'static str,
    expected: &'static str,
    of_bytes: impl Fn([u8; N]) -> T,
) -> Result<Option<T>, DocumentError> {
    let token = document.token()?;
    match token.kind {
        Kind::Null => Ok(None),
        Kind::String => match bytes_of(token.string.bytes()) {
            Some(bytes) => Ok(Some(of_bytes(bytes))),
            None => Err(token.says_not(key, expected)),
        },
        _ => Err(token.is_not(key, expected)),
    }
}

fn data_cursor(document: &mut Document<'_>) -> Result<Option<DataCursor>, DocumentError> {
    let token = document.token()?;
    match token.kind {
        Kind::Null => Ok(None),
        Kind::Object => {
            let mut cursor = DataCursor::default();
            document.members(&["offset", "shard"], |document, key| {
                match key {
                    0 => cursor.offset = document.integer("offset")?,
                    _ => cursor.shard = document.integer("shard")?,
                }
                Ok(())
            })?;
            Ok(Some(cursor))
        }
        _ => Err(token.is_not("data_cursor", "an object with offset and shard")),
    }
}

fn rng_state(document: &mut Document<'_>) -> Result<Option<RngState>, DocumentError> {
    let token = document.token()?;
    match token.kind {
        Kind::Null => Ok(None),
        Kind::Object => {
            let mut rng = RngState { inc: 0, state: 0 };
            document.members(&["inc", "state"], |document, key| {
                match key {
                    0 => rng.inc = word(document, "inc", ODD, |inc| inc & 1 == 1)?,
                    _ => rng.state = word(document, "state", HEX, |_| true)?,
                }
                Ok(())
            })?;
            Ok(Some(rng))
        }
        _ => Err(token.is_not("rng_state", "an object with inc and state")),
    }
}

/// 64 bits in hexadecimal digits.
fn word(
    document: &mut Document<'_>,
    key: &'static str,
    expected: &'static str,
    good: impl Fn(u64) -> bool,
) -> Result<u64, DocumentError> {
    let token = document.expect(key, Kind::String, expected)?;
    let value = bytes_of(token.string.bytes()).map(u64::from_be_bytes).filter(|value| good(*value));
    value.ok_or_else(|| token.says_not(key, expected))
}

fn lr(document: &mut Document<'_>) -> Result<Option<f64>, DocumentError> {
    let token = document.token()?;
    match token.kind {
        Kind::Null => Ok(None),
        Kind::Integer | Kind::Number => match nearest(token.text) {
            None => Err(token.says_not("lr", FINITE)),
            lr => Ok(lr),
        },
        _ => Err(token.is_not("lr", FINITE)),
    }
}

const KEYS: [&str; 7] = ["config_sha256", "data_cursor", "git_sha", "lr", "rng_state", "step", "tokens_seen"];
const GIT_SHA: &str = "40 lower-case hexadecimal digits";
const HEX: &str = "16 lower-case hexadecimal digits";
const ODD: &str = "16 lower-case hexadecimal digits of an odd number";
const FINITE: &str = "a finite number";

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::{String, ToString as _};
    use std::vec::Vec;

    fn full() -> TrainerState {
        TrainerState {
            config_sha256: Some(Digest::new([0xab; 32])),
            data_cursor: Some(DataCursor { offset: 6, shard: 0 }),
            git_sha: Some(GitSha::new([0x1f; 20])),
            lr: Some(3e-4),
            rng_state: Some(RngState { inc: 0x6d, state: 0x1857_06b8_2c2e_03f8 }),
            step: 50,
            tokens_seen: u64::MAX,
        }
    }

    fn text(state: &TrainerState) -> String {
        let mut text = Vec::new();
        let sink = |piece: &[u8]| {
            text.extend_from_slice(piece);
            Ok::<(), ()>(())
        };
        state.write(sink).unwrap().unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn the_text_is_compact_and_sorted() {
        let sha = "ab".repeat(32);
        let git = "1f".repeat(20);
        let expected = std::format!(
            r#"{{"config_sha256":"{sha}","data_cursor":{{"offset":6,"shard":0}},"git_sha":"{git}","lr":0.0003,"rng_state":{{"inc":"000000000000006d","state":"185706b82c2e03f8"}},"step":50,"tokens_seen":18446744073709551615}}"#
        );
        assert_eq!(text(&full()), expected);
        assert_eq!(TrainerState::parse(expected.as_bytes()), Ok(full()));
        let mut lent = [0; 512];
        assert_eq!(full().encode(&mut lent).unwrap(), Ok(expected.as_bytes()));
        let needed = ByteLen::new(expected.len() as u64);
        assert_eq!(full().encode(&mut lent[..9]).unwrap(), Err(needed));
    }

    #[test]
    fn what_is_absent_is_null() {
        let expected = r#"{"config_sha256":null,"data_cursor":null,"git_sha":null,"lr":null,"rng_state":null,"step":0,"tokens_seen":0}"#;
        assert_eq!(text(&TrainerState::default()), expected);
        assert_eq!(TrainerState::parse(expected.as_bytes()), Ok(TrainerState::default()));
    }

    #[test]
    fn learning_rates_come_back_bit_for_bit() {
        let table =
            [0.0, -0.0, 1.0, -3e-4, 0.1, 1e-7, 6e-5, 1.0 / 3.0, 5e-324, f64::MAX, f64::MIN_POSITIVE, 1e22];
        for lr in table {
            let state = TrainerState { lr: Some(lr), ..full() };
            let read = TrainerState::parse(text(&state).as_bytes()).unwrap();
            assert_eq!(read.lr.unwrap().to_bits(), lr.to_bits(), "{lr:e}");
        }
        for (spelled, lr) in [("1", 1.0), ("1E-3", 0.001), ("18446744073709551616", 18446744073709551616.0)] {
            let text = text(&full()).replace("0.0003", spelled);
            assert_eq!(TrainerState::parse(text.as_bytes()).unwrap().lr, Some(lr));
        }
    }

    #[test]
    fn what_is_refused_on_reading() {
        let table = [
            ("\"step\":50", "\"step\":-50", "for step, found a number"),
            ("\"step\":50", "\"step\":50.0", "for step, found a number"),
            ("\"step\":50", "\"step\":\"50\"", "for step, found a string"),
            ("\"step\":50", "\"step\":null", "for step, found null"),
            ("\"step\":50", "\"step\":50,\"step\":50", "expected each key once"),
            ("\"step\":50", "\"step\":50,\"loss\":1", "expected only keys of the format"),
            ("\"step\":50,", "", "expected the key step"),
            (",\"tokens_seen\":18446744073709551615", "", "expected the key tokens_seen"),
            ("18446744073709551615", "18446744073709551616", "for tokens_seen, found a number"),
            ("\"offset\":6", "\"offset\":-6", "for offset, found a number"),
            ("\"offset\":6,", "", "expected the key offset"),
            ("\"shard\":0", "\"shard\":0,\"x\":0", "expected only keys of the format"),
            ("{\"offset\":6,\"shard\":0}", "[6,0]", "for data_cursor, found an array"),
            ("6d\"", "6c\"", "16 lower-case hexadecimal digits of an odd number for inc"),
            ("6d\"", "6D\"", "of an odd number for inc"),
            ("\"000000000000006d\"", "109", "for inc, found an integer"),
            ("185706b82c2e03f8", "85706b82c2e03f8", "for state, found another"),
            ("1f1f\",", "1f\",", "40 lower-case hexadecimal digits for git_sha"),
            ("abab\",", "ABab\",", "64 lower-case hexadecimal digits for config_sha256"),
            ("0.0003", "1e309", "expected a finite number for lr"),
            ("0.0003", "\"0.0003\"", "for lr, found a string"),
            ("0.0003", "NaN", "expected a JSON value, found 'N'"),
            ("0.0003", "Infinity", "expected a JSON value, found 'I'"),
        ];
        for (from, to, expected) in table {
            let good = text(&full());
            let bad = good.replacen(from, to, 1);
            assert_ne!(good, bad, "{from}");
            let error = TrainerState::parse(bad.as_bytes()).expect_err(&bad);
            assert!(error.to_string().contains(expected), "{bad}\n{error}\n{expected}");
        }
    }

    #[test]
    fn what_is_refused_on_writing() {
        let even = TrainerState { rng_state: Some(RngState { inc: 4, state: 0 }), ..full() };
        assert_eq!(even.check(), Err(TrainerStateRefusal::EvenIncrement { found: 4 }));
        for lr in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let state = TrainerState { lr: Some(lr), ..full() };
            let refused = state.write(|_| -> Result<(), ()> { unreachable!("nothing is handed over") });
            assert!(matches!(refused, Err(TrainerStateRefusal::LearningRate { .. })));
        }
    }
}

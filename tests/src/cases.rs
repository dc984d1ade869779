//! Turns `fixtures/rules/cases.toml` into cases: what every reader must make of which file.

use std::path::{Path, PathBuf};

use crate::twin::{Break, Note, Options};

/// The folder `fixtures/`.
#[must_use]
pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures")
}

/// One row of the table; the head of the table explains the columns.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Unique.
    pub name: String,
    /// From `fixtures/`.
    pub file: String,
    /// What it is for.
    pub about: String,
    /// Good or bad.
    pub verdict: Verdict,
    /// The rule that a bad file breaks.
    pub rule: Option<String>,
    /// Where.
    pub offset: Option<u64>,
    /// The tensor or key at fault.
    pub tensor: Option<String>,
    /// The ids of a good file's notes.
    #[serde(default)]
    pub notes: Vec<String>,
    /// What more is known of them.
    #[serde(default)]
    pub note_details: Vec<NoteDetails>,
    /// The caller's limit for the header.
    pub limit_header_bytes: Option<u64>,
    /// The caller's dtypes.
    pub allow_dtypes: Option<Vec<String>>,
    /// The length of a file of which only the header is kept.
    pub file_len: Option<u64>,
    /// What it is, if it is no safetensors file.
    pub seems: Option<String>,
    /// What the reference says.
    pub reference: Option<String>,
    /// Why we refuse and the reference does not.
    pub refusal: Option<String>,
}

/// The column `verdict`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// No rule is broken.
    Good,
    /// One is.
    Bad,
}

/// One note of the column `note_details`.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoteDetails {
    /// The id.
    pub id: String,
    /// The first place.
    pub offset: u64,
    /// The tensor at that place.
    pub tensor: Option<String>,
    /// How many places there are, where that is told.
    pub count: Option<u64>,
}

/// All cases, in the order of the table.
///
/// # Panics
/// When the table is not there or not as it should be.
#[must_use]
pub fn cases() -> Vec<Case> {
    #[derive(serde::Deserialize)]
    struct Table {
        case: Vec<Case>,
    }
    let text = std::fs::read_to_string(fixtures().join("rules/cases.toml")).expect("the case table");
    toml::from_str::<Table>(&text).expect("a table of cases").case
}

impl Case {
    /// The bytes of the file, or of its front.
    ///
    /// # Panics
    /// When it cannot be read.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let path = self.path();
        std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Where the file is.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        fixtures().join(&self.file)
    }

    /// What the caller narrows.
    #[must_use]
    pub fn options(&self) -> Options {
        let header_bytes_max = self.limit_header_bytes.unwrap_or(Options::default().header_bytes_max);
        Options { header_bytes_max, dtypes: self.allow_dtypes.clone() }
    }

    /// Asserts that a reader's verdict is the one in the table: the break, or the notes.
    ///
    /// # Panics
    /// When it is not.
    pub fn assert(&self, reader: &str, found: Result<&[Note], &Break>) {
        let about = format!("{reader} on {} ({})", self.name, self.about);
        match (self.verdict, found) {
            (Verdict::Bad, Err(found)) => {
                assert_eq!(Some(found.rule), self.rule.as_deref(), "{about}: {found:?}");
                assert_eq!(Some(found.offset), self.offset, "{about}: {found:?}");
                assert_eq!(found.tensor, self.tensor, "{about}: {found:?}");
            }
            (Verdict::Good, Ok(notes)) => self.assert_notes(&about, notes),
            (verdict, found) => panic!("{about}: {found:?}, not {verdict:?}"),
        }
    }

    fn assert_notes(&self, about: &str, notes: &[Note]) {
        assert!(notes.iter().map(|note| note.id).eq(self.notes.iter()), "{about}: {notes:?}");
        for expected in &self.note_details {
            let found = notes.iter().find(|note| note.id == expected.id).expect("a note with details");
            assert_eq!(
                (found.offset, &found.tensor),
                (expected.offset, &expected.tensor),
                "{about}: {found:?}"
            );
            assert!(expected.count.is_none_or(|count| count == found.count), "{about}: {found:?}");
        }
    }
}

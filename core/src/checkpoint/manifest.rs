//! The text of a manifest becomes the files that a checkpoint must hold, and the files found become differences; files become
//! the text.
//!
//! ```text
//! {"files":[{"name":"model.safetensors","sha256":"9f86...","size":4096},...],"step":50,"version":1}
//! ```
//!
//! Names stand in the order of their bytes, each once. What is accepted can be walked without failing.

use crate::checkpoint::digest::Digest;
use crate::checkpoint::document::{Document, INTEGER, SHA256};
use crate::checkpoint::error::{DocumentError, DocumentErrorKind, NameFault};
use crate::json::{JsonStr, Kind};
use crate::span::{ByteLen, count};
use crate::tensor::writer::{integer, string};
use core::cmp::Ordering;
use core::fmt;

/// The name of the manifest's own file.
pub const MANIFEST_NAME: &str = "MANIFEST.json";

/// A manifest that was read and found sound; its names stay where they are.
///
/// ```
/// use safestep_core::checkpoint::Manifest;
/// let text = br#"{"files":[{"name":"config.json","sha256":
///     "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","size":0}],"step":7,"version":1}"#;
/// let manifest = Manifest::parse(text)?;
/// assert_eq!((manifest.step(), manifest.len()), (7, 1));
/// assert!(manifest.files().all(|file| file.name == "config.json" && file.size == 0));
/// # Ok::<(), safestep_core::checkpoint::DocumentError>(())
/// ```
#[derive(Clone, Copy)]
pub struct Manifest<'m> {
    text: &'m [u8],
    /// Where the bracket stands that opens the files.
    files_at: u32,
    files: u64,
    step: u64,
}

/// A file as a manifest lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedFile<'m> {
    /// Its name in the directory.
    pub name: JsonStr<'m>,
    /// The digest of its bytes.
    pub sha256: Digest,
    /// Its length in bytes.
    pub size: u64,
}

/// A file that was found in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundFile<'f> {
    /// The bytes of its name, which need not be text.
    pub name: &'f [u8],
    /// Its length in bytes.
    pub size: u64,
    /// The digest of its bytes; `None` if nobody has looked, and then it is not compared.
    pub sha256: Option<Digest>,
}

/// Where a directory is not as its manifest says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference<'m, 'f> {
    /// A listed file is not there.
    Missing {
        /// Its name.
        name: JsonStr<'m>,
    },
    /// A file that is there is not listed.
    Unlisted {
        /// The bytes of its name.
        name: &'f [u8],
    },
    /// A file is longer or shorter than it should be.
    Size {
        /// Its name.
        name: JsonStr<'m>,
        /// The length listed, in bytes.
        expected: u64,
        /// The length found, in bytes.
        found: u64,
    },
    /// A file of the right length has other bytes.
    Sha256 {
        /// Its name.
        name: JsonStr<'m>,
        /// The digest listed.
        expected: Digest,
        /// The digest found.
        found: Digest,
    },
}

impl<'m> Manifest<'m> {
    /// Reads a manifest. Keys may stand in any order and white space anywhere between tokens.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn parse(text: &'m [u8]) -> Result<Self, DocumentError> {
        let mut manifest = Self { text, files_at: 0, files: 0, step: 0 };
        Document::read(text, &KEYS, |document, key| {
            match key {
                0 => {
                    manifest.files_at = document.place();
                    manifest.files = files(document)?;
                }
                1 => manifest.step = document.integer("step")?,
                _ => version(document)?,
            }
            Ok(())
        })?;
        Ok(manifest)
    }

    /// The step that it belongs to.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// How many files it lists.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.files
    }

    /// Whether it lists none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files == 0
    }

    /// The files, by name.
    #[must_use]
    pub fn files(&self) -> Files<'m> {
        let mut document = Document::at(self.text, self.files_at);
        let open = document.token().is_ok_and(|token| token.kind == Kind::Array);
        Files { document, open }
    }

    /// Walks the list and what was found, which has to stand in the order of the names' bytes and without the manifest
    /// itself, and gives every difference, by name.
    #[must_use]
    pub fn compare<'f, I>(&self, found: I) -> Differences<'m, 'f, I::IntoIter>
    where
        I: IntoIterator<Item = FoundFile<'f>>,
    {
        let (mut listed, mut found) = (self.files(), found.into_iter());
        let (next_listed, next_found) = (listed.next(), found.next());
        Differences { listed, found, next_listed, next_found }
    }
}

impl fmt::Debug for Manifest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Manifest of step {}: ", self.step)?;
        f.debug_list().entries(self.files()).finish()
    }
}

/// The files of a manifest, one after the other.
pub struct Files<'m> {
    document: Document<'m>,
    open: bool,
}

impl<'m> Iterator for Files<'m> {
    type Item = ListedFile<'m>;

    fn next(&mut self) -> Option<ListedFile<'m>> {
        // The text was accepted, so nothing fails here.
        self.open = self.open && self.document.goes_on().unwrap_or(false);
        if self.open { file(&mut self.document).ok() } else { None }
    }
}

/// The differences between a manifest and a directory.
pub struct Differences<'m, 'f, I> {
    listed: Files<'m>,
    found: I,
    next_listed: Option<ListedFile<'m>>,
    next_found: Option<FoundFile<'f>>,
}

impl<'m, 'f, I: Iterator<Item = FoundFile<'f>>> Iterator for Differences<'m, 'f, I> {
    type Item = Difference<'m, 'f>;

    fn next(&mut self) -> Option<Difference<'m, 'f>> {
        loop {
            let order = match (&self.next_listed, &self.next_found) {
                (None, None) => return None,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(listed), Some(found)) => listed.name.bytes().cmp(found.name.iter().copied()),
            };
            let listed = if order.is_le() { self.next_listed } else { None };
            let found = if order.is_ge() { self.next_found } else { None };
            if order.is_le() {
                self.next_listed = self.listed.next();
            }
            if order.is_ge() {
                self.next_found = self.found.next();
            }
            let difference = match (listed, found) {
                (Some(listed), Some(found)) => differ(&listed, &found),
                (Some(ListedFile { name, .. }), None) => Some(Difference::Missing { name }),
                (None, Some(FoundFile { name, .. })) => Some(Difference::Unlisted { name }),
                (None, None) => None,
            };
            if difference.is_some() {
                return difference;
            }
        }
    }
}

fn differ<'m, 'f>(listed: &ListedFile<'m>, found: &FoundFile<'f>) -> Option<Difference<'m, 'f>> {
    let name = listed.name;
    if listed.size != found.size {
        return Some(Difference::Size { name, expected: listed.size, found: found.size });
    }
    let found = found.sha256.filter(|found| *found != listed.sha256)?;
    Some(Difference::Sha256 { name, expected: listed.sha256, found })
}

/// Reads the list of files, and says how many they are.
fn files(document: &mut Document<'_>) -> Result<u64, DocumentError> {
    document.expect("files", Kind::Array, "an array of files")?;
    let (mut files, mut last) = (0_u64, None::<JsonStr<'_>>);
    while document.goes_on()? {
        let at = document.place();
        let name = file(document)?.name;
        if last.is_some_and(|last| last >= name) {
            return Err(DocumentError::new(DocumentErrorKind::Order, at));
        }
        last = Some(name);
        files = files.wrapping_add(1);
    }
    Ok(files)
}

fn file<'m>(document: &mut Document<'m>) -> Result<ListedFile<'m>, DocumentError> {
    let mut file = ListedFile { name: JsonStr::new(b""), sha256: Digest::new([0; 32]), size: 0 };
    document.object("a file", "an object with name, sha256 and size", &FILE_KEYS, |document, key| {
        match key {
            0 => {
                let token = document.expect("name", Kind::String, "a string")?;
                file.name = token.string;
                if let Some(found) = NameFault::of(file.name.bytes()) {
                    return Err(DocumentError::new(DocumentErrorKind::Name { found }, token.at));
                }
            }
            1 => {
                let token = document.expect("sha256", Kind::String, SHA256)?;
                let digest = Digest::of_digits(token.string.bytes());
                file.sha256 = digest.ok_or_else(|| token.says_not("sha256", SHA256))?;
            }
            _ => file.size = document.integer("size")?,
        }
        Ok(())
    })?;
    Ok(file)
}

fn version(document: &mut Document<'_>) -> Result<(), DocumentError> {
    let token = document.expect("version", Kind::Integer, INTEGER)?;
    if token.integer == VERSION {
        return Ok(());
    }
    Err(DocumentError::new(DocumentErrorKind::Version { found: token.integer }, token.at))
}

/// A file to be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRecord<'a> {
    /// Its name in the directory.
    pub name: &'a str,
    /// The digest of its bytes.
    pub sha256: Digest,
    /// Its length in bytes.
    pub size: u64,
}

/// Files that can be listed: their names are good ones, in order, each once.
///
/// ```
/// use safestep_core::checkpoint::{FileRecord, Manifest, ManifestDraft, Sha256};
/// let files = [FileRecord { name: "config.json", sha256: Sha256::of(b"{}"), size: 2 }];
/// let mut text = [0; 256];
/// let text = ManifestDraft::of(7, &files).unwrap().encode(&mut text).unwrap();
/// assert_eq!(Manifest::parse(text).unwrap().len(), 1);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ManifestDraft<'f, 'a> {
    step: u64,
    files: &'f [FileRecord<'a>],
}

/// Why files are not listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManifestRefusal<'a> {
    /// A name that no file of a checkpoint has.
    Name {
        /// The name.
        name: &'a str,
        /// What is wrong with it.
        found: NameFault,
    },
    /// A name that does not stand behind the one before it, by bytes; two equal ones are such.
    Order {
        /// The name.
        name: &'a str,
    },
}

impl<'f, 'a> ManifestDraft<'f, 'a> {
    /// Files in the order of their names' bytes.
    ///
    /// # Errors
    /// The first name that readers would refuse.
    pub fn of(step: u64, files: &'f [FileRecord<'a>]) -> Result<Self, ManifestRefusal<'a>> {
        let mut last = None;
        for FileRecord { name, .. } in files {
            if let Some(found) = NameFault::of(name.bytes()) {
                return Err(ManifestRefusal::Name { name, found });
            }
            if last >= Some(name.as_bytes()) {
                return Err(ManifestRefusal::Order { name });
            }
            last = Some(name.as_bytes());
        }
        Ok(Self { step, files })
    }

    /// Hands the text over in pieces.
    ///
    /// # Errors
    /// The first error of `sink`, which then gets nothing more.
    pub fn write<E>(&self, mut sink: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        sink(b"{\"files\":[")?;
        let mut separator: &[u8] = b"";
        for file in self.files {
            sink(separator)?;
            separator = b",";
            sink(b"{\"name\":")?;
            string(file.name, &mut sink)?;
            sink(b",\"sha256\":\"")?;
            sink(&file.sha256.hex())?;
            sink(b"\",\"size\":")?;
            integer(file.size, &mut sink)?;
            sink(b"}")?;
        }
        sink(b"],\"step\":")?;
        integer(self.step, &mut sink)?;
        sink(b",\"version\":1}")
    }

    /// The text, in memory that is lent.
    ///
    /// # Errors
    /// The length needed, if `out` is shorter.
    pub fn encode<'o>(&self, out: &'o mut [u8]) -> Result<&'o [u8], ByteLen> {
        encode(out, |sink| self.write(sink))
    }
}

/// What a writer hands over, in memory that is lent; or how much it is.
pub(crate) fn encode(
    out: &mut [u8],
    write: impl Fn(&mut dyn FnMut(&[u8]) -> Result<(), ()>) -> Result<(), ()>,
) -> Result<&[u8], ByteLen> {
    let mut needed = 0_u64;
    let counted = write(&mut |piece| {
        needed = needed.saturating_add(count(piece.len()));
        Ok(())
    });
    let too_short = ByteLen::new(needed);
    let out = usize::try_from(needed).ok().and_then(|needed| out.get_mut(..needed)).ok_or(too_short)?;
    let mut rest = &mut *out;
    let written = write(&mut |piece| {
        let (to, tail) = core::mem::take(&mut rest).split_at_mut_checked(piece.len()).ok_or(())?;
        to.iter_mut().zip(piece).for_each(|(to, from)| *to = *from);
        rest = tail;
        Ok(())
    });
    counted.and(written).map_err(|()| too_short)?;
    Ok(out)
}

impl core::error::Error for ManifestRefusal<'_> {}

impl fmt::Display for ManifestRefusal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name { name, found } => {
                write!(f, "expected the name of a file in the directory, found {found}: {name:?}")
            }
            Self::Order { name } => write!(f, "expected names in order, each once, found {name:?} out of it"),
        }
    }
}

const KEYS: [&str; 3] = ["files", "step", "version"];
const FILE_KEYS: [&str; 3] = ["name", "sha256", "size"];
const VERSION: u64 = 1;

#[cfg(test)]
mod tests;

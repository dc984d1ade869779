//! Turns a size, a kind and a seed into the header of a safetensors file: for the benchmark, the tests and the fuzz seeds.
//!
//! Everything here is deterministic: the same arguments give the same bytes on every machine.
//!
//! * [`honest`]: headers as real models have them, in five orders.
//! * [`hostile`]: headers of a given length that try to cost more than an honest one.
//! * [`crowded`]: the same against the core's own tables.
//! * [`mutate`]: small random files, most of them good or nearly good, for property tests.

pub mod crowded;
pub mod honest;
pub mod hostile;
pub mod mutate;
pub mod random;
pub mod write;

/// A header, and the length of the data that a file needs behind it.
#[derive(Debug, Clone)]
pub struct Sample {
    /// What it is.
    pub name: String,
    /// The front of the file: the length of the header in eight bytes, then the header.
    pub header: Vec<u8>,
    /// How many bytes of data belong behind it. Up to hundreds of gigabytes: meant for a sparse mapping.
    pub data_len: u64,
    /// The rule that it breaks; `None` of a good one.
    pub rule: Option<&'static str>,
}

impl Sample {
    /// A sample from header text, behind which stands its length, and nothing else.
    #[must_use]
    pub fn new(name: &str, text: String, data_len: u64, rule: Option<&'static str>) -> Self {
        let mut header = (text.len() as u64).to_le_bytes().to_vec();
        header.extend(text.into_bytes());
        Self { name: name.to_owned(), header, data_len, rule }
    }

    /// The length of the whole file.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.header.len() as u64 + self.data_len
    }
}

//! Turns the bytes of a file into assertions about every reader: one oracle, driven by fuzzers and by `cargo test`.
//!
//! Each oracle returns when all is well and panics with the difference when it is not. None of them has an opinion
//! of its own about a file: the [twin] and the [reference](mod@reference) have.
//!
//! [`recipe`] -> [`verdict`], [`payload`] -> [`slots`], [`lookup`], [`view`], [`slices`] -> [`mod@rewrite`]; and, from
//! the bytes of tensors, [`numbers`]

pub mod documents;
pub mod lookup;
pub mod numbers;
pub mod payload;
pub mod recipe;
pub mod rewrite;
pub mod run;
pub mod slices;
pub mod slots;
pub mod verdict;
pub mod view;

use crate::twin::{self, Model, Options};
use crate::{reference, twin::Break};
use verdict::Content;

/// What a fuzz target does with its input: the oracle, over every file that the input stands for.
pub fn over_recipe(oracle: fn(&[u8], u64), input: &[u8]) {
    for (bytes, file_len) in recipe::files(input) {
        oracle(&bytes, file_len);
    }
}

/// The verdict of every reader on a file whose front, the header at least, is `bytes`:
///
/// * the twin's and ours are the same: rule, offset and tensor, or content and notes;
/// * what we accept, the reference accepts, with the same content; what it accepts and we do not is documented;
/// * with slots and without, and with any number of slots that suffices, the verdict is the same;
/// * every tensor is found by its name, and nothing else is.
///
/// # Panics
/// When any of this is not so.
pub fn header(bytes: &[u8], file_len: u64) {
    let options = Options::default();
    let verdict = twin::judge(bytes, file_len, &options);
    reference::check(bytes, file_len, &verdict);
    slots::agree(bytes, file_len, &options, &verdict);
    if let Ok(model) = &verdict {
        lookup::finds_each_tensor_and_nothing_else(bytes, file_len, model);
    }
}

/// What a caller can set and ask: header limits, lists of dtypes, any number of slots, names, shapes, views, slices.
///
/// # Panics
/// When an answer differs from the twin's.
pub fn index(bytes: &[u8], file_len: u64) {
    let verdict = twin::judge(bytes, file_len, &Options::default());
    header_limits(bytes, file_len, &verdict);
    dtype_lists(bytes, file_len, &verdict);
    slots::any_number(bytes, file_len, &verdict);
    view::frame(bytes, file_len);
    if let Ok(model) = &verdict {
        view::entries(bytes, file_len, model);
        view::again(bytes, file_len, model);
        slices::of_every_tensor(bytes, file_len, model);
    }
}

/// Header -> tensors -> header: an accepted file laid out by the writer rules is accepted, says the same, has the
/// reference writer's bytes, and stays as it is when it is laid out again.
///
/// # Panics
/// When any of this is not so.
pub fn rewrite(bytes: &[u8], file_len: u64) {
    if let Ok(model) = twin::judge(bytes, file_len, &Options::default()) {
        rewrite::round_trip(bytes, file_len, &model);
    }
}

/// Any bytes as elements of every dtype, and as values: what they decode to, what they encode to, alone and in slices,
/// is what the twin says, and decode, encode, decode is stable.
///
/// # Panics
/// When any of this is not so.
pub fn dtype(bytes: &[u8]) {
    numbers::codes_and_values(bytes);
}

/// Limits around the header's length: one that it keeps changes nothing, one that it breaks is the verdict.
fn header_limits(bytes: &[u8], file_len: u64, verdict: &Result<Model, Break>) {
    let Some(length) = bytes.first_chunk::<8>().map(|length| u64::from_le_bytes(*length)) else { return };
    for header_bytes_max in [0, length.saturating_sub(1), length] {
        // Nobody can allow more than the format does.
        let header_bytes_max = header_bytes_max.min(Options::default().header_bytes_max);
        let options = Options { header_bytes_max, dtypes: None };
        let narrowed = twin::judge(bytes, file_len, &options);
        assert!(narrowed == *verdict || header_bytes_max < length);
        slots::agree(bytes, file_len, &options, &narrowed);
    }
}

/// Lists of dtypes: all that occur, all but one of them, none, some list that follows from the file; two of these.
fn dtype_lists(bytes: &[u8], file_len: u64, verdict: &Result<Model, Break>) {
    let of_model = |model: &Model| model.tensors.iter().map(|tensor| tensor.dtype.clone()).collect();
    let all: Vec<String> = match verdict {
        Ok(model) => of_model(model),
        Err(_) => twin::dtypes::DTYPES.into_iter().map(|(name, _)| name.to_owned()).collect(),
    };
    let seed = recipe::digest(bytes);
    let some = twin::dtypes::DTYPES.into_iter().enumerate().filter(|(place, _)| seed >> place & 1 == 1);
    let some = some.map(|(_, (name, _))| name.to_owned()).collect();
    let but_one = all.iter().skip(1).filter(|name| Some(*name) != all.first()).cloned().collect();
    let lists = if seed >> 32 & 1 == 0 { [all, some] } else { [but_one, Vec::new()] };
    for dtypes in lists {
        let options = Options { dtypes: Some(dtypes), ..Options::default() };
        let narrowed = twin::judge(bytes, file_len, &options);
        slots::agree(bytes, file_len, &options, &narrowed);
    }
}

/// The twin's verdict in terms of what readers tell.
fn told(verdict: &Result<Model, Break>) -> Result<Content, Break> {
    verdict.as_ref().map(Content::from).map_err(Clone::clone)
}

//! Turns an accepted file into questions for tensors by name: each is found, and nothing else is.

use std::collections::HashMap;

use safestep_core::{Entry, Index, Slot};

use super::verdict::{Listed, header_of};
use crate::twin::{Model, Options, Tensor};

/// The slot-free reader looks for a name by reading the whole header, so only so many are asked of it.
const SLOT_FREE_QUESTIONS: usize = 40;

/// Asks for every tensor, and for names that are almost those of tensors; and looks at the orders of iteration.
///
/// # Panics
/// When an answer is wrong.
pub fn finds_each_tensor_and_nothing_else(bytes: &[u8], file_len: u64, model: &Model) {
    let by_name: HashMap<&str, &Tensor> =
        model.tensors.iter().map(|tensor| (tensor.name.as_str(), tensor)).collect();
    let header = header_of(bytes, file_len, &Options::default()).expect("the twin accepts");
    let mut slots = vec![Slot::EMPTY; model.tensors.len()];
    let index = match Index::build(header, &mut slots) {
        Ok(index) => index,
        // Inner objects can want more; then the oracle of slots has judged.
        Err(error) if error.rule().is_none() => return,
        Err(error) => panic!("the twin accepts, the core says {error}"),
    };
    let judged = header.judge().ok();
    for (number, question) in questions(model).iter().enumerate() {
        let expected = by_name.get(question.as_str()).copied();
        answer(question, index.get(question), expected);
        if let Some(judged) = judged.filter(|_| number < SLOT_FREE_QUESTIONS) {
            answer(question, judged.get(question), expected);
        }
    }
    let mut as_written: Vec<&Tensor> = model.tensors.iter().collect();
    as_written.sort_by_key(|tensor| tensor.place);
    assert!(as_written.iter().map(|tensor| listed(tensor)).eq(index.iter_as_written().map(Listed::from)));
}

/// Names of tensors, and names that share much with them.
fn questions(model: &Model) -> Vec<String> {
    let mut questions = Vec::new();
    for tensor in &model.tensors {
        let name = &tensor.name;
        questions.push(name.clone());
        questions.push(format!("{name}0"));
        questions.push(format!("{name}\0"));
        questions.push(name.chars().skip(1).collect());
        questions.extend(name.char_indices().next_back().map(|(last, _)| name[..last].to_owned()));
        questions.push(name.escape_default().to_string());
    }
    questions.extend(model.metadata.iter().flatten().map(|(key, _)| key.clone()));
    questions.extend(["", "__metadata__", "dtype", "\u{10ffff}"].map(str::to_owned));
    questions
}

fn listed(tensor: &Tensor) -> Listed {
    Listed {
        name: tensor.name.clone(),
        dtype: safestep_core::Dtype::from_name(&tensor.dtype).expect("a dtype").name(),
        shape: tensor.shape.clone(),
        begin: tensor.begin,
        end: tensor.end,
    }
}

fn answer(question: &str, found: Option<Entry<'_>>, expected: Option<&Tensor>) {
    assert_eq!(found.map(Listed::from), expected.map(listed), "asked for {question:?}");
}

//! Pairs of a token and the next one become a loss and a gradient, or counts: a bigram model, a row of logits for each token.
//!
//! The same on every machine: sums run in a fixed order, and `exp` and `log` are those of the crate `libm`, not of the
//! machine's own library. Only rows that a batch touches are computed, in ascending order.

use std::iter;

use safestep_core::tokens::Pcg32;

/// The logits of the next token: row x is about the tokens that follow token x.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bigram {
    vocabulary: usize,
    logits: Vec<f32>,
}

/// How often tokens followed each other in a batch: (token, next, times), ascending.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    keys: Vec<u64>,
}

impl Pairs {
    /// Takes in the pairs of a batch.
    pub(super) fn fill(&mut self, inputs: &[u32], targets: &[u32]) {
        self.keys.clear();
        self.keys.extend(
            inputs.iter().zip(targets).map(|(&token, &next)| u64::from(token) << 32 | u64::from(next)),
        );
        self.keys.sort_unstable();
    }

    /// How many pairs there are.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The pairs of each token: the token, and how often which one followed.
    fn rows(&self) -> impl Iterator<Item = (usize, &[u64])> {
        let rows = self.keys.chunk_by(|one, other| one >> 32 == other >> 32);
        rows.map(|row| (row.first().map_or(0, |key| token(key >> 32)), row))
    }
}

/// Each token that follows in a row, and how often.
fn times(row: &[u64]) -> impl Iterator<Item = (usize, usize)> {
    row.chunk_by(|one, other| one == other)
        .map(|equal| (equal.first().map_or(0, |key| token(key & 0xFFFF_FFFF)), equal.len()))
}

fn token(id: u64) -> usize {
    usize::try_from(id).unwrap_or(usize::MAX)
}

impl Bigram {
    /// A model of those logits, row after row.
    pub(super) fn from_logits(vocabulary: usize, logits: Vec<f32>) -> Self {
        Self { vocabulary, logits }
    }

    /// The logits, row after row.
    pub(super) fn logits(&self) -> &[f32] {
        &self.logits
    }

    /// The same, to change.
    pub(super) fn logits_mut(&mut self) -> &mut [f32] {
        &mut self.logits
    }

    /// The mean cross-entropy of the pairs, in nats.
    pub(super) fn loss(&self, pairs: &Pairs) -> f64 {
        let mut probabilities = vec![0.0; self.vocabulary];
        let rows = pairs.rows().map(|(token, row)| self.row_loss(token, row, &mut probabilities));
        rows.sum::<f64>() / count(pairs.len())
    }

    /// The mean cross-entropy of the pairs, and its gradient by the logits: for token x, how often it came times the
    /// softmax of row x, less how often each one followed, over the number of pairs.
    pub(super) fn loss_and_gradient(&self, pairs: &Pairs, gradient: &mut [f32]) -> f64 {
        gradient.fill(0.0);
        let mut probabilities = vec![0.0; self.vocabulary];
        let (mut loss, all) = (0.0, count(pairs.len()) as f32);
        for (token, row) in pairs.rows() {
            loss += self.row_loss(token, row, &mut probabilities);
            let Some(slopes) = row_of(self.vocabulary, gradient, token) else { continue };
            let share = count(row.len()) as f32 / all;
            for (slope, probability) in slopes.iter_mut().zip(&probabilities) {
                *slope = share * probability;
            }
            for (next, times) in times(row) {
                if let Some(slope) = slopes.get_mut(next) {
                    *slope -= count(times) as f32 / all;
                }
            }
        }
        loss / count(pairs.len())
    }

    /// The cross-entropy of a row's pairs, and the softmax of the row.
    fn row_loss(&self, token: usize, row: &[u64], probabilities: &mut [f32]) -> f64 {
        let logarithm = self.softmax(token, probabilities);
        let logits = self.row(token);
        times(row).fold(0.0, |loss, (next, times)| {
            let logit = logits.get(next).copied().unwrap_or(f32::NEG_INFINITY);
            loss + count(times) * (logarithm - f64::from(logit))
        })
    }

    /// The probabilities of what follows the token; the answer is the logarithm of the sum of the exponentials.
    fn softmax(&self, token: usize, probabilities: &mut [f32]) -> f64 {
        let logits = self.row(token);
        let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let mut sum = 0.0_f32;
        for (probability, logit) in probabilities.iter_mut().zip(logits) {
            *probability = libm::expf(logit - largest);
            sum += *probability;
        }
        for probability in probabilities.iter_mut() {
            *probability /= sum;
        }
        f64::from(largest) + libm::log(f64::from(sum))
    }

    /// Counts the pairs, and makes the logits of their rows the logarithms of the counts plus one.
    pub(super) fn count(&mut self, pairs: &Pairs, counts: &mut [u64]) {
        for (token, row) in pairs.rows() {
            let Some(counts) = row_of(self.vocabulary, counts, token) else { continue };
            for (next, times) in times(row) {
                if let Some(count) = counts.get_mut(next) {
                    *count = count.saturating_add(u64::try_from(times).unwrap_or(u64::MAX));
                }
            }
            let Some(logits) = row_of(self.vocabulary, &mut self.logits, token) else { continue };
            for (logit, count) in logits.iter_mut().zip(counts) {
                *logit = libm::log(*count as f64 + 1.0) as f32;
            }
        }
    }

    /// Text as the model would go on: `len` tokens that follow `first`, drawn by their probabilities.
    pub(super) fn sample(&self, first: u32, len: usize, random: &mut Pcg32) -> Vec<u32> {
        let mut probabilities = vec![0.0; self.vocabulary];
        let mut last = first;
        let draw = || {
            self.softmax(token(last.into()), &mut probabilities);
            // 24 bits: every such number is an f32.
            let mut rest = (random.draw() >> 8) as f32 / 16_777_216.0;
            let drawn = probabilities.iter().position(|probability| {
                rest -= probability;
                rest < 0.0
            });
            // Rounding may leave a rest behind the last one.
            let drawn = drawn.unwrap_or(self.vocabulary.saturating_sub(1));
            last = u32::try_from(drawn).unwrap_or_default();
            last
        };
        iter::repeat_with(draw).take(len).collect()
    }

    fn row(&self, token: usize) -> &[f32] {
        let begin = token.saturating_mul(self.vocabulary);
        self.logits.get(begin..begin.saturating_add(self.vocabulary)).unwrap_or_default()
    }
}

fn row_of<T>(vocabulary: usize, all: &mut [T], token: usize) -> Option<&mut [T]> {
    let begin = token.saturating_mul(vocabulary);
    all.get_mut(begin..begin.saturating_add(vocabulary))
}

/// A number of pairs as a factor: exact up to 2^53.
fn count(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(inputs: &[u32], targets: &[u32]) -> Pairs {
        let mut pairs = Pairs::default();
        pairs.fill(inputs, targets);
        pairs
    }

    #[test]
    fn a_model_that_knows_nothing_is_as_good_as_a_guess() {
        let loss = Bigram::from_logits(5, vec![0.0; 25]).loss(&pairs(&[0, 4, 2, 2], &[1, 1, 3, 3]));
        assert!((loss - 5_f64.ln()).abs() < 1e-6, "{loss}");
    }

    /// The closed form against differences of the loss.
    #[test]
    fn the_gradient_is_the_slope_of_the_loss() {
        let vocabulary = 4;
        let logits: Vec<f32> = (0..16).map(|place| ((place * 7 % 11) as f32 - 5.0) / 4.0).collect();
        let model = Bigram::from_logits(vocabulary, logits.clone());
        let pairs = pairs(&[0, 1, 1, 3, 3, 3, 0], &[2, 0, 0, 3, 1, 3, 2]);
        let mut gradient = vec![f32::NAN; 16];
        let loss = model.loss_and_gradient(&pairs, &mut gradient);
        assert_eq!(loss, model.loss(&pairs));
        for (place, slope) in gradient.iter().enumerate() {
            let shifted = |by: f32| {
                let mut logits = logits.clone();
                logits[place] += by;
                Bigram::from_logits(vocabulary, logits).loss(&pairs)
            };
            let difference = (shifted(0.01) - shifted(-0.01)) / 0.02;
            assert!((difference - f64::from(*slope)).abs() < 1e-4, "{place}: {difference} {slope}");
        }
    }

    #[test]
    fn counts_are_likelihoods() {
        let (mut model, mut counts) = (Bigram::from_logits(3, vec![0.0; 9]), vec![0; 9]);
        model.count(&pairs(&[0, 0, 0], &[1, 1, 2]), &mut counts);
        model.count(&pairs(&[2], &[2]), &mut counts);
        assert_eq!(counts, [0, 2, 1, 0, 0, 0, 0, 0, 1]);
        let expected = -(2.0 * (3.0 / 6.0_f64).ln() + (2.0 / 6.0_f64).ln()) / 3.0;
        let loss = model.loss(&pairs(&[0, 0, 0], &[1, 1, 2]));
        assert!((loss - expected).abs() < 1e-6, "{loss} {expected}");
    }

    #[test]
    fn samples_follow_the_probabilities() {
        let mut logits = vec![f32::NEG_INFINITY; 9];
        (logits[1], logits[5], logits[6]) = (0.0, 0.0, 0.0);
        let model = Bigram::from_logits(3, logits);
        assert_eq!(model.sample(0, 5, &mut Pcg32::seed(42, 54)), [1, 2, 0, 1, 2]);
    }
}

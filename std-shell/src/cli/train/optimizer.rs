//! A gradient becomes a step: AdamW or SGD with momentum, by the formulas that PyTorch uses, in f32, element by element.
//!
//! Sources: Kingma and Ba, "Adam", 2015; Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2019 (AdamW).

use clap::ValueEnum;

/// How parameters follow their gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Algorithm {
    #[value(name = "adamw")]
    /// AdamW with betas 0.9 and 0.999, epsilon 1e-8, and a decay of 0.01 that is no part of the gradient.
    AdamW,
    /// Stochastic gradient descent with a momentum of 0.9.
    Sgd,
}

const BETA_1: f64 = 0.9;
const BETA_2: f64 = 0.999;
const EPSILON: f64 = 1e-8;
const WEIGHT_DECAY: f64 = 0.01;
const MOMENTUM: f32 = 0.9;

/// An algorithm with what it remembers from step to step.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Optimizer {
    pub(super) algorithm: Algorithm,
    pub(super) lr: f64,
    /// Steps done.
    pub(super) step: u64,
    /// The arrays, in the order of [`Algorithm::keys`], each as long as the parameters.
    pub(super) arrays: Vec<Vec<f32>>,
}

impl Algorithm {
    /// What it is called.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::AdamW => "adamw",
            Self::Sgd => "sgd",
        }
    }

    /// The learning rate that does for a bigram model.
    pub(super) fn usual_lr(self) -> f64 {
        match self {
            Self::AdamW => 0.05,
            Self::Sgd => 5.0,
        }
    }

    /// What its arrays are called in a checkpoint, behind the name of the parameter.
    pub(super) fn keys(self) -> &'static [&'static str] {
        match self {
            Self::AdamW => &["exp_avg", "exp_avg_sq"],
            Self::Sgd => &["momentum_buffer"],
        }
    }
}

impl Optimizer {
    /// An optimizer that has done no step yet; its arrays have no room yet.
    pub(super) fn new(algorithm: Algorithm, lr: f64) -> Self {
        let arrays = algorithm.keys().iter().map(|_| Vec::new()).collect();
        Self { algorithm, lr, step: 0, arrays }
    }

    /// What it holds beside its arrays, as JSON: compact, keys sorted.
    pub(super) fn state(&self) -> String {
        let Self { lr, step, .. } = self;
        match self.algorithm {
            Algorithm::AdamW => format!(
                r#"{{"algorithm":"adamw","betas":[{BETA_1},{BETA_2}],"eps":{EPSILON:e},"lr":{lr:?},"step":{step},"weight_decay":{WEIGHT_DECAY}}}"#
            ),
            Algorithm::Sgd => {
                format!(r#"{{"algorithm":"sgd","lr":{lr:?},"momentum":{MOMENTUM},"step":{step}}}"#)
            }
        }
    }

    /// Moves the parameters one step.
    pub(super) fn apply(&mut self, parameters: &mut [f32], gradient: &[f32]) {
        self.step += 1;
        match (self.algorithm, self.arrays.as_mut_slice()) {
            (Algorithm::AdamW, [average, square]) => {
                adam_w(self.lr, self.step, parameters, gradient, average, square);
            }
            (Algorithm::Sgd, [buffer]) => sgd(self.lr, parameters, gradient, buffer),
            _ => {}
        }
    }
}

fn adam_w(
    lr: f64,
    step: u64,
    parameters: &mut [f32],
    gradient: &[f32],
    average: &mut [f32],
    square: &mut [f32],
) {
    // Not `powi`, which may round differently from machine to machine.
    let correction = |beta: f64| 1.0 - libm::pow(beta, step as f64);
    let step_size = (lr / correction(BETA_1)) as f32;
    let root = libm::sqrt(correction(BETA_2)) as f32;
    let (keep, epsilon) = ((1.0 - lr * WEIGHT_DECAY) as f32, EPSILON as f32);
    let (beta_1, beta_2) = (BETA_1 as f32, BETA_2 as f32);
    let moments = average.iter_mut().zip(square);
    for ((parameter, slope), (average, square)) in parameters.iter_mut().zip(gradient).zip(moments) {
        *average = beta_1 * *average + (1.0 - beta_1) * slope;
        *square = beta_2 * *square + (1.0 - beta_2) * (slope * slope);
        *parameter = *parameter * keep - step_size * *average / (square.sqrt() / root + epsilon);
    }
}

fn sgd(lr: f64, parameters: &mut [f32], gradient: &[f32], buffer: &mut [f32]) {
    let lr = lr as f32;
    for ((parameter, slope), buffer) in parameters.iter_mut().zip(gradient).zip(buffer) {
        *buffer = MOMENTUM * *buffer + slope;
        *parameter -= lr * *buffer;
    }
}

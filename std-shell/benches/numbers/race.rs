//! Contenders become medians of times: they take turns, round by round, in one process.

use std::time::{Duration, Instant};

/// How many rounds are taken.
pub(crate) struct Effort {
    /// At least so many.
    pub(crate) least: usize,
    /// More, up to so many, as long as the time is not over.
    pub(crate) most: usize,
    pub(crate) time: Duration,
}

/// The median nanoseconds of one call of each contender; so many calls are timed at once.
pub(crate) fn race(effort: &Effort, calls: u32, contenders: &mut [&mut dyn FnMut()]) -> Vec<f64> {
    let mut samples = vec![Vec::new(); contenders.len()];
    // The first calls fault pages in and warm caches.
    contenders.iter_mut().for_each(|contender| contender());
    let begin = Instant::now();
    for round in 0..effort.most {
        if round >= effort.least && begin.elapsed() > effort.time {
            break;
        }
        for (contender, samples) in contenders.iter_mut().zip(&mut samples) {
            // Once untimed: the round finds in the caches what it left there, not what the one before it did.
            contender();
            let begin = clock();
            for _ in 0..calls {
                contender();
            }
            samples.push((clock() - begin).as_secs_f64() * 1e9 / f64::from(calls));
        }
    }
    samples.into_iter().map(median).collect()
}

/// What this thread has taken of the processor's time: a long call is not timed together with those who interrupt it.
#[cfg(target_os = "linux")]
fn clock() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.try_into().expect("a thread's time is no less than zero")
}

/// The time.
#[cfg(not(target_os = "linux"))]
fn clock() -> Duration {
    static BEGIN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    BEGIN.get_or_init(Instant::now).elapsed()
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

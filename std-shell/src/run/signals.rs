//! SIGTERM and SIGUSR1 become flags that a training loop reads when it has finished a step.
//!
//! A handler only raises a flag, so a step, a save or a system call is never torn: system calls are restarted. Flags are
//! atomic; any thread may read them.
//!
//! A child that is forked (a data loader's worker) inherits the handlers. There the flags say nothing, for a child must
//! not save over its parent's files; and from its first question on, SIGTERM ends it as if nobody had caught it.

use std::io;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGTERM, SIGUSR1};
use signal_hook::{flag, low_level};

/// What SIGTERM and SIGUSR1 have asked of this process.
#[derive(Clone, Debug)]
pub struct Signals {
    stop: Arc<AtomicBool>,
    save: Arc<AtomicBool>,
    /// SIGTERM ends the process at once: raised in children alone.
    orphaned: Arc<AtomicBool>,
    process: u32,
}

impl Signals {
    /// Catches both signals from now on and for as long as the process lives: make it the first thing that a trainer does.
    ///
    /// # Errors
    /// The kernel's.
    pub fn install() -> io::Result<Self> {
        let signals = Self::detached();
        // In this order: no SIGTERM between the two calls is lost.
        flag::register(SIGTERM, Arc::clone(&signals.stop))?;
        flag::register_conditional_default(SIGTERM, Arc::clone(&signals.orphaned))?;
        flag::register(SIGUSR1, Arc::clone(&signals.save))?;
        Ok(signals)
    }

    /// Flags that no signal raises: for tests, and for trainers that are told to stop in other ways.
    pub fn detached() -> Self {
        let flag = || Arc::new(AtomicBool::new(false));
        Self { stop: flag(), save: flag(), orphaned: flag(), process: process::id() }
    }

    /// Asks as SIGTERM does.
    pub fn ask_to_stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    /// Asks as SIGUSR1 does.
    pub fn ask_to_save(&self) {
        self.save.store(true, Ordering::SeqCst);
    }

    /// Whether the process was asked to stop; it stays asked.
    pub fn stop_asked(&self) -> bool {
        self.is_ours() && self.stop.load(Ordering::SeqCst)
    }

    /// Whether a save was asked for since the last call, however often.
    pub fn take_save(&self) -> bool {
        self.is_ours() && self.save.swap(false, Ordering::SeqCst)
    }

    /// Whether this is the process that caught the signals. A child gives SIGTERM its old meaning back, and dies of one
    /// that came before it was asked.
    fn is_ours(&self) -> bool {
        if process::id() == self.process {
            return true;
        }
        self.orphaned.store(true, Ordering::SeqCst);
        if self.stop.swap(false, Ordering::SeqCst) {
            let _ = low_level::emulate_default_handler(SIGTERM);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_stays_and_a_save_is_taken_once() {
        let signals = Signals::detached();
        let other_thread = signals.clone();
        assert!(!signals.stop_asked() && !signals.take_save());
        std::thread::spawn(move || (0..10).for_each(|_| other_thread.ask_to_save())).join().unwrap();
        assert!(signals.take_save() && !signals.take_save());
        signals.ask_to_stop();
        signals.ask_to_stop();
        assert!(signals.stop_asked() && signals.stop_asked());
    }

    #[test]
    fn a_forked_child_hears_nothing() {
        let child = Signals { process: process::id().wrapping_add(1), ..Signals::detached() };
        child.ask_to_save();
        assert!(!child.take_save() && !child.stop_asked());
        assert!(child.orphaned.load(Ordering::SeqCst));
    }
}

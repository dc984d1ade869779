//! A signal that would end the program becomes an error of the next call that writes, or the end of the step that is being
//! taken; what was begun is cleaned up.
//!
//! The second signal ends the program at once.

use std::ffi::{OsString, c_int};
use std::fs;
use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use safestep::disk::{Found, Locked, Ownership};
use safestep::{Disk, Error, OsDisk};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;

use super::Failure;

/// Whether we have been asked to end.
#[derive(Debug)]
pub(super) struct Interrupt {
    /// The number of the signal; 0 is none.
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Catches SIGINT and SIGTERM from now on, and SIGHUP unless it was switched off, as `nohup` does for a reason. A file
    /// that grows beyond what the process may write (SIGXFSZ) becomes an error of the call that writes.
    pub(super) fn install() -> io::Result<Self> {
        let signal = Arc::new(AtomicUsize::new(0));
        let again = Arc::new(AtomicBool::new(false));
        let hangup = Some(SIGHUP).filter(|&number| !is_ignored(number));
        for number in [SIGINT, SIGTERM].into_iter().chain(hangup) {
            // In this order: the first signal finds the flag down and raises it.
            flag::register_conditional_default(number, Arc::clone(&again))?;
            flag::register(number, Arc::clone(&again))?;
            flag::register_usize(number, Arc::clone(&signal), usize::try_from(number).unwrap_or_default())?;
        }
        // Nobody reads this flag: that the signal is caught is enough.
        flag::register(SIGXFSZ, Arc::default())?;
        Ok(Self { signal })
    }

    /// The signal that came, if one did.
    pub(super) fn signal(&self) -> Option<usize> {
        Some(self.signal.load(Ordering::Relaxed)).filter(|&signal| signal != 0)
    }
}

/// Whether a signal is ignored already. Where nobody tells (only Linux does so without unsafe code) it is taken for ignored.
fn is_ignored(number: c_int) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    let place = u32::try_from(number.saturating_sub(1)).unwrap_or_default();
    ignored.is_none_or(|set| set.checked_shr(place).unwrap_or_default() & 1 == 1)
}

/// The machine's disk, on which nothing begins any more once a signal has come.
#[derive(Debug)]
pub(super) struct Interruptible {
    disk: OsDisk,
    interrupt: Interrupt,
}

impl Interruptible {
    pub(super) fn new(interrupt: Interrupt) -> Self {
        Self { disk: OsDisk, interrupt }
    }

    /// A disk for who writes `output`: signals are caught from now on.
    pub(super) fn install(output: &Path) -> Result<Self, Error> {
        let caught = Interrupt::install();
        caught.map(Self::new).map_err(|error| Error::io("catch signals while writing", output, error))
    }

    /// The signal that came, if one did.
    pub(super) fn signal(&self) -> Option<usize> {
        self.interrupt.signal()
    }

    /// How the work on this disk ended. What failed after a signal failed of it, unless the file is in its place.
    pub(super) fn settle<T>(&self, done: Result<T, Error>) -> Result<T, Failure> {
        match (done, self.interrupt.signal()) {
            (Err(error), Some(signal)) if !error.is_in_place() => {
                Err(Failure::Interrupted { signal, left: "; nothing was changed" })
            }
            (done, _) => Ok(done?),
        }
    }

    /// Not the kind `Interrupted`, after which a write is made again.
    fn go_on(&self) -> io::Result<&OsDisk> {
        match self.interrupt.signal() {
            None => Ok(&self.disk),
            Some(_) => Err(io::Error::other("interrupted")),
        }
    }
}

/// Taking away and making durable go on: they belong to the way back, or come when all is done.
impl Disk for Interruptible {
    type File = <OsDisk as Disk>::File;
    type Lock = <OsDisk as Disk>::Lock;

    fn look(&self, path: &Path) -> io::Result<Found> {
        self.go_on()?.look(path)
    }

    fn create(&self, path: &Path, ownership: Option<&Ownership>) -> io::Result<Self::File> {
        self.go_on()?.create(path, ownership)
    }

    fn allocate(&self, file: &Self::File, len_bytes: u64) -> io::Result<()> {
        self.go_on()?.allocate(file, len_bytes)
    }

    fn write(&self, file: &Self::File, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.go_on()?.write(file, pieces)
    }

    fn sync(&self, file: &Self::File) -> io::Result<()> {
        self.go_on()?.sync(file)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.go_on()?.rename(from, to)
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        self.disk.sync_dir(directory)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        self.disk.list(directory)
    }

    fn write_back(&self, file: &Self::File) -> io::Result<()> {
        self.go_on()?.write_back(file)
    }

    fn read(&self, path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
        self.go_on()?.read(path, most_bytes)
    }

    fn make_dir(&self, path: &Path) -> io::Result<()> {
        self.go_on()?.make_dir(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.remove_dir(path)
    }

    fn lock(&self, directory: &Path) -> io::Result<Locked<Self::Lock>> {
        self.go_on()?.lock(directory)
    }

    fn free_bytes(&self, directory: &Path) -> io::Result<u64> {
        self.go_on()?.free_bytes(directory)
    }
}

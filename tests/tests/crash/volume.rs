//! A device and the name of a file system -> a disk with it, mounted and unmounted as often as you like.
//!
//! The disk's server is a thread of this process: a test that is killed from outside, not one that fails, can stay waiting for
//! itself. Then `mount -t fusectl none DIRECTORY` and `echo 1 > DIRECTORY/NUMBER/abort` end that.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use rustix::fs::Advice;
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use tempfile::TempDir;

use super::device::Device;

/// A file system, and how it is used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    /// What the tests call it.
    pub(super) name: &'static str,
    /// What the kernel calls it.
    pub(super) kernel: &'static str,
    pub(super) options: &'static str,
    pub(super) len_bytes: u64,
    /// The program that makes it, and its arguments.
    make: &'static [&'static str],
}

/// The file systems that are looked at.
pub(super) const KINDS: [Kind; 4] = [
    Kind { name: "ext4", kernel: "ext4", options: "data=ordered", len_bytes: 64 << 20, make: MAKE_EXT4 },
    Kind {
        name: "ext4-journal",
        kernel: "ext4",
        options: "data=journal",
        len_bytes: 64 << 20,
        make: MAKE_EXT4,
    },
    Kind { name: "xfs", kernel: "xfs", options: "nouuid", len_bytes: 300 << 20, make: MAKE_XFS },
    Kind { name: "btrfs", kernel: "btrfs", options: "", len_bytes: 256 << 20, make: MAKE_BTRFS },
];

/// Nothing is left for the background to do: it would write in between.
const MAKE_EXT4: &[&str] =
    &["mkfs.ext4", "-q", "-b", "4096", "-N", "512", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"];
const MAKE_XFS: &[&str] = &["mkfs.xfs", "-q", "-K"];
const MAKE_BTRFS: &[&str] = &["mkfs.btrfs", "-q", "-K"];

/// What is missing for these tests, if anything.
pub(super) fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("mounting needs root".to_owned());
    }
    let files = ["/dev/fuse", "/dev/loop-control"].into_iter().find(|path| !Path::new(path).exists());
    let has = |name: &str| {
        let ran = Command::new(name).arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status();
        ran.is_ok()
    };
    let programs = ["losetup", MAKE_EXT4[0], MAKE_XFS[0], MAKE_BTRFS[0]].into_iter().find(|name| !has(name));
    files.or(programs).map(|name| format!("there is no {name}"))
}

/// A device under a file system.
pub(super) struct Volume {
    kind: Kind,
    /// `/dev/loop…`
    block: PathBuf,
    /// Keeps what the kernel remembers of the device in our hands.
    cache: Option<File>,
    point: TempDir,
    pub(super) device: Device,
}

impl Volume {
    pub(super) fn new(kind: Kind) -> Self {
        let device = Device::new(kind.len_bytes).unwrap();
        let mut attach = Command::new("losetup");
        let attached =
            attach.args(["--find", "--show", "--direct-io=on"]).arg(device.path()).output().unwrap();
        assert!(attached.status.success(), "{attached:?}");
        let block = PathBuf::from(String::from_utf8(attached.stdout).unwrap().trim());
        let cache = Some(File::open(&block).unwrap());
        Self { kind, block, cache, point: tempfile::tempdir().unwrap(), device }
    }

    /// Makes the file system.
    pub(super) fn format(&self) {
        let [program, arguments @ ..] = self.kind.make else { unreachable!() };
        let made = Command::new(program).args(arguments).arg(&self.block).output().unwrap();
        assert!(made.status.success(), "{made:?}");
    }

    /// Mounts it. The file system is gone again when the answer is dropped.
    pub(super) fn mount(&self) -> io::Result<Mounted<'_>> {
        // What the kernel has read of another disk is no longer true.
        if let Some(cache) = &self.cache {
            rustix::fs::fadvise(cache, 0, None, Advice::DontNeed)?;
        }
        let options = CString::new(self.kind.options)?;
        mount(&self.block, self.point.path(), self.kind.kernel, MountFlags::NOATIME, options.as_c_str())?;
        Ok(Mounted { volume: self })
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        self.cache = None;
        let _ = Command::new("losetup").arg("--detach").arg(&self.block).status();
    }
}

/// A file system that is mounted.
pub(super) struct Mounted<'v> {
    volume: &'v Volume,
}

impl Mounted<'_> {
    pub(super) fn path(&self) -> &Path {
        self.volume.point.path()
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let began = Instant::now();
        while unmount(self.path(), UnmountFlags::empty()) == Err(Errno::BUSY) {
            if began.elapsed().as_secs() > 10 {
                let _ = unmount(self.path(), UnmountFlags::DETACH);
                return;
            }
            std::thread::yield_now();
        }
    }
}

//! The bar of a long check or packing, on a terminal: it is drawn, it moves, and it is gone at the end.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::Stdio;
use std::thread;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use safestep::tokens::{ShardHeader, ShardKind};

use super::super::{Ran, collect, program};

/// Runs the program with a terminal of eighty columns as standard error; what came to be seen there.
fn on_a_terminal(directory: &Path, arguments: &str) -> (Ran, String) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    tcsetwinsize(&master, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let terminal = fs::File::options().read(true).write(true).open(name).unwrap();
    let mut command = program();
    command.current_dir(directory).args(arguments.split(' ')).env("TERM", "xterm").env_remove("COLUMNS");
    let child = command.stdout(Stdio::piped()).stderr(terminal).spawn().unwrap();
    // The terminal is ours to close, or its other end never hears of the end.
    drop(command);
    let seen = thread::spawn(move || {
        let (mut master, mut seen) = (fs::File::from(master), Vec::new());
        // When the last one has closed it, reading is an error.
        let _ = master.read_to_end(&mut seen);
        String::from_utf8_lossy(&seen).into_owned()
    });
    (collect(child), seen.join().unwrap())
}

/// As many zeros as a header can tell, and one more id.
fn large_shard(path: &Path, last: u32) {
    use std::os::unix::fs::FileExt as _;
    let header = ShardHeader::new(ShardKind::Wide, i32::MAX as u32, 1).unwrap();
    let mut front = [0; 1024];
    header.encode(&mut front);
    fs::write(path, front).unwrap();
    let file = fs::File::options().write(true).open(path).unwrap();
    let len = header.file_len().value();
    file.set_len(len).unwrap();
    file.write_at(&last.to_le_bytes(), len - 4).unwrap();
}

#[test]
fn a_bar_that_moves_and_goes() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    large_shard(&at.join("large.bin"), 1);
    fs::copy(super::ten().1, at.join("small.bin")).unwrap();
    // The last id is bad, so packing ends before it writes.
    let table = [
        ("tokens check large.bin", "large.bin: T2.id at byte 8589935608", "of 8.59 GB"),
        ("tokens pack large.bin --from shard --out out.bin --vocab 1", "", "of 17.18 GB"),
    ];
    for (arguments, says, total) in table {
        let (ran, seen) = on_a_terminal(at, arguments);
        assert!(ran.expect(1).starts_with(says), "{ran:?}");
        let frames: Vec<&str> = seen.split('\r').filter(|frame| frame.contains(total)).collect();
        assert!(frames.len() > 3, "{seen:?}");
        let percents: Vec<u32> = frames
            .iter()
            .filter_map(|frame| frame.split(" %").next()?.rsplit(' ').next()?.parse().ok())
            .collect();
        assert!(percents.len() == frames.len() && percents.is_sorted(), "{percents:?}");
        assert!(percents.first() < percents.last(), "{percents:?}");
        // The line is cleared behind the last frame.
        let after = &seen[seen.rfind(total).unwrap()..];
        assert!(after.contains("\u{1b}[2K"), "{after:?}");
        assert!(seen.contains('\u{2588}'), "{seen:?}");
    }
    // What is over in a moment has none, and neither has what nobody watches.
    let (ran, seen) = on_a_terminal(at, "tokens check small.bin");
    assert_eq!((ran.expect(0), seen.as_str()), ("small.bin: good, 10 ids, all below 20\n", ""));
}

//! A number of items -> a vector with room for exactly them, or an error: where memory is short, a file fails and not
//! the process.
//!
//! For all that grows with a header; what has a fixed size is allocated as usual.

use std::fmt::{self, Display, Write as _};
use std::io;

/// As many copies of an item.
pub(crate) fn filled<T: Clone>(item: T, len: usize) -> io::Result<Vec<T>> {
    let mut items = Vec::new();
    items.try_reserve_exact(len)?;
    items.resize(len, item);
    Ok(items)
}

/// At most `len` items.
pub(crate) fn gathered<T>(items: impl Iterator<Item = io::Result<T>>, len: usize) -> io::Result<Vec<T>> {
    let mut gathered = Vec::new();
    gathered.try_reserve_exact(len)?;
    for item in items.take(len) {
        gathered.push(item?);
    }
    Ok(gathered)
}

/// What something displays, with room for `len` bytes from the start.
pub(crate) fn text(shown: &impl Display, len: usize) -> io::Result<String> {
    let mut text = Growing(String::new());
    text.0.try_reserve_exact(len)?;
    write!(text, "{shown}").map_err(|fmt::Error| io::ErrorKind::OutOfMemory)?;
    Ok(text.0)
}

/// Text that grows as long as there is memory.
struct Growing(String);

impl fmt::Write for Growing {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        self.0.try_reserve(piece.len()).map_err(|_| fmt::Error)?;
        self.0.push_str(piece);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_an_error() {
        let out_of_memory = |error: io::Error| error.kind() == io::ErrorKind::OutOfMemory;
        assert!(filled(0_u64, usize::MAX).is_err_and(out_of_memory));
        assert!(gathered([Ok(1)].into_iter(), usize::MAX).is_err_and(out_of_memory));
        assert!(text(&"a", usize::MAX).is_err_and(out_of_memory));
        assert_eq!(filled(7, 3).unwrap(), [7, 7, 7]);
        assert_eq!(gathered([1, 2, 3].into_iter().map(Ok), 2).unwrap(), [1, 2]);
        assert!(gathered([Ok(1), Err(io::ErrorKind::OutOfMemory.into())].into_iter(), 2).is_err());
        assert_eq!(text(&"größe", 0).unwrap(), "größe");
    }
}

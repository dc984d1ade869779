//! Headers in flash become verdicts and entries, on a Cortex-M0; what comes out goes over semihosting.
//!
//! The exit code of QEMU is 0 if all is as it should be. Text that stands for files is in a section of its own, so that the
//! size of the image can be told without it.
#![no_std]
#![no_main]

mod testdata;
#[cfg(feature = "whole")]
mod whole;

use core::panic::PanicInfo;
use cortex_m_rt::entry;
use cortex_m_semihosting::debug;
use safestep_core::{Frame, Index, Limits, Rule, Slot};

/// Judges a file that is longer than its front by `data_bytes`: where the tensor "b" begins in the data, or where R4.size is
/// broken in the file.
#[inline(never)]
fn place(front: &[u8], data_bytes: u64, slots: &mut [Slot]) -> u64 {
    let file_bytes = front.len() as u64 + data_bytes;
    let index = Frame::read(front, file_bytes, Limits::default())
        .and_then(|frame| frame.header(front.get(8..).unwrap_or_default()))
        .and_then(|header| Index::build(header, slots));
    match index {
        Ok(index) => index.get("b").map_or(u64::MAX, |tensor| tensor.span().begin().value()),
        Err(error) if error.rule() == Some(Rule::Size) => error.at().value(),
        Err(_) => u64::MAX,
    }
}

#[entry]
fn main() -> ! {
    static mut SLOTS: [Slot; 4] = [Slot::EMPTY; 4];
    #[cfg(feature = "trip")]
    if testdata::GOOD[core::hint::black_box(usize::MAX)] == 0 {
        debug::exit(debug::EXIT_FAILURE);
    }
    let passed = place(&testdata::GOOD, 29, SLOTS) == 24
        && place(&testdata::BROKEN, 9, SLOTS) == 57
        && place(&testdata::HUGE, 6_000_000_005, SLOTS) == 6_000_000_000;
    #[cfg(feature = "whole")]
    let passed = passed && whole::holds(SLOTS);
    debug::exit(if passed { debug::EXIT_SUCCESS } else { debug::EXIT_FAILURE });
    loop {}
}

/// The machine's interrupts: none is used, and cortex-m-rt wants one at least.
#[unsafe(link_section = ".vector_table.interrupts")]
#[unsafe(no_mangle)]
static __INTERRUPTS: [unsafe extern "C" fn(); 1] = [DefaultHandler];

unsafe extern "C" {
    fn DefaultHandler();
}

#[panic_handler]
#[inline(never)]
fn panic(_: &PanicInfo<'_>) -> ! {
    debug::exit(debug::EXIT_FAILURE);
    loop {}
}

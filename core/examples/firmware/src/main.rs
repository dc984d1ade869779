#![no_std]
#![no_main]
use core::panic::PanicInfo;
use cortex_m_rt::entry;
use cortex_m_semihosting::debug;
use safestep_core::{Frame, Index, Limits, Slot, Error};

#[unsafe(link_section = ".testdata")]
static GOOD: [u8; 152] = *b"\x90\0\0\0\0\0\0\0{\"__metadata__\":{\"format\":\"pt\"},\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},\"b\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[24,29]}}  ";

fn build<'h,'s>(file: &'h [u8], len: u64, slots: &'s mut [Slot]) -> Result<Index<'h,'s>, Error> {
    let frame = Frame::read(file, len, Limits::default())?;
    let header = frame.header(frame.header_span().of(file).unwrap_or_default())?;
    Index::build(header, slots)
}
fn good() -> bool {
    let mut slots = [Slot::EMPTY; 4];
    let Ok(index) = build(&GOOD, 152+29, &mut slots) else { return false };
    index.get("b").is_some_and(|t| t.span().begin().value() == 24)
}
#[entry]
fn main() -> ! {
    debug::exit(if good() { debug::EXIT_SUCCESS } else { debug::EXIT_FAILURE });
    loop {}
}
#[panic_handler]
#[inline(never)]
fn panic(_: &PanicInfo<'_>) -> ! { debug::exit(debug::EXIT_FAILURE); loop {} }

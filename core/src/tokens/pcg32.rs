//! A seed becomes random numbers: PCG32 (XSH-RR 64/32), whose whole state is two integers.
//!
//! The formula is O'Neill's, "PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms for Random Number
//! Generation" (2014), in the spelling of its minimal C library. Not for secrets.

use core::num::NonZeroU32;

/// A generator of random numbers.
///
/// ```
/// use safestep_core::tokens::Pcg32;
/// let mut generator = Pcg32::seed(42, 54);
/// assert_eq!(generator.state(), 0x1857_06b8_2c2e_03f8);
/// assert_eq!([generator.draw(), generator.draw()], [0xa15c_02b7, 0x7b47_f409]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pcg32 {
    state: u64,
    /// Always odd; it says which of 2^63 sequences this is.
    inc: u64,
}

const MULTIPLIER: u64 = 6_364_136_223_846_793_005;

impl Pcg32 {
    /// The generator of a seed, in the sequence of that number, whose highest bit does not count.
    #[must_use]
    pub const fn seed(seed: u64, sequence: u64) -> Self {
        let mut generator = Self { state: 0, inc: sequence << 1 | 1 };
        generator.step();
        generator.state = generator.state.wrapping_add(seed);
        generator.step();
        generator
    }

    /// The generator with that state; `None` if `inc` is even, which none has.
    #[must_use]
    pub const fn restore(state: u64, inc: u64) -> Option<Self> {
        if inc & 1 == 1 { Some(Self { state, inc }) } else { None }
    }

    /// What changes with each number drawn.
    #[must_use]
    pub const fn state(&self) -> u64 {
        self.state
    }

    /// What stays: an odd number.
    #[must_use]
    pub const fn inc(&self) -> u64 {
        self.inc
    }

    /// The next 32 random bits.
    pub const fn draw(&mut self) -> u32 {
        let old = self.state;
        self.step();
        let [a, b, c, d, ..] = (((old >> 18) ^ old) >> 27).to_le_bytes();
        let [.., turns] = old.to_le_bytes();
        u32::from_le_bytes([a, b, c, d]).rotate_right((turns >> 3) as u32)
    }

    /// A number below `bound`, each as likely as the others. It draws once at least, also when only 0 is below.
    pub fn below(&mut self, bound: NonZeroU32) -> u32 {
        // 2^32 mod bound: so many of the lowest draws would make the small numbers likelier.
        let unfair = bound.get().wrapping_neg() % bound;
        loop {
            let drawn = self.draw();
            if drawn >= unfair {
                return drawn % bound;
            }
        }
    }

    const fn step(&mut self) {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(self.inc);
    }
}

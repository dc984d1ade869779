//! The reader's rules by id, in the order in which the first broken one is the verdict.

use core::fmt;

macro_rules! rules {
    ($( $variant:ident $id:literal $doc:literal ),+ $(,)?) => {
        /// A rule that a file can break. `Ord` is the order of precedence: the least broken rule is the verdict.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Rule { $( #[doc = $doc] $variant ),+ }

        impl Rule {
            /// All rules, in order.
            pub const ALL: &'static [Self] = &[ $( Self::$variant ),+ ];

            /// The place among the rules, from 1 on.
            pub(crate) const fn rank(self) -> u32 {
                (self as u32).wrapping_add(1)
            }

            /// The id under which the rule is documented, such as `R4.size`.
            #[must_use]
            pub const fn id(self) -> &'static str {
                match self { $( Self::$variant => $id ),+ }
            }
        }
    };
}

rules! {
    Short "R1.short" "The file has fewer than 8 bytes.",
    TooLarge "R1.too_large" "The header is longer than the limit.",
    PastEnd "R1.past_end" "The header ends behind the file.",
    Start "R2.start" "The header does not begin with `{`.",
    Utf8 "R2.utf8" "The header is not UTF-8.",
    Json "R2.json" "The header is not one JSON object.",
    Trailing "R2.trailing" "Something other than white space follows the header's closing brace.",
    Duplicate "R2.duplicate" "Two keys are equal.",
    Metadata "R3.metadata" "`__metadata__` is neither an object of strings nor `null`.",
    Field "R4.field" "An entry is not an object of exactly dtype, shape and offsets.",
    Dtype "R4.dtype" "The dtype is unknown or not allowed.",
    Shape "R4.shape" "The shape is not an array of integers.",
    Offsets "R4.offsets" "The offsets are not two integers in order.",
    Overflow "R4.overflow" "The size is beyond 64 bits.",
    Bits "R4.bits" "The elements do not fill whole bytes.",
    Size "R4.size" "The offsets hold another number of bytes than shape and dtype.",
    Gap "R5.gap" "Bytes of the data belong to no tensor.",
    Overlap "R5.overlap" "Bytes of the data belong to two tensors.",
    DataShort "R5.past_end" "The data ends before the last tensor does.",
    Surplus "R5.surplus" "Bytes remain after the last tensor.",
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.id())
    }
}

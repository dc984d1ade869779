//! The core's own loops for F16 become loops for a larger machine, without a kernel: by the compiler alone.
//!
//! No program does so, for F16 has its instruction there; it is how the other formats would do that have none.

use safestep::kernels::Level;

use crate::paths::Ways;

/// The levels of this machine that the loops are compiled for, and the shares of memcpy's speed that were promised there,
/// of decoding and of encoding.
#[cfg(target_arch = "x86_64")]
pub(crate) fn f16() -> impl Iterator<Item = (Level, Ways<'static>, [f64; 2])> {
    let avx512 = Ways {
        // SAFETY: below, only what this machine has is handed out.
        decode: &|codes, values| unsafe { x86::decode_avx512(codes, values) },
        // SAFETY: as above.
        encode: &|values, codes, beyond| unsafe { x86::encode_avx512(values, codes, beyond) },
    };
    let avx2 = Ways {
        // SAFETY: as above.
        decode: &|codes, values| unsafe { x86::decode_avx2(codes, values) },
        // SAFETY: as above.
        encode: &|values, codes, beyond| unsafe { x86::encode_avx2(values, codes, beyond) },
    };
    let all = [(Level::Avx2, avx2, [0.44, 0.22]), (Level::Avx512, avx512, [0.61, 0.38])];
    all.into_iter().filter(|(level, ..)| level.is_available())
}

/// None were promised elsewhere.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn f16() -> impl Iterator<Item = (Level, Ways<'static>, [f64; 2])> {
    std::iter::empty()
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use safestep::safestep_core::numbers::{F16, OutOfRange, portable};

    #[target_feature(enable = "avx2")]
    pub(super) fn decode_avx2(codes: &[u8], values: &mut [f32]) {
        portable::decode::<F16>(codes, values);
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn encode_avx2(values: &[f32], codes: &mut [u8], beyond: OutOfRange) {
        assert_eq!(portable::encode::<F16>(values, codes, beyond), None);
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
    pub(super) fn decode_avx512(codes: &[u8], values: &mut [f32]) {
        portable::decode::<F16>(codes, values);
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
    pub(super) fn encode_avx512(values: &[f32], codes: &mut [u8], beyond: OutOfRange) {
        assert_eq!(portable::encode::<F16>(values, codes, beyond), None);
    }
}

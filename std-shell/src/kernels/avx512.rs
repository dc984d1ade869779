//! The loops for AVX-512: 64 elements at a time.
//!
//! Decoding: every format of at most eight bits is a table in registers. A code's f32 has sixteen bits of zeros below; the
//! two bytes above them are looked up each for itself, and put in place by one permutation for sixteen elements.
//!
//! Encoding: a power of two is added next to which the last bit of an f32 is that of the format, so that the addition
//! rounds; it is the same one for all subnormals, and made of the value's own exponent by the multiplication that comes
//! with the addition. Of the sum, exponent and mantissa are then put together as a code.
//!
//! `blocks`, `next_odd`, `rescan`, `to_*` and `pack` have twins in avx2.rs: what changes here changes there.

use core::arch::x86_64::*;
use std::sync::OnceLock;

use safestep_core::Dtype;
use safestep_core::numbers::{Format, OutOfRange, Packing, portable};

use super::fields::{Fields, INFINITY};
use super::stream::{Streaming, fenced, put};
use super::{load, store};

/// Elements of one turn.
const BLOCK: usize = 64;

/// From so many bytes on, what is written goes past the caches, which would not hold it and would read it before.
const STREAMED_BYTES: usize = 16 << 20;

/// Decodes all elements.
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn decode<F: Format>(bytes: &[u8], values: &mut [f32]) {
    let (streams, head) = streams(values);
    let bits = F::DTYPE.bits() as usize;
    let (Some((head_values, values)), Some((head_bytes, bytes))) =
        (values.split_at_mut_checked(head), bytes.split_at_checked(head * bits / 8))
    else {
        return portable::decode::<F>(bytes, values);
    };
    portable::decode::<F>(head_bytes, head_values);
    fenced(streams, |streaming| match F::PACKING {
        Packing::Pair => halves::<F>(bytes, values, streaming),
        Packing::Byte => small::<F, 64>(bytes, values, streaming),
        Packing::FourInThree => small::<F, 48>(bytes, values, streaming),
        Packing::TwoInOne => small::<F, 32>(bytes, values, streaming),
    });
}

/// F16, for which there is an instruction, and BF16, which is a half already.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn halves<F: Format>(bytes: &[u8], values: &mut [f32], streaming: Option<&Streaming>) {
    let (values, last_values) = values.as_chunks_mut::<16>();
    let (bytes, last_bytes) = bytes.as_chunks::<32>();
    for (values, bytes) in values.iter_mut().zip(bytes) {
        let codes = load(bytes);
        let bits = match F::DTYPE {
            Dtype::F16 => _mm512_castps_si512(_mm512_cvtph_ps(codes)),
            _ => _mm512_slli_epi32(_mm512_cvtepu16_epi32(codes), 16),
        };
        put(values, bits, streaming);
    }
    portable::decode::<F>(last_bytes, last_values);
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn small<F: Format, const BYTES: usize>(bytes: &[u8], values: &mut [f32], streaming: Option<&Streaming>) {
    let (values, last_values) = values.as_chunks_mut::<BLOCK>();
    let (bytes, last_bytes) = bytes.as_chunks::<BYTES>();
    if !values.is_empty() {
        let table = Table::of::<F>();
        let halves = [&table.low, &table.high].map(|half| [0, 1, 2, 3].map(|part| load(&half[part])));
        let places: [__m512i; 4] = [0, 1, 2, 3].map(|part| load(&PLACES[part]));
        for (values, bytes) in values.iter_mut().zip(bytes) {
            let codes = codes::<F>(bytes);
            let [low, high] = look_up::<F>(halves, codes);
            let (values, _) = values.as_chunks_mut::<16>();
            for (values, places) in values.iter_mut().zip(places) {
                let bits = _mm512_maskz_permutex2var_epi8(0xCCCC_CCCC_CCCC_CCCC, low, places, high);
                put(values, bits, streaming);
            }
        }
    }
    portable::decode::<F>(last_bytes, last_values);
}

/// Whether what is written is so much that it goes past the caches; then also how many elements stand before the first
/// line of memory. They fill whole bytes on both sides, or nothing streams.
fn streams<T>(written: &[T]) -> (bool, usize) {
    let head = written.as_ptr().align_offset(64);
    if size_of_val(written) >= STREAMED_BYTES && head.is_multiple_of(4) { (true, head) } else { (false, 0) }
}

/// The 64 codes, a byte each; what stands above a code's bits is of no meaning.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn codes<F: Format>(bytes: &[u8]) -> __m512i {
    let empty = _mm512_setzero_si512();
    match F::PACKING {
        Packing::TwoInOne => {
            let Some(bytes) = bytes.first_chunk::<32>() else { return empty };
            let pairs = _mm512_cvtepu8_epi16(load(bytes));
            _mm512_or_si512(pairs, _mm512_slli_epi16(pairs, 4))
        }
        Packing::FourInThree => {
            let (Some(front), Some(back)) = (bytes.first_chunk::<32>(), bytes.last_chunk::<16>()) else {
                return empty;
            };
            let together = _mm512_inserti32x4(_mm512_castsi256_si512(load(front)), load(back), 2);
            let sixes = _mm512_permutexvar_epi8(load(&SIXES), together);
            // Eight offsets of six bits each.
            _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x2A24_1E18_120C_0600), sixes)
        }
        _ => bytes.first_chunk::<64>().map_or(empty, load),
    }
}

/// Both upper bytes of the f32 of each code.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn look_up<F: Format>([low, high]: [[__m512i; 4]; 2], codes: __m512i) -> [__m512i; 2] {
    if !matches!(F::PACKING, Packing::Byte) {
        return [low, high].map(|[only, ..]| _mm512_permutexvar_epi8(codes, only));
    }
    let lower = [low, high].map(|[a, b, ..]| _mm512_permutex2var_epi8(a, codes, b));
    if matches!(F::DTYPE, Dtype::F8E4M3 | Dtype::F8E5M2) {
        // The upper half of the codes is the lower one with the sign.
        let [low, high] = lower;
        return [low, _mm512_ternarylogic_epi32::<0xF8>(high, codes, _mm512_set1_epi8(-0x80))];
    }
    let [low_upper, high_upper] = [low, high].map(|[.., c, d]| _mm512_permutex2var_epi8(c, codes, d));
    let upper = _mm512_movepi8_mask(codes);
    let [low, high] = lower;
    [_mm512_mask_blend_epi8(upper, low, low_upper), _mm512_mask_blend_epi8(upper, high, high_upper)]
}

/// For 256 codes the two upper bytes of their f32; those of fewer bits repeat.
struct Table {
    low: [[u8; 64]; 4],
    high: [[u8; 64]; 4],
}

impl Table {
    fn of<F: Format>() -> &'static Self {
        static TABLES: [OnceLock<Table>; 8] = [const { OnceLock::new() }; 8];
        let place = match F::DTYPE {
            Dtype::F4 => 0,
            Dtype::F6E2M3 => 1,
            Dtype::F6E3M2 => 2,
            Dtype::F8E5M2 => 3,
            Dtype::F8E4M3 => 4,
            Dtype::F8E8M0 => 5,
            Dtype::F8E4M3Fnuz => 6,
            _ => 7,
        };
        TABLES[place].get_or_init(Self::new::<F>)
    }

    fn new<F: Format>() -> Self {
        let mut table = Self { low: [[0; 64]; 4], high: [[0; 64]; 4] };
        let entries = table.low.as_flattened_mut().iter_mut().zip(table.high.as_flattened_mut());
        for ((low, high), code) in entries.zip(0..) {
            [_, _, *low, *high] = F::decode(code).to_le_bytes();
        }
        table
    }
}

/// Encodes all elements; whether none was refused.
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn encode<F: Format>(values: &[f32], bytes: &mut [u8], beyond: OutOfRange) -> bool {
    match (F::PACKING, beyond) {
        (Packing::Pair, OutOfRange::Refuse) => pairs::<F, false>(values, bytes),
        (Packing::Pair, OutOfRange::Saturate) => pairs::<F, true>(values, bytes),
        (Packing::Byte, OutOfRange::Refuse) => blocks::<F, 64, false>(values, bytes, None),
        (Packing::Byte, OutOfRange::Saturate) => blocks::<F, 64, true>(values, bytes, None),
        (Packing::FourInThree, OutOfRange::Refuse) => blocks::<F, 48, false>(values, bytes, None),
        (Packing::FourInThree, OutOfRange::Saturate) => blocks::<F, 48, true>(values, bytes, None),
        (Packing::TwoInOne, OutOfRange::Refuse) => blocks::<F, 32, false>(values, bytes, None),
        (Packing::TwoInOne, OutOfRange::Saturate) => blocks::<F, 32, true>(values, bytes, None),
    }
}

/// Formats of two bytes write a third of all that moves, which is worth streaming.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn pairs<F: Format, const SATURATE: bool>(values: &[f32], bytes: &mut [u8]) -> bool {
    let (streams, head) = streams(bytes);
    let (Some((head_values, values)), Some((head_bytes, bytes))) =
        (values.split_at_checked(head / 2), bytes.split_at_mut_checked(head))
    else {
        return rescan::<F, SATURATE>(values, bytes);
    };
    rescan::<F, SATURATE>(head_values, head_bytes)
        && fenced(streams, |streaming| blocks::<F, 128, SATURATE>(values, bytes, streaming))
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn blocks<F: Format, const BYTES: usize, const SATURATE: bool>(
    values: &[f32],
    bytes: &mut [u8],
    streaming: Option<&Streaming>,
) -> bool {
    let (values, last_values) = values.as_chunks::<BLOCK>();
    let (bytes, last_bytes) = bytes.as_chunks_mut::<BYTES>();
    let mut blocks = values.iter().zip(bytes);
    while let Some((values, bytes)) = next_odd::<F, BYTES, SATURATE>(&mut blocks, streaming) {
        if !rescan::<F, SATURATE>(values, bytes) {
            return false;
        }
    }
    rescan::<F, SATURATE>(last_values, last_bytes)
}

/// Encodes blocks up to one that is not plain work, which is the answer.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn next_odd<'a, F: Format, const BYTES: usize, const SATURATE: bool>(
    blocks: &mut impl Iterator<Item = (&'a [f32; BLOCK], &'a mut [u8; BYTES])>,
    streaming: Option<&Streaming>,
) -> Option<(&'a [f32; BLOCK], &'a mut [u8; BYTES])> {
    loop {
        let (values, bytes) = blocks.next()?;
        let (vectors, _) = values.as_chunks::<16>();
        let [a, b, c, d] = vectors else { return None };
        let vectors: [__m512; 4] = [load(a), load(b), load(c), load(d)];
        let plain = match F::DTYPE {
            Dtype::F16 => to_f16::<SATURATE>(vectors, bytes, streaming),
            Dtype::Bf16 => to_bf16::<SATURATE>(vectors, bytes, streaming),
            Dtype::F8E8M0 => to_e8m0(vectors, bytes),
            _ => to_small::<F, SATURATE>(vectors, bytes),
        };
        if !plain {
            return Some((values, bytes));
        }
    }
}

/// The core's own loop, for a block that is not plain, and for the last elements.
#[inline(never)]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn rescan<F: Format, const SATURATE: bool>(values: &[f32], bytes: &mut [u8]) -> bool {
    let beyond = if SATURATE { OutOfRange::Saturate } else { OutOfRange::Refuse };
    portable::encode::<F>(values, bytes, beyond).is_none()
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn no_nan([a, b, c, d]: [__m512; 4]) -> bool {
    _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, b) | _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(c, d) == 0
}

/// Between the largest values of either sign, if that was asked for.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn clamp<const SATURATE: bool>(vector: __m512, largest: f32) -> __m512 {
    if !SATURATE {
        return vector;
    }
    _mm512_max_ps(_mm512_min_ps(vector, _mm512_set1_ps(largest)), _mm512_set1_ps(-largest))
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn to_f16<const SATURATE: bool>(
    vectors: [__m512; 4],
    bytes: &mut [u8],
    streaming: Option<&Streaming>,
) -> bool {
    // What streams is written once only.
    if !no_nan(vectors) {
        return false;
    }
    let [a, b, c, d] = vectors.map(|vector| {
        let vector = clamp::<SATURATE>(vector, 65_504.0);
        _mm512_cvtps_ph::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(vector)
    });
    for (bytes, [a, b]) in bytes.as_chunks_mut::<64>().0.iter_mut().zip([[a, b], [c, d]]) {
        put(bytes, _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1), streaming);
    }
    true
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn to_bf16<const SATURATE: bool>(
    vectors: [__m512; 4],
    bytes: &mut [u8],
    streaming: Option<&Streaming>,
) -> bool {
    // What streams is written once only.
    if !no_nan(vectors) {
        return false;
    }
    let [a, b, c, d] = vectors.map(|vector| {
        let bits = _mm512_castps_si512(clamp::<SATURATE>(vector, f32::from_bits(0x7F7F_0000)));
        let odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
        _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF)), odd)
    });
    let upper: __m512i = load(&UPPER_HALVES);
    for (bytes, [a, b]) in bytes.as_chunks_mut::<64>().0.iter_mut().zip([[a, b], [c, d]]) {
        put(bytes, _mm512_permutex2var_epi16(a, upper, b), streaming);
    }
    true
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn to_e8m0(vectors: [__m512; 4], bytes: &mut [u8]) -> bool {
    // Plain are the normal ones above zero, up to the largest.
    let least = _mm512_set1_epi32(1 << 23);
    let bits = vectors.map(|vector| _mm512_castps_si512(vector));
    let [a, b, c, d] = bits.map(|bits| _mm512_sub_epi32(bits, least));
    let most = _mm512_max_epu32(_mm512_max_epu32(a, b), _mm512_max_epu32(c, d));
    let codes = bits.map(|bits| _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(1 << 22)), 23));
    if let Some(bytes) = bytes.first_chunk_mut::<64>() {
        store(bytes, gather(codes, &LOW_BYTES));
    }
    _mm512_cmpgt_epu32_mask(most, _mm512_set1_epi32(0x7F00_0000 - (1 << 23))) == 0
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn to_small<F: Format, const SATURATE: bool>(vectors: [__m512; 4], bytes: &mut [u8]) -> bool {
    let fields = const { Fields::of::<F>() };
    let constant = |bits: u32| _mm512_set1_epi32(bits.cast_signed());
    let bits = vectors.map(|vector| _mm512_castps_si512(vector));
    let magnitudes = bits.map(|bits| _mm512_and_si512(bits, constant(0x7FFF_FFFF)));
    let [a, b, c, d] = magnitudes;
    let most = _mm512_max_epu32(_mm512_max_epu32(a, b), _mm512_max_epu32(c, d));
    let codes = magnitudes.map(|magnitude| {
        let magnitude =
            if SATURATE { _mm512_min_epu32(magnitude, constant(F::LARGEST.to_bits())) } else { magnitude };
        let power = _mm512_and_si512(magnitude, constant(INFINITY));
        let power = _mm512_castsi512_ps(_mm512_max_epu32(power, constant(fields.least())));
        let sum = _mm512_fmadd_ps(power, _mm512_set1_ps(fields.coarse()), _mm512_castsi512_ps(magnitude));
        // The mantissa from the lower half, the exponent from the upper one, together a code in the second byte.
        let weights = constant((2 << fields.mantissa_bits << 16) | 256);
        _mm512_madd_epi16(_mm512_castps_si512(sum), weights)
    });
    let surplus = _mm512_set1_epi8(fields.surplus() as u8 as i8);
    let codes = _mm512_sub_epi8(gather(codes, &SECOND_BYTES), surplus);
    let tops = gather(bits, &TOP_BYTES);
    let signs = _mm512_srl_epi16(tops, _mm_cvtsi32_si128((8 - fields.bits).cast_signed()));
    let sign = _mm512_set1_epi8((1_u8 << (fields.bits - 1)).cast_signed());
    let codes = if matches!(F::DTYPE, Dtype::F8E4M3Fnuz | Dtype::F8E5M2Fnuz) {
        let signs = _mm512_and_si512(signs, sign);
        signed_unless_zero(codes, signs)
    } else {
        // The code, or the sign's bit.
        _mm512_ternarylogic_epi32::<0xF8>(codes, signs, sign)
    };
    pack::<F>(codes, bytes);
    let limit = if SATURATE { INFINITY } else { F::LARGEST.to_bits() };
    _mm512_cmpgt_epu32_mask(most, constant(limit)) == 0
}

/// A sign where the code is not zero.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn signed_unless_zero(codes: __m512i, signs: __m512i) -> __m512i {
    _mm512_or_si512(codes, _mm512_maskz_mov_epi8(_mm512_test_epi8_mask(codes, codes), signs))
}

/// One byte of each of 64 elements.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn gather([a, b, c, d]: [__m512i; 4], places: &[u8; 64]) -> __m512i {
    let places = load(places);
    let (front, back) = (_mm512_permutex2var_epi8(a, places, b), _mm512_permutex2var_epi8(c, places, d));
    _mm512_inserti64x4(front, _mm512_castsi512_si256(back), 1)
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn pack<F: Format>(codes: __m512i, bytes: &mut [u8]) {
    match F::PACKING {
        Packing::TwoInOne => {
            let pairs = _mm512_maddubs_epi16(codes, _mm512_set1_epi16(0x1001));
            if let Some(bytes) = bytes.first_chunk_mut::<32>() {
                store(bytes, _mm512_cvtepi16_epi8(pairs));
            }
        }
        Packing::FourInThree => {
            let pairs = _mm512_maddubs_epi16(codes, _mm512_set1_epi16(0x4001));
            let fours = _mm512_madd_epi16(pairs, _mm512_set1_epi32(0x1000_0001));
            let packed = _mm512_permutexvar_epi8(load(&THREES), fours);
            if let Some(bytes) = bytes.first_chunk_mut::<32>() {
                store(bytes, _mm512_castsi512_si256(packed));
            }
            if let Some(bytes) = bytes.last_chunk_mut::<16>() {
                store(bytes, _mm512_extracti32x4_epi32::<2>(packed));
            }
        }
        _ => {
            if let Some(bytes) = bytes.first_chunk_mut::<64>() {
                store(bytes, codes);
            }
        }
    }
}

/// A table of 64 bytes.
macro_rules! places {
    ($place:ident => $from:expr) => {{
        let mut places = [0_u8; 64];
        let mut $place = 0;
        while $place < 64 {
            places[$place] = ($from) as u8;
            $place += 1;
        }
        places
    }};
}

/// Where the two upper bytes of sixteen elements come from; 64 and above is the second vector.
const PLACES: [[u8; 64]; 4] = {
    let mut places = [[0; 64]; 4];
    let mut element = 0;
    while element < 64 {
        let (part, place) = (element / 16, element % 16 * 4);
        places[part][place + 2] = element as u8;
        places[part][place + 3] = element as u8 + 64;
        element += 1;
    }
    places
};

/// Six bytes, eight codes, for each eight bytes.
const SIXES: [u8; 64] = places!(place => place / 8 * 6 + place % 8 % 6);

/// Three bytes of every four; the last sixteen are of no meaning.
const THREES: [u8; 64] = places!(place => place % 48 / 3 * 4 + place % 3);

/// The lowest byte of each element of two vectors, then anything.
const LOW_BYTES: [u8; 64] = places!(place => place % 32 * 4);

/// The second byte of each element of two vectors, then anything.
const SECOND_BYTES: [u8; 64] = places!(place => place % 32 * 4 + 1);

/// The uppermost byte of each element of two vectors, then anything.
const TOP_BYTES: [u8; 64] = places!(place => place % 32 * 4 + 3);

/// The upper half of each element of two vectors.
const UPPER_HALVES: [u8; 64] = places!(place => if place % 2 == 0 { place + 1 } else { 0 });

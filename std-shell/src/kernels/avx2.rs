//! The loops for AVX2, FMA and F16C: 32 elements at a time, 64 when encoding.
//!
//! Decoding: a small float that is moved to the upper end of an F16 is one, but for its bias and its NaNs: the machine's
//! instruction for F16 decodes it, subnormals and all, and a multiplication by a power of two does the rest.
//!
//! Encoding: as with AVX-512, by an addition that rounds.
//!
//! `blocks`, `next_odd`, `rescan`, `to_*` and `pack` have twins in avx512.rs: what changes here changes
//! there.

use core::arch::x86_64::*;

use safestep_core::Dtype;
use safestep_core::numbers::{F16, Format, OutOfRange, Packing, portable};

use super::fields::{Fields, INFINITY};
use super::{bytes_of, load, store};

/// Elements of one turn.
const BLOCK: usize = 32;

/// Elements that are encoded between two looks at whether all were plain work.
const STRETCH: usize = 64;

/// Decodes all elements.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn decode<F: Format>(bytes: &[u8], values: &mut [f32]) {
    match F::DTYPE {
        Dtype::F16 => decode_f16(bytes, values),
        Dtype::Bf16 | Dtype::F8E8M0 => portable::decode::<F>(bytes, values),
        _ => match F::PACKING {
            Packing::FourInThree => small::<F, 24>(bytes, values),
            Packing::TwoInOne => nibbles::<F>(bytes, values),
            _ => small::<F, 32>(bytes, values),
        },
    }
}

/// F16: an instruction of its own.
#[target_feature(enable = "avx2,fma,f16c")]
fn decode_f16(bytes: &[u8], values: &mut [f32]) {
    let (values, last_values) = values.as_chunks_mut::<BLOCK>();
    let (bytes, last_bytes) = bytes.as_chunks::<{ 2 * BLOCK }>();
    for (values, bytes) in values.iter_mut().zip(bytes) {
        for (values, bytes) in values.as_chunks_mut::<8>().0.iter_mut().zip(bytes.as_chunks::<16>().0) {
            store(values, _mm256_cvtph_ps(load(bytes)));
        }
    }
    portable::decode::<F16>(last_bytes, last_values);
}

/// F4: the two upper bytes of sixteen values are two tables in registers.
#[target_feature(enable = "avx2,fma,f16c")]
fn nibbles<F: Format>(bytes: &[u8], values: &mut [f32]) {
    let (mut low, mut high) = ([0; 32], [0; 32]);
    for ((low, high), code) in low.iter_mut().zip(&mut high).zip(0..) {
        [_, _, *low, *high] = F::decode(code).to_le_bytes();
    }
    let (low, high, places): (__m256i, __m256i, __m128i) = (load(&low), load(&high), load(&TURNS));
    let zero = _mm256_setzero_si256();
    let (values, last_values) = values.as_chunks_mut::<BLOCK>();
    let (bytes, last_bytes) = bytes.as_chunks::<16>();
    for (values, bytes) in values.iter_mut().zip(bytes) {
        let pairs = _mm256_cvtepu8_epi16(_mm_shuffle_epi8(load(bytes), places));
        let codes = _mm256_or_si256(pairs, _mm256_slli_epi16::<4>(pairs));
        let codes = _mm256_and_si256(codes, _mm256_set1_epi8(0xF));
        let (low, high) = (_mm256_shuffle_epi8(low, codes), _mm256_shuffle_epi8(high, codes));
        let (front, back) = (_mm256_unpacklo_epi8(low, high), _mm256_unpackhi_epi8(low, high));
        let vectors = [
            _mm256_unpacklo_epi16(zero, front),
            _mm256_unpackhi_epi16(zero, front),
            _mm256_unpacklo_epi16(zero, back),
            _mm256_unpackhi_epi16(zero, back),
        ];
        for (values, vector) in values.as_chunks_mut::<8>().0.iter_mut().zip(vectors) {
            store(values, vector);
        }
    }
    portable::decode::<F>(last_bytes, last_values);
}

#[target_feature(enable = "avx2,fma,f16c")]
fn small<F: Format, const BYTES: usize>(bytes: &[u8], values: &mut [f32]) {
    let (values, last_values) = values.as_chunks_mut::<BLOCK>();
    let (bytes, last_bytes) = bytes.as_chunks::<BYTES>();
    let scale = _mm256_set1_ps(f32::from_bits((142 - const { Fields::of::<F>() }.bias) << 23));
    for (values, bytes) in values.iter_mut().zip(bytes) {
        if is_odd::<F>(bytes) {
            portable::decode::<F>(bytes, values);
            continue;
        }
        let [a, b] = halves::<F>(bytes).map(|halves| {
            let halves = [_mm256_castsi256_si128(halves), _mm256_extracti128_si256::<1>(halves)];
            halves.map(|halves| _mm256_mul_ps(_mm256_cvtph_ps(halves), scale))
        });
        for (values, vector) in values.as_chunks_mut::<8>().0.iter_mut().zip([a[0], a[1], b[0], b[1]]) {
            store(values, vector);
        }
    }
    portable::decode::<F>(last_bytes, last_values);
}

/// The 32 elements as F16: sign, exponent and mantissa at their places.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn halves<F: Format>(bytes: &[u8]) -> [__m256i; 2] {
    let (Some(front), Some(back)) = (bytes.first_chunk::<16>(), bytes.last_chunk::<16>()) else {
        return [_mm256_setzero_si256(); 2];
    };
    let both: [__m128i; 2] = [load(front), load(back)];
    let Fields { bits, exponent_bits, .. } = const { Fields::of::<F>() };
    // How far the exponent is below the upper end, where the sign has filled what is above.
    let down = 5 - exponent_bits;
    let moved = if matches!(F::PACKING, Packing::FourInThree) {
        let [front, back] = both.map(|half| _mm256_broadcastsi128_si256(half));
        let weights = _mm256_set1_epi64x(0x0001_0040_0010_0400);
        [(front, &SIXES[0]), (back, &SIXES[1])].map(|(half, places)| {
            let codes = _mm256_mullo_epi16(_mm256_shuffle_epi8(half, load(places)), weights);
            _mm256_sra_epi16(codes, _mm_cvtsi32_si128(down.cast_signed()))
        })
    } else {
        let up = _mm_cvtsi32_si128((8 - down).cast_signed());
        both.map(|half| _mm256_sll_epi16(_mm256_cvtepi8_epi16(half), up))
    };
    let mask: u32 = 0x8000 | 0x7FFF >> down & 0xFFFF_FFFF << (16 - bits - down);
    moved.map(|moved| _mm256_and_si256(moved, _mm256_set1_epi16(mask as u16 as i16)))
}

/// Whether one of the codes is a NaN that is none of F16, or has the exponent that F16 keeps for infinity and NaN.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn is_odd<F: Format>(bytes: &[u8]) -> bool {
    let Some(bytes) = bytes.first_chunk::<32>() else { return false };
    let codes: __m256i = load(bytes);
    let found = |mask: i8, code: i8| {
        _mm256_cmpeq_epi8(_mm256_and_si256(codes, _mm256_set1_epi8(mask)), _mm256_set1_epi8(code))
    };
    let odd = match F::DTYPE {
        Dtype::F8E4M3 => found(0x7F, 0x7F),
        Dtype::F8E4M3Fnuz => found(-1, -0x80),
        Dtype::F8E5M2Fnuz => _mm256_or_si256(found(-1, -0x80), found(0x7C, 0x7C)),
        _ => return false,
    };
    _mm256_movemask_epi8(odd) != 0
}

/// Encodes all elements; whether none was refused.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn encode<F: Format>(values: &[f32], bytes: &mut [u8], beyond: OutOfRange) -> bool {
    match (F::PACKING, beyond) {
        (Packing::Pair, OutOfRange::Refuse) => blocks::<F, 128, false>(values, bytes),
        (Packing::Pair, OutOfRange::Saturate) => blocks::<F, 128, true>(values, bytes),
        (Packing::Byte, OutOfRange::Refuse) => blocks::<F, 64, false>(values, bytes),
        (Packing::Byte, OutOfRange::Saturate) => blocks::<F, 64, true>(values, bytes),
        (Packing::FourInThree, OutOfRange::Refuse) => blocks::<F, 48, false>(values, bytes),
        (Packing::FourInThree, OutOfRange::Saturate) => blocks::<F, 48, true>(values, bytes),
        (Packing::TwoInOne, OutOfRange::Refuse) => blocks::<F, 32, false>(values, bytes),
        (Packing::TwoInOne, OutOfRange::Saturate) => blocks::<F, 32, true>(values, bytes),
    }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn blocks<F: Format, const BYTES: usize, const SATURATE: bool>(values: &[f32], bytes: &mut [u8]) -> bool {
    let (values, last_values) = values.as_chunks::<STRETCH>();
    let (bytes, last_bytes) = bytes.as_chunks_mut::<BYTES>();
    let mut blocks = values.iter().zip(bytes);
    while let Some((values, bytes)) = next_odd::<F, BYTES, SATURATE>(&mut blocks) {
        if !rescan::<F, SATURATE>(values, bytes) {
            return false;
        }
    }
    rescan::<F, SATURATE>(last_values, last_bytes)
}

/// Encodes blocks up to one that is not plain work, which is the answer.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn next_odd<'a, F: Format, const BYTES: usize, const SATURATE: bool>(
    blocks: &mut impl Iterator<Item = (&'a [f32; STRETCH], &'a mut [u8; BYTES])>,
) -> Option<(&'a [f32; STRETCH], &'a mut [u8; BYTES])> {
    loop {
        let (values, bytes) = blocks.next()?;
        let (halves, _) = values.as_chunks::<BLOCK>();
        let ([front, back], Some((front_bytes, back_bytes))) =
            (halves, bytes.split_at_mut_checked(BYTES / 2))
        else {
            return None;
        };
        let [front, back] = [vectors(front), vectors(back)];
        let plain = match F::DTYPE {
            Dtype::F16 => {
                no_nan([to_f16::<SATURATE>(front, front_bytes), to_f16::<SATURATE>(back, back_bytes)])
            }
            Dtype::Bf16 => to_bf16::<SATURATE>(values, bytes),
            // Plain are the normal ones above zero, up to the largest.
            Dtype::F8E8M0 => {
                all_within([to_e8m0(front, front_bytes), to_e8m0(back, back_bytes)], 0x7F00_0000 - (1 << 23))
            }
            _ => {
                let [front, back] = [to_small::<F, SATURATE>(front), to_small::<F, SATURATE>(back)];
                pack::<F>([front.0, back.0], [front_bytes, back_bytes]);
                all_within([front.1, back.1], if SATURATE { INFINITY } else { F::LARGEST.to_bits() })
            }
        };
        if !plain {
            return Some((values, bytes));
        }
    }
}

/// The core's own loop, for a block that is not plain, and for the last elements.
#[inline(never)]
#[target_feature(enable = "avx2,fma,f16c")]
fn rescan<F: Format, const SATURATE: bool>(values: &[f32], bytes: &mut [u8]) -> bool {
    let beyond = if SATURATE { OutOfRange::Saturate } else { OutOfRange::Refuse };
    portable::encode::<F>(values, bytes, beyond).is_none()
}

/// The four vectors of a block.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn vectors(values: &[f32; BLOCK]) -> [__m256; 4] {
    let (vectors, _) = values.as_chunks::<8>();
    let [a, b, c, d] = vectors else { return [_mm256_setzero_ps(); 4] };
    [load(a), load(b), load(c), load(d)]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn most([a, b, c, d]: [__m256i; 4]) -> __m256i {
    _mm256_max_epu32(_mm256_max_epu32(a, b), _mm256_max_epu32(c, d))
}

/// Whether no element is above the limit.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn all_within([front, back]: [__m256i; 2], limit: u32) -> bool {
    let limit = _mm256_set1_epi32(limit.cast_signed());
    let most = _mm256_max_epu32(_mm256_max_epu32(front, back), limit);
    _mm256_movemask_epi8(_mm256_cmpeq_epi32(most, limit)) == -1
}

/// Between the largest values of either sign, if that was asked for. A NaN stays one: of two operands of which one is a NaN,
/// these instructions give the second.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn clamp<const SATURATE: bool>(vector: __m256, largest: f32) -> __m256 {
    if !SATURATE {
        return vector;
    }
    _mm256_max_ps(_mm256_set1_ps(-largest), _mm256_min_ps(_mm256_set1_ps(largest), vector))
}

/// Gives what is largest of the codes, twice each, so that their signs are gone: NaNs are found among half as many vectors.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn to_f16<const SATURATE: bool>(vectors: [__m256; 4], bytes: &mut [u8]) -> __m256i {
    let [a, b, c, d] = vectors
        .map(|vector| _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(clamp::<SATURATE>(vector, 65_504.0)));
    let codes = [_mm256_set_m128i(b, a), _mm256_set_m128i(d, c)];
    for (bytes, codes) in bytes.as_chunks_mut::<32>().0.iter_mut().zip(codes) {
        store(bytes, codes);
    }
    let [front, back] = codes.map(|codes| _mm256_add_epi16(codes, codes));
    _mm256_max_epu16(front, back)
}

/// Whether none of the codes, twice each, is that of a NaN.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn no_nan([front, back]: [__m256i; 2]) -> bool {
    let beyond = _mm256_subs_epu16(_mm256_max_epu16(front, back), _mm256_set1_epi16(-0x0800));
    _mm256_testz_si256(beyond, beyond) == 1
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn to_bf16<const SATURATE: bool>(values: &[f32; STRETCH], bytes: &mut [u8]) -> bool {
    let (vectors, _) = values.as_chunks::<8>();
    // Two bytes further, each element begins with its upper half; the last vector would end outside.
    let (shifted, _) = bytes_of(values).get(2..).unwrap_or_default().as_chunks::<32>();
    let mut shifted = shifted.iter();
    let mut nans = _mm256_setzero_ps();
    let (pairs, _) = vectors.as_chunks::<2>();
    for ([a, b], bytes) in pairs.iter().zip(bytes.as_chunks_mut::<32>().0) {
        let [a, b] = [load(a), load(b)];
        nans = _mm256_or_ps(nans, _mm256_cmp_ps::<_CMP_UNORD_Q>(a, b));
        let [a, b] = [a, b].map(|vector| {
            let bits = _mm256_castps_si256(clamp::<SATURATE>(vector, f32::from_bits(0x7F7F_0000)));
            let upper = match shifted.next() {
                Some(shifted) if !SATURATE => load(shifted),
                _ => _mm256_srli_epi32::<16>(bits),
            };
            let odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
            let rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFF)), odd);
            _mm256_shuffle_epi8(rounded, load(&UPPER_HALVES))
        });
        store(bytes, _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_blend_epi32::<0b1100_1100>(a, b)));
    }
    _mm256_movemask_ps(nans) == 0
}

/// Gives what is largest of the bits, less those of the least that is plain.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn to_e8m0(vectors: [__m256; 4], bytes: &mut [u8]) -> __m256i {
    let bits = vectors.map(|vector| _mm256_castps_si256(vector));
    let [a, b, c, d] =
        bits.map(|bits| _mm256_srli_epi32::<23>(_mm256_add_epi32(bits, _mm256_set1_epi32(1 << 22))));
    let codes = _mm256_packus_epi16(_mm256_packus_epi32(a, b), _mm256_packus_epi32(c, d));
    if let Some(bytes) = bytes.first_chunk_mut::<32>() {
        store(bytes, in_order(codes));
    }
    most(bits.map(|bits| _mm256_sub_epi32(bits, _mm256_set1_epi32(1 << 23))))
}

/// The codes, packed lane by lane, and the largest of the magnitudes.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn to_small<F: Format, const SATURATE: bool>(vectors: [__m256; 4]) -> (__m256i, __m256i) {
    let fields = const { Fields::of::<F>() };
    let constant = |bits: u32| _mm256_set1_epi32(bits.cast_signed());
    let bits = vectors.map(|vector| _mm256_castps_si256(vector));
    let magnitudes = bits.map(|bits| _mm256_and_si256(bits, constant(0x7FFF_FFFF)));
    let [a, b, c, d] = magnitudes.map(|magnitude| {
        let magnitude =
            if SATURATE { _mm256_min_epu32(magnitude, constant(F::LARGEST.to_bits())) } else { magnitude };
        let power = _mm256_and_si256(magnitude, constant(INFINITY));
        let power = _mm256_castsi256_ps(_mm256_max_epu32(power, constant(fields.least())));
        let sum = _mm256_fmadd_ps(power, _mm256_set1_ps(fields.coarse()), _mm256_castsi256_ps(magnitude));
        // The mantissa from the lower half, the exponent from the upper one, together a code times some power of two.
        let weights = constant(1 << 16 | 0x80 >> fields.mantissa_bits);
        _mm256_madd_epi16(_mm256_castps_si256(sum), weights)
    });
    let places = 7 - fields.mantissa_bits;
    let surplus = _mm256_set1_epi16((fields.surplus() << places) as u16 as i16);
    let [front, back] = [_mm256_packus_epi32(a, b), _mm256_packus_epi32(c, d)].map(|codes| {
        _mm256_srl_epi16(_mm256_sub_epi16(codes, surplus), _mm_cvtsi32_si128(places.cast_signed()))
    });
    let codes = _mm256_packus_epi16(front, back);
    let [a, b, c, d] = bits;
    // What is negative stays so.
    let signs = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    let signs = _mm256_srl_epi16(signs, _mm_cvtsi32_si128((8 - fields.bits).cast_signed()));
    let signs = _mm256_and_si256(signs, _mm256_set1_epi8((1_u8 << (fields.bits - 1)).cast_signed()));
    let signs = if matches!(F::DTYPE, Dtype::F8E4M3Fnuz | Dtype::F8E5M2Fnuz) {
        _mm256_andnot_si256(_mm256_cmpeq_epi8(codes, _mm256_setzero_si256()), signs)
    } else {
        signs
    };
    (_mm256_or_si256(codes, signs), most(magnitudes))
}

/// The bytes of four vectors, which were packed lane by lane.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn in_order(codes: __m256i) -> __m256i {
    _mm256_permutevar8x32_epi32(codes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7))
}

/// Puts the codes of two blocks where they belong.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn pack<F: Format>(codes: [__m256i; 2], bytes: [&mut [u8]; 2]) {
    if matches!(F::PACKING, Packing::TwoInOne) {
        let [front, back] = codes.map(|codes| _mm256_maddubs_epi16(codes, _mm256_set1_epi16(0x1001)));
        let pairs = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi16(front, back));
        let pairs = _mm256_shuffle_epi8(pairs, load(&BY_TURNS));
        let halves = [_mm256_castsi256_si128(pairs), _mm256_extracti128_si256::<1>(pairs)];
        for (bytes, half) in bytes.into_iter().zip(halves) {
            if let Some(bytes) = bytes.first_chunk_mut::<16>() {
                store(bytes, half);
            }
        }
        return;
    }
    for (bytes, codes) in bytes.into_iter().zip(codes.map(|codes| in_order(codes))) {
        if let Some(bytes) = bytes.first_chunk_mut::<32>() {
            store(bytes, codes);
            continue;
        }
        let pairs = _mm256_maddubs_epi16(codes, _mm256_set1_epi16(0x4001));
        let fours = _mm256_madd_epi16(pairs, _mm256_set1_epi32(0x1000_0001));
        // Twelve bytes of each lane; those of the second go to its end, and the first is put over what is before.
        let packed = _mm256_shuffle_epi8(fours, load(&THREES));
        if let Some(bytes) = bytes.last_chunk_mut::<16>() {
            store(bytes, _mm256_extracti128_si256::<1>(packed));
        }
        let mut front = [0; 16];
        store(&mut front, _mm256_castsi256_si128(packed));
        for (byte, front) in bytes.iter_mut().zip(front).take(12) {
            *byte = front;
        }
    }
}

/// A table of 32 bytes.
macro_rules! places {
    ($place:ident => $from:expr) => {{
        let mut places = [0_u8; 32];
        let mut $place = 0;
        while $place < 32 {
            places[$place] = ($from) as u8;
            $place += 1;
        }
        places
    }};
}

/// Pairs of bytes, four elements, by turns for the one lane and the other.
const TURNS: [u8; 16] = [0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15];

/// The upper halves of the elements of a lane, twice.
const UPPER_HALVES: [u8; 32] = places!(place => place % 8 / 2 * 4 + 2 + place % 2);

/// Pairs of bytes: one of the first four of a lane, one of the last four, by turns.
const BY_TURNS: [u8; 32] = places!(place => place % 16 / 4 * 2 + place % 4 / 2 * 8 + place % 2);

/// For each sixteen bits the two bytes that have its six.
const SIXES: [[u8; 32]; 2] = [places!(place => six(place)), places!(place => six(place) + 4)];

/// Four codes begin at bits 0, 6, 12 and 18 of three bytes.
const fn six(place: usize) -> usize {
    place / 8 * 3 + place % 8 / 4 + place % 2
}

/// Three bytes of every four: at the beginning of the first lane, at the end of the second.
const THREES: [u8; 32] = places!(place => three(if place < 16 { place } else { place - 8 }));

const fn three(place: usize) -> usize {
    place % 12 / 3 * 4 + place % 3
}

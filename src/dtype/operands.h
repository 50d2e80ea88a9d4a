// Both sides of a product as kernels see them: the forms of weight rows that kernels can read themselves, and the
// activations that integer weights are multiplied with. Plain data, since code for wide CPUs includes this too.
#pragma once

#include <cstdint>

namespace kvasir {

/// `other` is read through the codec, so a new storage type needs no entry here.
enum class RowForm : uint8_t {
  other,
  f32,
  f16,
  bf16,
  q8_0,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  mxfp4,
  iq4_nl,
  iq4_xs
};

/// The form of activations in a product: floats, or rounded to ActBlocks.
enum class Act : uint8_t { f32, q8 };

inline constexpr int kActElems = 32;

/// 32 activations of one token: x[i] ~ d * q[i].
struct ActBlock {
  float d;
  int32_t sum;    ///< of q
  int32_t first;  ///< sum of the first half of q
  int8_t q[kActElems];
};

/// The order in which kernels for few tokens want the activations of a form: `blocks` keeps blocks of 32 side by side;
/// `pairs` separates the even and odd parts of a block of 256 (q4_k, q5_k, iq4_xs); `halves` puts the halves of its
/// parts one after the other (q2_k, q3_k, q6_k).
enum class Arrangement : uint8_t { blocks, pairs, halves };
inline constexpr int kArrangements = 3;
constexpr Arrangement arrangement_of(RowForm form) {
  switch (form) {
    case RowForm::q4_k:
    case RowForm::q5_k:
    case RowForm::iq4_xs:
      return Arrangement::pairs;
    case RowForm::q2_k:
    case RowForm::q3_k:
    case RowForm::q6_k:
      return Arrangement::halves;
    default:
      return Arrangement::blocks;
  }
}
/// Bytes of one arranged ActBlock. A token's are padded to a multiple of four and begin at a multiple of 64 bytes.
inline constexpr int kArrangedBytes = 48;
constexpr int64_t arranged_bytes(int64_t cols) { return (cols / kActElems + 3) / 4 * 4 * kArrangedBytes; }

/// Rounds activations: d = max|x| / 127, q = x / d rounded to nearest even and clamped to +-127; q is 0 if d is 0. A
/// value that is not finite makes d NaN and q 0, so that the result shows it. Requires: n a multiple of 32.
void encode_act(const float* x, ActBlock* out, int64_t n);

}  // namespace kvasir

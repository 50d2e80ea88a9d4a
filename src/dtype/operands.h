// The two sides of a product as kernels see them: the forms of weight rows that they may read themselves, and the
// activations that integer weights are multiplied with. Plain data, for code that is compiled for wide CPUs too.
#pragma once

#include <cstdint>

namespace kvasir {

/// `other` goes through the codec: a new storage type needs no entry here.
enum class RowForm : uint8_t { other, f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q4_k, q5_k, q6_k, mxfp4, iq4_nl };

/// What activations are rounded to first: nothing, or ActBlocks.
enum class Act : uint8_t { f32, q8 };

inline constexpr int kActElems = 32;

/// 32 activations of one token: x[i] ~ d * q[i].
struct ActBlock {
  float d;
  int32_t sum;    ///< of q
  int32_t first;  ///< of its first half
  int8_t q[kActElems];
};

/// In which order few tokens' activations are wanted by a form: with blocks of 32 side by side, with the even and the
/// odd parts of a block of 256 apart (q4_k, q5_k), or with the halves of its parts one after the other (q6_k).
enum class Arrangement : uint8_t { blocks, pairs, halves };
inline constexpr int kArrangements = 3;
constexpr Arrangement arrangement_of(RowForm form) {
  if (form == RowForm::q4_k || form == RowForm::q5_k) return Arrangement::pairs;
  return form == RowForm::q6_k ? Arrangement::halves : Arrangement::blocks;
}
/// Bytes of an arranged ActBlock. A token's are a multiple of four of them, and begin at a multiple of 64 bytes.
inline constexpr int kArrangedBytes = 48;
constexpr int64_t arranged_bytes(int64_t cols) { return (cols / kActElems + 3) / 4 * 4 * kArrangedBytes; }

/// d = max|x| / 127, q = x / d rounded to nearest even and clamped to +-127; all zero where d is 0. A value that is not
/// finite makes d NaN and q 0, so that it shows in what is computed. Requires: n a multiple of 32.
void encode_act(const float* x, ActBlock* out, int64_t n);

}  // namespace kvasir

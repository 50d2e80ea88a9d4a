// Writes a model as a GGUF file in another weight type. Choosing each tensor's type is in quantize_types.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <kvasir/result.h>

namespace kvasir {

struct QuantizeOptions {
  std::string model = {};          ///< a Hugging Face folder, a .gguf or llama2.c .bin of floats, or a shipped name
  std::filesystem::path out = {};  ///< NAME.gguf
  std::string type = {};           ///< one of quantize_types()
  std::string tokenizer = {};      ///< a tokenizer file; empty: the one inside or beside the model
  bool with_tokenizer = true;      ///< false: the file has none
  bool force = false;              ///< replace an existing file
  std::string importance = {};     ///< a file of quantize_importance.h that weighs errors; empty: all count alike
  /// "NAME=TYPE": the tensor of that GGUF name, or every layer's of that kind ("attn_v", "ffn_down_exps"), has this
  /// codec's type.
  std::vector<std::string> types = {};
  int threads = 0;  ///< 0: one per core that this process may use
  std::function<void(uint64_t done_bytes, uint64_t all_bytes)> progress = {};  ///< called repeatedly
};

struct QuantizeReport {
  struct Type {
    std::string name;
    int tensors = 0;
    uint64_t bytes = 0;
  };
  struct Tensor {
    std::string name, type;
    double error = 0;  ///< root of the sum of squared errors over the sum of squares; 0 if all values are 0
  };
  std::vector<Type> types;         ///< types of the written tensors, most bytes first
  std::vector<Tensor> tensors;     ///< in the order of the file
  std::vector<std::string> notes;  ///< deviations from what was asked for, one line each
  int64_t parameters = 0;
  uint64_t file_bytes = 0;
};

/// The values of QuantizeOptions::type.
std::vector<std::string_view> quantize_types();

/// Writes the file. Vectors are f32. Each other tensor gets the type that llama.cpp chooses for a file of this
/// name: q4_k_m, q3_k_m and the like are mixes, the matrix that makes the logits is q6_k with a type of fewer bits,
/// rows that are not whole blocks fall back (q4_k to q5_0, any type to f16), and learned positions are f32. mxfp4 is
/// for experts, and q8_0 for the rest. The file appears complete or not at all. A model of any size needs a few MiB
/// besides its mapping. Errors: those of Model::open(); unsupported, a model that is already quantised or that GGUF
/// cannot express, or such a tokenizer; damaged, a value that is not finite; bad_argument, an output that exists, an
/// unknown type, an importance of other shapes; io.
Result<QuantizeReport> quantize(const QuantizeOptions& options);

}  // namespace kvasir

// Writing a model as a GGUF file in another weight type.
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
  bool with_tokenizer = true;      ///< false: the file holds none
  bool force = false;              ///< replace a file
  int threads = 0;                 ///< 0: as many as this process may use cores
  std::function<void(uint64_t done_bytes, uint64_t all_bytes)> progress = {};  ///< called now and then
};

struct QuantizeReport {
  struct Type {
    std::string name;
    int tensors = 0;
    uint64_t bytes = 0;
  };
  std::vector<Type> types;         ///< what the tensors became, the most bytes first
  std::vector<std::string> notes;  ///< what is not as asked, one line each
  int64_t parameters = 0;
  uint64_t file_bytes = 0;
};

std::vector<std::string_view> quantize_types();

/// Vectors are f32. For an integer type, rows that are no whole blocks fall back (q4_k to q5_0, anything to f16), the
/// vocabulary's matrices (token_embd, output) of a 4-bit type are q6_k or else q8_0, and learned positions are f32.
/// The file appears complete or not at all; a model of any size takes a few MiB besides its mapping.
/// Errors: a model that cannot be opened, is quantised already or has a value that is not finite; a tokenizer that GGUF
/// has no place for; an output that exists or cannot be written.
Result<QuantizeReport> quantize(const QuantizeOptions& options);

}  // namespace kvasir

// Implements the rules of quantize.h. Source of the fallbacks and of the tensors that are never quantised:
// ggml-org/llama.cpp, src/llama-quant.cpp. Its finer choices by layer are left out.
#include "lab/quantize_types.h"

#include <array>

#include <fmt/format.h>

#include "lab/quantize.h"

namespace kvasir {
namespace {

// llama.cpp calls the file type of q4_k "mostly Q4_K, small".
constexpr std::array kFileTypes{FileType{"f16", 1},  FileType{"bf16", 32}, FileType{"f32", 0},
                                FileType{"q8_0", 7}, FileType{"q4_0", 2},  FileType{"q4_k", 14}};

const Codec& codec(std::string_view name) { return *find_codec(name); }

bool fits(const Codec& type, int64_t cols) { return cols % type.block_elems == 0; }

// "blk.3.attn_q.weight" -> "attn_q.weight".
std::string_view kind_of(std::string_view name) {
  if (!name.starts_with("blk.")) return name;
  const size_t dot = name.find('.', 4);
  return dot == name.npos ? name : name.substr(dot + 1);
}

}  // namespace

std::span<const FileType> file_types() { return kFileTypes; }

std::vector<std::string_view> quantize_types() {
  std::vector<std::string_view> names;
  for (const FileType& type : kFileTypes) names.push_back(type.name);
  return names;
}

const Codec& TypeChooser::choose(std::string_view name, const std::vector<int64_t>& shape) {
  if (shape.size() == 1 || name.ends_with(".bias")) return codec_f32();  // biases of experts are matrices
  if (asked_.block_elems == 1) return asked_;
  if (name == "position_embd.weight") return codec_f32();          // read by row, never multiplied
  if (name.find("ffn_gate_inp") != name.npos) return codec_f32();  // small, and it chooses a token's experts
  return matrix_type(name, shape.back());
}

const Codec& TypeChooser::matrix_type(std::string_view name, int64_t cols) {
  const std::string_view asked = asked_.name;
  const bool vocabulary = name == "token_embd.weight" || name == "output.weight";
  std::vector<const Codec*> order{&asked_, &codec_f16()};
  if (vocabulary && asked != "q8_0") order = {&codec("q6_k"), &codec("q8_0"), &codec_f16()};
  if (!vocabulary && asked == "q4_k") order.insert(order.begin() + 1, &codec("q5_0"));
  const Codec* type = order.front();
  for (size_t i = 1; !fits(*type, cols); ++i) type = order[i];
  if (type != order.front())
    ++fallbacks_[fmt::format("{}: rows of {} are not whole blocks of {} ({}), so they are {}", kind_of(name), cols,
                             order.front()->block_elems, order.front()->name, type->name)];
  return *type;
}

std::vector<std::string> TypeChooser::notes() const {
  std::vector<std::string> lines;
  for (const auto& [line, count] : fallbacks_)
    lines.push_back(count == 1 ? line : fmt::format("{} ({} tensors)", line, count));
  return lines;
}

}  // namespace kvasir

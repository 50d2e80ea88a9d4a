// llama.cpp's files of importance. Source: ggml-org/llama.cpp, tools/imatrix (the GGUF form).
#include "lab/quantize_importance.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/quote.h"
#include "format/gguf.h"
#include "format/gguf_writer.h"

namespace kvasir {
namespace {

constexpr std::string_view kSquares = ".in_sum2", kCounts = ".counts", kType = "imatrix";

Result<std::vector<float>> values_of(const TensorDir& dir, const TensorInfo& tensor, const std::string& where) {
  const auto bad = [&](const std::string& what) {
    return fail(Error::damaged, fmt::format("tensor {} {}", in_quotes(tensor.name), what), where,
                "a file that kvasir imatrix or llama-imatrix wrote");
  };
  if (tensor.codec != &codec_f32()) return bad("is not F32");
  std::vector<float> values(tensor.bytes / sizeof(float));
  tensor.codec->decode(dir.data(tensor).data(), values.data(), static_cast<int64_t>(values.size()));
  for (const float value : values)
    if (!(value >= 0) || !std::isfinite(value)) return bad("has a value that is negative or not finite");
  return values;
}

}  // namespace

std::vector<float> ActivationSums::means() const {
  std::vector<float> out = squares;
  for (size_t i = 0; i < out.size(); ++i) {
    const float count = counts[i / static_cast<size_t>(cols)];
    out[i] = count > 0 ? out[i] / count : 1.0f;
  }
  return out;
}

Result<ImportanceMatrix> read_importance(const std::filesystem::path& path) {
  const std::string where = path.string();
  KVASIR_TRY(const GgufFile file, open_gguf(path));
  KVASIR_TRY(const auto type, file.metadata.get_string("general.type"));
  if (type != kType)
    return fail(Error::bad_argument, "is not an importance matrix", where, "a GGUF file of kvasir imatrix");
  ImportanceMatrix matrix;
  for (const TensorInfo& tensor : file.tensors.tensors) {
    if (!tensor.name.ends_with(kSquares)) continue;
    const std::string name = tensor.name.substr(0, tensor.name.size() - kSquares.size());
    const TensorInfo* counts = file.tensors.find(name + std::string(kCounts));
    if (counts == nullptr)
      return fail(Error::damaged, fmt::format("{} has no counts", in_quotes(name)), where, "a complete file");
    ActivationSums sums;
    sums.cols = tensor.shape.empty() ? 0 : tensor.shape.back();
    KVASIR_TRY(sums.squares, values_of(file.tensors, tensor, where));
    KVASIR_TRY(sums.counts, values_of(file.tensors, *counts, where));
    if (sums.cols == 0 || sums.squares.size() != sums.counts.size() * static_cast<size_t>(sums.cols))
      return fail(Error::damaged, fmt::format("{} has other counts than sums", in_quotes(name)), where,
                  "a complete file");
    matrix.emplace(name, std::move(sums));
  }
  return matrix;
}

Result<void> write_importance(const std::filesystem::path& path, const ImportanceMatrix& matrix, std::string_view text,
                              int windows, int window) {
  GgufEntries entries;
  entries.string("general.type", kType);
  entries.strings("imatrix.datasets", std::array{text});
  entries.u32("imatrix.chunk_count", static_cast<uint32_t>(windows));
  entries.u32("imatrix.chunk_size", static_cast<uint32_t>(window));
  std::vector<TensorDecl> decls;
  for (const auto& [name, sums] : matrix) {
    const auto matrices = static_cast<int64_t>(sums.counts.size());
    decls.push_back({name + std::string(kSquares), &codec_f32(), {matrices, sums.cols}});
    decls.push_back({name + std::string(kCounts), &codec_f32(), {matrices, 1}});
  }
  GgufWriter writer;
  KVASIR_CHECK(writer.create(path, entries, std::move(decls)));
  for (const auto& [name, sums] : matrix) {
    KVASIR_CHECK(writer.write(std::as_bytes(std::span(sums.squares))));
    KVASIR_CHECK(writer.write(std::as_bytes(std::span(sums.counts))));
  }
  return writer.finish();
}

}  // namespace kvasir

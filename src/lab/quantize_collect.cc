// Watches the products of a model while it reads a text, and finds the tensor of each by the address of its weights.
#include <algorithm>
#include <functional>

#include <kvasir/model.h>

#include "engine/engine_impl.h"
#include "format/gguf.h"
#include "lab/quantize_importance.h"
#include "lab/quantize_outline.h"

namespace kvasir {
namespace {

class Collector {
 public:
  /// `loaded` has the mappings that the products read; `stored` the tensors as the file stores them.
  Collector(const TensorDir& loaded, const TensorDir& stored) : loaded_(loaded) {
    for (const TensorInfo& tensor : stored.tensors) by_place_.emplace(std::pair(tensor.file, tensor.offset), &tensor);
  }

  void add(const Rows& x, const MatmulJob& job) {
    const auto [tensor, expert] = matrix_at(job.w.data);
    if (tensor == nullptr || tensor->name == "output.weight" || tensor->name == "token_embd.weight") return;
    ActivationSums& sums = matrix_[tensor->name];
    if (sums.cols == 0) {
      sums.cols = x.cols;
      sums.counts.resize(matrices_of(*tensor));
      sums_[tensor].resize(sums.counts.size() * static_cast<size_t>(x.cols));
    }
    double* const to = sums_[tensor].data() + expert * static_cast<size_t>(x.cols);
    for (int t = 0; t < job.y.n; ++t) {
      const float* row = x.row(job.first + t);
      for (int64_t i = 0; i < x.cols; ++i) to[i] += double{row[i]} * row[i];
    }
    sums.counts[expert] += static_cast<float>(job.y.n);
  }

  ImportanceMatrix take() {
    for (const auto& [tensor, squares] : sums_) {
      std::vector<float>& out = matrix_[tensor->name].squares;
      std::transform(squares.begin(), squares.end(), std::back_inserter(out),
                     [](double sum) { return static_cast<float>(sum); });
    }
    return std::move(matrix_);
  }

 private:
  static size_t matrices_of(const TensorInfo& tensor) {
    return tensor.shape.size() == 3 ? static_cast<size_t>(tensor.shape.front()) : 1;
  }

  // The tensor and the index of the matrix that begin at an address. Null for the later parts of a tensor that is used
  // in parts, since the first has the same activations.
  std::pair<const TensorInfo*, size_t> matrix_at(const std::byte* data) const {
    for (size_t f = 0; f < loaded_.files.size(); ++f) {
      const auto bytes = loaded_.files[f]->bytes();
      if (std::less<>()(data, bytes.data()) || !std::less<>()(data, bytes.data() + bytes.size())) continue;
      const auto offset = static_cast<uint64_t>(data - bytes.data());
      auto after = by_place_.upper_bound(std::pair(static_cast<int>(f), offset));
      if (after == by_place_.begin()) return {};
      const TensorInfo* tensor = std::prev(after)->second;
      const uint64_t inside = offset - tensor->offset, size = tensor->bytes / matrices_of(*tensor);
      if (inside >= tensor->bytes || inside % size != 0) return {};
      return {tensor, inside / size};
    }
    return {};
  }

  const TensorDir& loaded_;
  std::map<std::pair<int, uint64_t>, const TensorInfo*> by_place_;  // file and offset -> tensor
  std::map<const TensorInfo*, std::vector<double>> sums_;
  ImportanceMatrix matrix_;
};

}  // namespace

Result<ImportanceReport> collect_importance(Engine& engine, const std::filesystem::path& model,
                                            std::span<const int> ids, std::optional<int> bos,
                                            const PerplexityOptions& options) {
  KVASIR_TRY(const GgufFile file, open_gguf(model));
  Collector collector(engine.impl().network->tensors(), file.tensors);
  Compute& compute = *engine.impl().compute;
  compute.set_watch([&](const Rows& x, const MatmulJob& job) { collector.add(x, job); });
  auto perplexed = perplexity(engine, ids, bos, options);
  compute.set_watch({});
  if (!perplexed) return tl::unexpected(std::move(perplexed.error()));
  ImportanceReport report{.matrix = collector.take(), .missing = {}, .perplexity = *perplexed};
  for (const TensorInfo& tensor : file.tensors.tensors)
    if (tensor.name.starts_with("blk.") && tensor.name.ends_with(".weight") && tensor.shape.size() > 1 &&
        !report.matrix.contains(tensor.name))
      report.missing.push_back(tensor.name);
  return report;
}

Result<ImportanceReport> measure_importance(const ImportanceOptions& options, const std::string& text) {
  KVASIR_TRY(const std::string path, find_model(options.model));
  if (std::filesystem::path(path).extension() != ".gguf")
    return fail(Error::unsupported, "importance is stored by the names of GGUF, and this model is no GGUF file", path,
                "kvasir quantize with type bf16 first");
  KVASIR_CHECK(check_gguf_output(options.out, path, options.force));
  ModelOptions mapped;
  mapped.weights = WeightsMode::mapped;  // a product's tensor is found by its address in the file
  KVASIR_TRY(const auto model, Model::open(path, mapped));
  if (model->tokenizer() == nullptr)
    return fail(Error::bad_argument, "this model came without a tokenizer", path, "a GGUF file with its tokenizer");
  KVASIR_TRY(const std::vector<int> ids, model->tokenizer()->encode(text));
  KVASIR_TRY(const auto engine, Engine::create(model, {.threads = options.threads}));
  KVASIR_TRY(ImportanceReport report,
             collect_importance(*engine, path, ids, model->tokenizer()->bos(), options.windows));
  KVASIR_CHECK(write_importance(options.out, report.matrix, options.text_name, report.perplexity.windows,
                                report.perplexity.window));
  return report;
}

}  // namespace kvasir

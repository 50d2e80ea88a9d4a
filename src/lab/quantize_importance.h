// The importance of weights: mean squares of the activations that each column of a matrix is multiplied with. Collects
// them, and reads and writes llama.cpp's GGUF files of them. quantize.cc weighs errors with them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <kvasir/engine.h>

#include "lab/perplexity.h"

namespace kvasir {

/// Sums over the activations of one tensor, which holds one matrix, or one per expert.
struct ActivationSums {
  int64_t cols = 0;
  std::vector<float> squares;  ///< [matrices][cols], sums over rows of activations
  std::vector<float> counts;   ///< [matrices], rows that were summed

  /// Mean squares, [matrices][cols]; 1 everywhere in a matrix that no row has reached.
  std::vector<float> means() const;
};

/// By the tensor's name in GGUF.
using ImportanceMatrix = std::map<std::string, ActivationSums, std::less<>>;

/// Reads a file of "NAME.in_sum2" and "NAME.counts" tensors. Errors: not a GGUF file, another type of file, a tensor
/// without its other half, shapes that do not fit together, a value that is negative or not finite.
Result<ImportanceMatrix> read_importance(const std::filesystem::path& path);

/// Writes such a file; it appears complete or not at all. `text` is the name of the text, `windows` their number and
/// `window` the tokens in each. Errors: those of GgufWriter.
Result<void> write_importance(const std::filesystem::path& path, const ImportanceMatrix& matrix, std::string_view text,
                              int windows, int window);

struct ImportanceReport {
  ImportanceMatrix matrix;
  std::vector<std::string> missing;  ///< matrices of layers that no product was seen to use
  PerplexityReport perplexity;       ///< of the same windows
};

struct ImportanceOptions {
  std::string model = {};          ///< a GGUF file
  std::filesystem::path out = {};  ///< NAME.gguf
  bool force = false;              ///< replace an existing file
  int threads = 0;                 ///< 0: one per core that this process may use
  std::string text_name = {};      ///< stored in the file
  PerplexityOptions windows = {};
};

/// Measures the importance over a text and writes the file. Errors: a model that is no GGUF file or has no tokenizer,
/// an output that exists, those of Model::open(), Engine::create(), perplexity() and write_importance().
Result<ImportanceReport> measure_importance(const ImportanceOptions& options, const std::string& text);

/// Runs the windows of a text, as perplexity() does, and sums the squares of what enters each product, except that of
/// the logits. Requires: the engine's model was opened from the GGUF file `model`, with WeightsMode::mapped. Errors:
/// those of perplexity().
Result<ImportanceReport> collect_importance(Engine& engine, const std::filesystem::path& model,
                                            std::span<const int> ids, std::optional<int> bos,
                                            const PerplexityOptions& options);

}  // namespace kvasir

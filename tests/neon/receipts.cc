// neon_receipts IDS COUNT MODEL...: for every GGUF file the CPU target and the receipt of COUNT greedy tokens after the
// ids (separated by commas), one line each. What `kvasir run --greedy --ignore-eos --receipt --kv-type f32` computes.
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include <kvasir/generate.h>

namespace {

using kvasir::Engine;
using kvasir::Model;
using kvasir::Result;

std::vector<int> parse_ids(const char* text) {
  std::istringstream in(text);
  std::vector<int> ids;
  for (std::string word; std::getline(in, word, ',');) ids.push_back(std::atoi(word.c_str()));
  return ids;
}

Result<void> print_receipt(const char* path, const std::vector<int>& ids, int count) {
  KVASIR_TRY(const auto model, Model::open(path));
  KVASIR_TRY(const auto engine, Engine::create(model, {.threads = 1}));
  KVASIR_TRY(auto session, engine->open_session());
  kvasir::GenerateOptions options;
  options.sampling.temperature = 0;
  options.max_tokens = count;
  options.ignore_eos = options.receipt = true;
  KVASIR_TRY(const auto generation, kvasir::generate(*engine, session, ids, options));
  std::printf("%s %s\n", engine->cpu().c_str(), generation.receipt.c_str());
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: neon_receipts IDS COUNT MODEL...\n");
    return 2;
  }
  for (int i = 3; i < argc; ++i)
    if (const auto done = print_receipt(argv[i], parse_ids(argv[1]), std::atoi(argv[2])); !done) {
      std::fprintf(stderr, "neon_receipts: %s\n", done.error().message().c_str());
      return 1;
    }
  return 0;
}

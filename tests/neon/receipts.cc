// neon_receipts IDS COUNT KV_TYPE MODEL: prints the CPU target and the receipt of COUNT greedy tokens after the ids
// (separated by commas). Computes what `kvasir run --greedy --ignore-eos --receipt --kv-type KV_TYPE` does.
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

Result<void> print_receipt(const std::vector<int>& ids, int count, const char* kv_type, const char* path) {
  KVASIR_TRY(const auto model, Model::open(path));
  KVASIR_TRY(const auto engine, Engine::create(model, {.threads = 1}));
  KVASIR_TRY(auto session, engine->open_session({.kv_type_k = kv_type, .kv_type_v = kv_type}));
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
  if (argc != 5) {
    std::fprintf(stderr, "usage: neon_receipts IDS COUNT KV_TYPE MODEL\n");
    return 2;
  }
  const auto done = print_receipt(parse_ids(argv[1]), std::atoi(argv[2]), argv[3], argv[4]);
  if (!done) std::fprintf(stderr, "neon_receipts: %s\n", done.error().message().c_str());
  return done ? 0 : 1;
}

// The table of names. Source of names, rules and the default for BOS: ggml-org/llama.cpp src/llama-vocab.cpp and
// convert_hf_to_gguf_update.py. NFC and ignored merges follow the tokenizer.json from which such files are made.
#include "token/files/gguf_pre.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "token/byte_level.h"
#include "token/utf8.h"

namespace kvasir {
namespace {

using Cuts = std::vector<CutStage>;

// ---- the patterns of tokenizer.json -------------------------------------------------------------------------------

constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen35 = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|)"
                                R"( ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kTekken = R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
                                R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
                                R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kDeepSeekV3 =
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
    " ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+";

// Letters with case, as the first DeepSeek models list them: fewer than \p{Lu}, \p{Ll} and \p{Lt}.
constexpr const char* kDeepSeekLetters =
    "\\s?[A-Za-z\u00B5\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u01BA\u01BC-\u01BF\u01C4-\u0293\u0295-\u02AF\u0370-\u0373"
    "\u0376\u0377\u037B-\u037D\u037F\u0386\u0388-\u038A\u038C\u038E-\u03A1\u03A3-\u03F5\u03F7-\u0481\u048A-\u052F"
    "\u0531-\u0556\u10A0-\u10C5\u13A0-\u13F5\u13F8-\u13FD\u1C90-\u1CBA\u1CBD-\u1CBF\u1D00-\u1D2B\u1D6B-\u1D77"
    "\u1D79-\u1D9A\u1E00-\u1F15\u1F18-\u1F1D\u1F20-\u1F45\u1F48-\u1F4D\u1F50-\u1F57\u1F59\u1F5B\u1F5D\u1F5F-\u1F7D"
    "\u1F80-\u1FB4\u1FB6-\u1FBC\u1FBE\u1FC2-\u1FC4\u1FC6-\u1FCC\u1FD0-\u1FD3\u1FD6-\u1FDB\u1FE0-\u1FEC\u1FF2-\u1FF4"
    "\u1FF6-\u1FFC\u2102\u2107\u210A-\u2113\u2115\u2119-\u211D\u2124\u2126\u2128\u212A-\u212D\u212F-\u2134\u2139"
    "\u213C-\u213F\u2145-\u2149\u214E\u2183\u2184\u2C00-\u2C7B\u2C7E-\u2CE4\u2CEB-\u2CEE\u2CF2\u2CF3\uA640-\uA66D"
    "\uA680-\uA69B\uA722-\uA76F\uA771-\uA787\uA78B-\uA78E\uAB70-\uABBF\uFB00-\uFB06\uFB13-\uFB17\uFF21-\uFF3A"
    "\uFF41-\uFF5A\U00010400-\U0001044F\U000104B0-\U000104D3\U000104D8-\U000104FB\U00010C80-\U00010CB2"
    "\U00010CC0-\U00010CF2\U000118A0-\U000118DF\U0001E900-\U0001E943]+";
constexpr const char* kDeepSeekMarks = "\\s?[!-/:-~\uFF01-\uFF0F\uFF1A-\uFF5E\u2018-\u201F\u3000-\u3002]+";
constexpr const char* kDeepSeekHan = "[\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF]+";
constexpr const char* kHanOrKana = "[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+";

// ---- the table ----------------------------------------------------------------------------------------------------

/// Splits by each pattern in turn; the last stage spells the bytes and splits nothing.
Cuts by(std::initializer_list<const char*> patterns) {
  Cuts cuts;
  for (const char* pattern : patterns) cuts.push_back({pattern, false});
  cuts.push_back({"", true});
  return cuts;
}

// A name that is not here is refused: a guess would give wrong ids. GPT-NeoX's vocabulary, from which those of MPT,
// OLMo and ModernBERT are made, is NFC.
const std::vector<PreTokenization>& pre_tokenizations() {
  using enum PreTokenization::Flags;
  static const CutStage gpt2{std::string(kGpt2Pattern), true}, digits{R"(\p{N})", false};
  // Splits off punctuation, spells the bytes, then splits that spelling into runs of digits and groups of three.
  static const Cuts falcon = {{R"([\p{P}$+<=>^`|~]+)", false}, gpt2, {R"(\p{N}+)", false}, {"[0-9][0-9][0-9]", false}};
  static const Cuts llama3 = by({kLlama3}), qwen2 = by({kQwen2}), qwen35 = by({kQwen35}), tekken = by({kTekken});
  static const Cuts gpt4o = by({kGpt4o}), deepseek3 = by({R"(\p{N}{1,3})", kHanOrKana, kDeepSeekV3});
  static const Cuts coder = by({"[\r\n]", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kDeepSeekHan, R"(\p{N})"});
  static const Cuts deepseek = by({"[\r\n]", kDeepSeekLetters, kDeepSeekMarks, R"(\s+$)", kDeepSeekHan, R"(\p{N})"});
  static const std::vector<PreTokenization> all = {
      {{"gpt-2", "phi-2", "exaone4", "jais", "a.x-4.0", "gigachat", "mellum", "trillion"}, {gpt2}},
      {{"olmo", "mpt", "modern-bert"}, {gpt2}, kNfc},
      {{"llama-bpe", "llama3", "llama-v3", "lfm2", "falcon3", "falcon-h1", "pixtral"}, llama3, kIgnoreMerges | kAddBos},
      {{"dbrx", "smaug-bpe", "glm4", "chatglm-bpe"}, llama3},
      {{"qwen2", "deepseek-r1-qwen", "megrez"}, qwen2, kNfc},
      {{"stablelm2", "hunyuan", "solar-open", "grok-2"}, qwen2},
      {{"qwen35"}, qwen35},
      {{"smollm", "starcoder", "refact", "exaone", "codeshell", "minerva-7b", "mellum2"}, {digits, gpt2}},
      {{"command-r"}, {digits, gpt2}, kNfc},
      {{"falcon"}, falcon},
      {{"tekken"}, tekken, kIgnoreMerges | kAddBos},
      {{"gpt-4o", "llama4"}, gpt4o, kIgnoreMerges},
      {{"minimax-m2"}, gpt4o},
      {{"deepseek-v3", "hunyuan-dense", "joyai-llm"}, deepseek3},
      {{"deepseek-coder"}, coder},
      {{"deepseek-llm"}, deepseek},
  };
  return all;
}

}  // namespace

Result<const PreTokenization*> find_pre(const std::string& name) {
  std::vector<std::string_view> known;
  for (const PreTokenization& one : pre_tokenizations()) {
    for (const std::string_view other : one.names) {
      if (other == name) return &one;
      known.push_back(other);
    }
  }
  const std::string what = name.empty()
                               ? "the file names no pre-tokenizer (tokenizer.ggml.pre)"
                               : fmt::format("the pre-tokenizer {} (tokenizer.ggml.pre) is not known", quote(name));
  return fail(Error::unsupported, fmt::format("{}; known: {}", what, fmt::join(known, ", ")), {},
              "convert the model again, or use its Hugging Face folder");
}

std::string_view find_pre_name(const ByteLevelTables& tables) {
  const auto same_cut = [](const CutStage& a, const CutStage& b) {
    return a.pattern == b.pattern && a.spells_bytes == b.spells_bytes;
  };
  for (const PreTokenization& one : pre_tokenizations()) {
    const bool cuts = std::equal(one.cuts.begin(), one.cuts.end(), tables.cuts.begin(), tables.cuts.end(), same_cut);
    if (cuts && one.has(PreTokenization::kNfc) == tables.nfc &&
        one.has(PreTokenization::kIgnoreMerges) == tables.ignore_merges)
      return one.names.front();
  }
  return {};
}

}  // namespace kvasir

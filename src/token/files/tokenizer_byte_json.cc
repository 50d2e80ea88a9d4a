// From JSON values to ByteLevelTables. Source of the names: huggingface/tokenizers (serialisation of each component).
#include "token/files/tokenizer_byte_json.h"

#include "token/files/json_values.h"
#include "token/files/tokenizer_bpe_json.h"

namespace kvasir {
namespace {

using namespace json_values;

constexpr std::size_t kMaxCuts = 64;

std::string escape_pattern(std::string_view literal) {
  std::string out;
  for (const char c : literal) {
    if (std::string_view("\\^$.[]|()?*+{}-#&").find(c) != std::string_view::npos) out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

Result<std::string> split_pattern(const json& node) {
  KVASIR_TRY(const bool invert, flag(node, "invert", false));
  const json& behavior = member(node, "behavior");
  if (behavior != "Isolated" || invert) {
    return fail(Error::unsupported,
                fmt::format("Split with behavior {} and invert {} is not supported", quote(behavior.dump()), invert),
                {}, kHint);
  }
  const json& pattern = member(node, "pattern");
  if (!member(pattern, "String").is_null()) {
    KVASIR_TRY(const std::string literal, text(pattern, "String"));
    return escape_pattern(literal);
  }
  return text(pattern, "Regex");
}

// Rust's is_ascii_punctuation or Unicode's P categories.
Result<std::string> punctuation_pattern(const json& node) {
  constexpr std::string_view kClass = R"([\p{P}$+<=>^`|~])";
  const json& behavior = member(node, "behavior");
  if (behavior.is_null() || behavior == "Isolated") return std::string(kClass);
  if (behavior == "Contiguous") return fmt::format("{}+", kClass);
  return fail(Error::unsupported, fmt::format("Punctuation with behavior {} is not supported", quote(behavior.dump())),
              {}, kHint);
}

class ByteLevelReader {
 public:
  explicit ByteLevelReader(TokenizerJson file) : file_(std::move(file)) {}

  Result<ByteLevelTables> read() {
    const json& rest = file_.rest;
    KVASIR_CHECK(check_bpe_model(file_));
    KVASIR_TRY(const bool byte_fallback, flag(member(rest, "model"), "byte_fallback", false));
    if (byte_fallback)
      return fail(Error::unsupported, "model.byte_fallback with a byte-level vocabulary is not supported", {}, kHint);
    KVASIR_CHECK(each_part(member(rest, "normalizer"), "normalizers", [this](const json& n) { return normalizer(n); }));
    KVASIR_CHECK(each_part(member(rest, "pre_tokenizer"), "pretokenizers",
                           [this](const json& node) { return pre_tokenizer(node); }));
    if (!spells_bytes_) return fail(Error::unsupported, "the pre_tokenizer has no ByteLevel part", {}, kHint);
    KVASIR_CHECK(each_part(member(rest, "decoder"), "decoders", [this](const json& node) { return decoder(node); }));
    if (!decodes_) return unknown("decoder", json());
    KVASIR_TRY(static_cast<BpeTables&>(tables_), read_bpe_tables(file_));
    return std::move(tables_);
  }

 private:
  Result<void> normalizer(const json& node) {
    tables_.nfc |= type_of(node) == "NFC";
    return node.is_null() || type_of(node) == "NFC" ? Result<void>() : unknown("normalizer", node);
  }

  Result<void> pre_tokenizer(const json& node) {
    const std::string type = type_of(node);
    if (type == "ByteLevel") return byte_level(node);
    if (type == "Split") {
      KVASIR_TRY(std::string pattern, split_pattern(node));
      return cut(std::move(pattern));
    }
    if (type == "Digits") {
      KVASIR_TRY(const bool individual, flag(node, "individual_digits", false));
      return cut(individual ? R"(\p{N})" : R"(\p{N}+)");
    }
    if (type == "Punctuation") {
      KVASIR_TRY(std::string pattern, punctuation_pattern(node));
      return cut(std::move(pattern));
    }
    return unknown("pre_tokenizer", node);
  }

  Result<void> byte_level(const json& node) {
    if (spells_bytes_) return fail(Error::unsupported, "the pre_tokenizer has two ByteLevel parts", {}, kHint);
    KVASIR_TRY(const bool prefix, flag(node, "add_prefix_space", true));
    KVASIR_TRY(const bool use_regex, flag(node, "use_regex", true));
    if (prefix && !tables_.cuts.empty()) {
      return fail(Error::unsupported, "ByteLevel with add_prefix_space after another pre_tokenizer is not supported",
                  {}, kHint);
    }
    tables_.leading_space = prefix;
    spells_bytes_ = true;
    KVASIR_CHECK(cut(use_regex ? std::string(kGpt2Pattern) : std::string()));
    tables_.cuts.back().spells_bytes = true;
    return {};
  }

  Result<void> cut(std::string pattern) {
    if (tables_.cuts.size() >= kMaxCuts)
      return fail(Error::unsupported, fmt::format("over {} pre_tokenizers", kMaxCuts));
    tables_.cuts.push_back({std::move(pattern), false});
    return {};
  }

  Result<void> decoder(const json& node) {
    decodes_ = type_of(node) == "ByteLevel";
    return decodes_ ? Result<void>() : unknown("decoder", node);
  }

  TokenizerJson file_;
  ByteLevelTables tables_;
  bool spells_bytes_ = false, decodes_ = false;
};

}  // namespace

Result<ByteLevelTables> understand_byte_json(TokenizerJson file) { return ByteLevelReader(std::move(file)).read(); }

}  // namespace kvasir

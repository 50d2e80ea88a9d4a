// From JSON values to ByteLevelParts. Source of the names: huggingface/tokenizers (serialisation of each component).
#include "token/tokenizer_parts.h"

#include <fmt/format.h>

#include "token/utf8.h"

namespace kvasir {
namespace {

using nlohmann::json;

// Ids may leave gaps, but not so many that a table by id becomes a trap.
constexpr std::int64_t kMaxIdGap = std::int64_t{1} << 20;
constexpr std::size_t kMaxCuts = 64;

constexpr const char* kHint = "use a byte-level BPE tokenizer.json, or a GGUF or tokenizer.bin of the same model";

const json& member(const json& node, const char* key) {
  static const json null;
  const auto it = node.is_object() ? node.find(key) : node.end();
  return node.is_object() && it != node.end() ? *it : null;
}

std::string type_of(const json& node) {
  const json& type = member(node, "type");
  return type.is_string() ? type.get<std::string>() : std::string();
}

tl::unexpected<Error> unknown(const char* what, const json& node) {
  const std::string type = type_of(node);
  if (node.is_null()) return fail(fmt::format("the file has no {}, which byte-level BPE needs", what), {}, kHint);
  return fail(fmt::format("the {} {} is not supported", what, type.empty() ? quote(node.dump()) : quote(type)), {},
              kHint);
}

Result<bool> flag(const json& node, const char* key, bool absent) {
  const json& value = member(node, key);
  if (value.is_null()) return absent;
  if (!value.is_boolean()) return fail(fmt::format("{} is {}, not true or false", key, quote(value.dump())));
  return value.get<bool>();
}

Result<std::string> text(const json& node, const char* key) {
  const json& value = member(node, key);
  if (!value.is_string()) return fail(fmt::format("{} is {}, not text", key, quote(value.dump())));
  return value.get<std::string>();
}

Result<const json*> list(const json& node, const char* key) {
  const json& value = member(node, key);
  if (!value.is_array()) return fail(fmt::format("{} is {}, not a list", key, quote(value.dump())));
  return &value;
}

// Anything but "absent, null, false, zero or empty" would change ids.
Result<void> refuse_if_set(const json& model, const char* key) {
  const json& value = member(model, key);
  const bool unset = value.is_null() || value == false || value == 0 || value == "";
  if (unset) return {};
  return fail(fmt::format("model.{} = {} is not supported", key, quote(value.dump())), {}, kHint);
}

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
    return fail(fmt::format("Split with behavior {} and invert {} is not supported", quote(behavior.dump()), invert),
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
  return fail(fmt::format("Punctuation with behavior {} is not supported", quote(behavior.dump())), {}, kHint);
}

class PartsReader {
 public:
  explicit PartsReader(TokenizerJson file) : file_(std::move(file)) {}

  Result<ByteLevelParts> read() {
    const json& rest = file_.rest;
    KVASIR_CHECK(model(member(rest, "model")));
    KVASIR_CHECK(normalizer(member(rest, "normalizer")));
    if (member(rest, "pre_tokenizer").is_null()) return unknown("pre_tokenizer", json());
    KVASIR_CHECK(pre_tokenizer(member(rest, "pre_tokenizer")));
    if (!spells_bytes_) return fail("the pre_tokenizer has no ByteLevel part", {}, kHint);
    KVASIR_CHECK(decoder(member(rest, "decoder")));
    KVASIR_CHECK(vocabulary());
    KVASIR_CHECK(added_tokens(member(rest, "added_tokens")));
    KVASIR_CHECK(post_processor(member(rest, "post_processor")));
    return std::move(parts_);
  }

 private:
  Result<void> model(const json& node) {
    // Files from before the key existed are BPE if they have merges.
    if (type_of(node) != "BPE" && !(member(node, "type").is_null() && file_.has_merges)) return unknown("model", node);
    if (file_.vocab_is_list) return fail("model.vocab is a list, not a map");
    for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"}) {
      KVASIR_CHECK(refuse_if_set(node, key));
    }
    KVASIR_TRY(parts_.fuse_unk, flag(node, "fuse_unk", false));
    KVASIR_TRY(parts_.ignore_merges, flag(node, "ignore_merges", false));
    return {};
  }

  Result<void> normalizer(const json& node) {
    if (node.is_null()) return {};
    const std::string type = type_of(node);
    if (type == "NFC") {
      parts_.nfc = true;
      return {};
    }
    if (type != "Sequence") return unknown("normalizer", node);
    KVASIR_TRY(const json* all, list(node, "normalizers"));
    for (const json& one : *all) KVASIR_CHECK(normalizer(one));
    return {};
  }

  Result<void> pre_tokenizer(const json& node) {
    const std::string type = type_of(node);
    if (type == "Sequence") {
      KVASIR_TRY(const json* all, list(node, "pretokenizers"));
      for (const json& one : *all) KVASIR_CHECK(pre_tokenizer(one));
      return {};
    }
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
    if (spells_bytes_) return fail("the pre_tokenizer has two ByteLevel parts", {}, kHint);
    KVASIR_TRY(const bool prefix, flag(node, "add_prefix_space", true));
    KVASIR_TRY(const bool use_regex, flag(node, "use_regex", true));
    if (prefix && !parts_.cuts.empty()) {
      return fail("ByteLevel with add_prefix_space after another pre_tokenizer is not supported", {}, kHint);
    }
    parts_.leading_space = prefix;
    spells_bytes_ = true;
    KVASIR_CHECK(cut(use_regex ? std::string(kGpt2Pattern) : std::string()));
    parts_.cuts.back().spells_bytes = true;
    return {};
  }

  Result<void> cut(std::string pattern) {
    if (parts_.cuts.size() >= kMaxCuts) return fail(fmt::format("over {} pre_tokenizers", kMaxCuts));
    parts_.cuts.push_back({std::move(pattern), false});
    return {};
  }

  Result<void> decoder(const json& node) {
    const std::string type = type_of(node);
    if (type == "ByteLevel") return {};
    if (type != "Sequence") return unknown("decoder", node);
    KVASIR_TRY(const json* all, list(node, "decoders"));
    if (all->empty()) return unknown("decoder", json());
    for (const json& one : *all) KVASIR_CHECK(decoder(one));
    return {};
  }

  Result<void> vocabulary() {
    std::size_t bytes = 0;
    for (const auto& piece : file_.vocab) bytes += piece.length;
    parts_.vocabulary.reserve(file_.vocab.size(), bytes);
    for (const auto& piece : file_.vocab) {
      KVASIR_CHECK(parts_.vocabulary.add(file_.text(piece.begin, piece.length), piece.id, id_limit()));
    }
    parts_.merges.reserve(file_.merges.size());
    for (const auto& merge : file_.merges) {
      KVASIR_CHECK(parts_.merges.add(file_.text(merge.begin, merge.left_length),
                                     file_.text(merge.begin + merge.left_length, merge.right_length),
                                     parts_.vocabulary));
    }
    const json& unk = member(member(file_.rest, "model"), "unk_token");
    if (unk.is_null()) return {};
    if (unk.is_string()) parts_.unk = parts_.vocabulary.find(unk.get_ref<const std::string&>());
    if (!parts_.unk) return fail(fmt::format("model.unk_token {} is not in the vocabulary", quote(unk.dump())));
    return {};
  }

  Result<void> added_tokens(const json& node) {
    if (node.is_null()) return {};
    if (!node.is_array()) return fail("added_tokens is not a list");
    for (const json& one : node) {
      auto token = added_token(one);
      if (!token) return fail("added_tokens: " + token.error().what, {}, token.error().hint);
      const auto there = parts_.vocabulary.find(token->content);
      // The same token may stand in both lists; anything else is a contradiction that `add` names.
      if (there != token->id) KVASIR_CHECK(parts_.vocabulary.add(token->content, token->id, id_limit()));
      parts_.added.push_back(std::move(*token));
    }
    return {};
  }

  Result<AddedToken> added_token(const json& node) const {
    AddedToken token;
    KVASIR_TRY(token.content, text(node, "content"));
    const json& id = member(node, "id");
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= static_cast<std::uint64_t>(id_limit())) {
      return fail(
          fmt::format("the id {} of {} is not in 0..{}", quote(id.dump()), quote(token.content), id_limit() - 1));
    }
    token.id = id.get<int>();
    KVASIR_TRY(const bool single_word, flag(node, "single_word", false));
    if (single_word) {
      return fail(fmt::format("single_word of token {} ({}) is not supported", token.id, quote(token.content)), {},
                  kHint);
    }
    KVASIR_TRY(token.special, flag(node, "special", false));
    KVASIR_TRY(token.normalized, flag(node, "normalized", !token.special));
    KVASIR_TRY(token.lstrip, flag(node, "lstrip", false));
    KVASIR_TRY(token.rstrip, flag(node, "rstrip", false));
    return token;
  }

  Result<void> post_processor(const json& node) {
    if (node.is_null()) return {};
    const std::string type = type_of(node);
    if (type == "ByteLevel") return {};
    if (type == "TemplateProcessing") return template_processing(node);
    if (type != "Sequence") return unknown("post_processor", node);
    KVASIR_TRY(const json* all, list(node, "processors"));
    for (const json& one : *all) KVASIR_CHECK(post_processor(one));
    return {};
  }

  // `single` is what one text becomes: tokens before it are kept, tokens after it would end a prompt that is to go on.
  Result<void> template_processing(const json& node) {
    KVASIR_TRY(const json* single, list(node, "single"));
    bool after_text = false;
    for (const json& item : *single) {
      const json& special = member(item, "SpecialToken");
      if (special.is_null()) {
        if (after_text || member(member(item, "Sequence"), "id") != "A") {
          return fail(fmt::format("TemplateProcessing with {} is not supported", quote(item.dump())), {}, kHint);
        }
        after_text = true;
        continue;
      }
      KVASIR_TRY(const std::string name, text(special, "id"));
      if (after_text) {
        return fail(fmt::format("TemplateProcessing adds {} after the text, which is not supported", quote(name)), {},
                    kHint);
      }
      KVASIR_CHECK(prefix_tokens(member(member(node, "special_tokens"), name.c_str()), name));
    }
    return after_text ? Result<void>() : fail("TemplateProcessing leaves the text out");
  }

  Result<void> prefix_tokens(const json& entry, const std::string& name) {
    KVASIR_TRY(const json* ids, list(entry, "ids"));
    for (const json& id : *ids) {
      const bool known = id.is_number_unsigned() && id.get<std::uint64_t>() < static_cast<std::uint64_t>(id_limit()) &&
                         parts_.vocabulary.has(id.get<int>());
      if (!known) {
        return fail(
            fmt::format("TemplateProcessing's id {} of {} is not in the vocabulary", quote(id.dump()), quote(name)));
      }
      parts_.prefix.push_back(id.get<int>());
    }
    return {};
  }

  std::int64_t id_limit() const {
    return static_cast<std::int64_t>(file_.vocab.size() + member(file_.rest, "added_tokens").size()) + kMaxIdGap;
  }

  TokenizerJson file_;
  ByteLevelParts parts_;
  bool spells_bytes_ = false;
};

}  // namespace

Result<ByteLevelParts> understand_tokenizer_json(TokenizerJson file) { return PartsReader(std::move(file)).read(); }

}  // namespace kvasir

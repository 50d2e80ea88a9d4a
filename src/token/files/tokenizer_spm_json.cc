// From JSON values to SpmTables. Source of the names and their meaning: huggingface/tokenizers (normalizers/prepend.rs,
// normalizers/replace.rs, pre_tokenizers/metaspace.rs, decoders).
#include "token/files/tokenizer_spm_json.h"

#include <algorithm>

#include "token/files/json_values.h"
#include "token/files/tokenizer_bpe_json.h"

namespace kvasir {
namespace {

using namespace json_values;

// True if the part, or one inside its sequences, has this type.
bool has_part(const json& node, const char* list_key, std::string_view type) {
  if (type_of(node) == type) return true;
  const json& list = member(node, list_key);
  return list.is_array() &&
         std::any_of(list.begin(), list.end(), [&](const json& part) { return has_part(part, list_key, type); });
}

tl::unexpected<Error> unlike(const char* what, const json& node) {
  return fail(Error::unsupported, fmt::format("the {} {} is not supported", what, quote(node.dump())), {}, kHint);
}

class SpmReader {
 public:
  explicit SpmReader(TokenizerJson file) : file_(std::move(file)) {}

  Result<SpmTables> read() {
    const json& rest = file_.rest;
    KVASIR_CHECK(check_bpe_model(file_));
    KVASIR_TRY(tables_.byte_fallback, flag(member(rest, "model"), "byte_fallback", false));
    KVASIR_CHECK(each_part(member(rest, "normalizer"), "normalizers", [this](const json& n) { return normalizer(n); }));
    KVASIR_CHECK(pre_tokenizer(member(rest, "pre_tokenizer")));
    KVASIR_CHECK(spaces());
    KVASIR_CHECK(each_part(member(rest, "decoder"), "decoders", [this](const json& node) { return decoder(node); }));
    KVASIR_CHECK(decoder_fits());
    KVASIR_TRY(static_cast<BpeTables&>(tables_), read_bpe_tables(file_));
    name_kinds();
    return std::move(tables_);
  }

 private:
  Result<void> normalizer(const json& node) {
    const std::string type = type_of(node);
    if (node.is_null()) return {};
    if (type == "Prepend") {
      if (member(node, "prepend") != kSpaceMark || prepends_) return unlike("normalizer", node);
      prepends_ = true;
      return {};
    }
    if (type == "Replace") {
      const bool marks = member(member(node, "pattern"), "String") == " " && member(node, "content") == kSpaceMark;
      if (!marks) return unlike("normalizer", node);
      replaces_ = true;
      return {};
    }
    return unknown("normalizer", node);
  }

  Result<void> pre_tokenizer(const json& node) {
    if (node.is_null()) return {};
    if (type_of(node) == "Split") return split(node);
    if (type_of(node) != "Metaspace") return unknown("pre_tokenizer", node);
    metaspace_ = true;
    if (member(node, "replacement") != kSpaceMark) return unlike("pre_tokenizer", node);
    KVASIR_TRY(tables_.cuts_at_spaces, flag(node, "split", true));
    // Files older than prepend_scheme have add_prefix_space.
    KVASIR_TRY(const bool prefix, flag(node, "add_prefix_space", true));
    const json& scheme = member(node, "prepend_scheme");
    if (scheme == "never" || (scheme.is_null() && !prefix)) {
      tables_.space_before = SpaceBefore::kNever;
    } else if (!prefix) {
      return unlike("pre_tokenizer", node);
    } else if (scheme.is_null() || scheme == "always") {
      tables_.space_before = SpaceBefore::kEveryIfMissing;
    } else if (scheme == "first") {
      tables_.space_before = SpaceBefore::kFirstIfMissing;
    } else {
      return unlike("pre_tokenizer", node);
    }
    return {};
  }

  // Accepts Gemma's Split at spaces, which splits nothing: the normalizer has replaced every space.
  Result<void> split(const json& node) const {
    KVASIR_TRY(const bool invert, flag(node, "invert", false));
    const bool at_spaces = member(member(node, "pattern"), "String") == " " && !invert;
    const bool known = at_spaces && member(node, "behavior") == "MergedWithPrevious" && replaces_ && !prepends_;
    return known ? Result<void>() : unlike("pre_tokenizer", node);
  }

  // Combines normalizer and pre_tokenizer into one rule for spaces.
  Result<void> spaces() {
    if (metaspace_ && (prepends_ || replaces_)) {
      return fail(Error::unsupported,
                  "a Prepend or Replace normalizer together with a Metaspace pre_tokenizer is not supported", {},
                  kHint);
    }
    if (prepends_ && !replaces_) {
      return fail(Error::unsupported, "a Prepend normalizer without Replace is not supported", {}, kHint);
    }
    tables_.marks_spaces = metaspace_ || replaces_;
    if (prepends_) tables_.space_before = SpaceBefore::kEvery;
    return {};
  }

  Result<void> decoder(const json& node) {
    const std::string type = type_of(node);
    if (type == "Fuse") return {};
    if (type == "ByteFallback") {
      decodes_bytes_ = true;
      return {};
    }
    if (type == "Metaspace" || type == "Replace") {
      const bool known = type == "Metaspace" ? member(node, "replacement") == kSpaceMark
                                             : member(member(node, "pattern"), "String") == kSpaceMark &&
                                                   member(node, "content") == " ";
      if (!known) return unlike("decoder", node);
      decodes_spaces_ = true;
      return {};
    }
    if (type == "Strip") {
      // Strips the one space that the encoder added. A space that it did not add is kept, whatever this part says.
      const json& start = member(node, "start");
      const bool known = member(node, "content") == " " && (start == 0 || start == 1) && member(node, "stop") == 0;
      return known ? Result<void>() : unlike("decoder", node);
    }
    return unknown("decoder", node);
  }

  Result<void> decoder_fits() const {
    if (tables_.marks_spaces != decodes_spaces_) {
      return fail(
          Error::damaged,
          fmt::format("the decoder {} U+2581 into spaces, but the encoder {} spaces into U+2581",
                      decodes_spaces_ ? "turns" : "does not turn", tables_.marks_spaces ? "turns" : "does not turn"),
          {}, kHint);
    }
    if (tables_.byte_fallback && !decodes_bytes_) {
      return fail(Error::damaged, "model.byte_fallback is set, but the decoder has no ByteFallback part", {}, kHint);
    }
    return {};
  }

  void name_kinds() {
    tables_.kinds.assign(static_cast<std::size_t>(tables_.vocabulary.size()), PieceKind::kNormal);
    for (int id = 0; tables_.byte_fallback && id < tables_.vocabulary.size(); ++id) {
      if (spelled_byte(tables_.vocabulary.piece(id))) tables_.kinds[static_cast<std::size_t>(id)] = PieceKind::kByte;
    }
    // Gemma's added tokens include runs of U+2581, which merging makes from spaces and which decode into spaces.
    for (const AddedToken& token : tables_.added)
      if (!token.special) tables_.kinds[static_cast<std::size_t>(token.id)] = PieceKind::kUserDefined;
    if (tables_.unk) tables_.kinds[static_cast<std::size_t>(*tables_.unk)] = PieceKind::kUnknown;
  }

  TokenizerJson file_;
  SpmTables tables_;
  bool prepends_ = false;
  bool replaces_ = false;
  bool metaspace_ = false;
  bool decodes_spaces_ = false;
  bool decodes_bytes_ = false;
};

}  // namespace

bool is_spm_json(const TokenizerJson& file) {
  const json& decoder = member(file.rest, "decoder");
  if (has_part(member(file.rest, "pre_tokenizer"), "pretokenizers", "ByteLevel")) return false;
  if (has_part(decoder, "decoders", "ByteLevel")) return false;
  return !decoder.is_null() || member(member(file.rest, "model"), "byte_fallback") == true;
}

Result<SpmTables> understand_spm_json(TokenizerJson file) { return SpmReader(std::move(file)).read(); }

}  // namespace kvasir

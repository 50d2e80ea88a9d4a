// From JSON values to BpeTables. Source of the names: huggingface/tokenizers (serialisation of each component).
#include "token/files/tokenizer_bpe_json.h"

#include "token/files/json_values.h"

namespace kvasir {
namespace {

using namespace json_values;

// Anything but "absent, null, false, zero or empty" would change ids.
Result<void> refuse_if_set(const json& model, const char* key) {
  const json& value = member(model, key);
  const bool unset = value.is_null() || value == false || value == 0 || value == "";
  if (unset) return {};
  return fail(Error::unsupported, fmt::format("model.{} = {} is not supported", key, quote(value.dump())), {}, kHint);
}

class BpeReader {
 public:
  explicit BpeReader(const TokenizerJson& file) : file_(file) {}

  Result<BpeTables> read() {
    const json& model = member(file_.rest, "model");
    KVASIR_TRY(tables_.fuse_unk, flag(model, "fuse_unk", false));
    KVASIR_TRY(tables_.ignore_merges, flag(model, "ignore_merges", false));
    KVASIR_CHECK(vocabulary());
    KVASIR_CHECK(added_tokens(member(file_.rest, "added_tokens")));
    KVASIR_CHECK(each_part(member(file_.rest, "post_processor"), "processors",
                           [this](const json& node) { return post_processor(node); }));
    return std::move(tables_);
  }

 private:
  Result<void> vocabulary() {
    std::size_t bytes = 0;
    for (const auto& piece : file_.vocab) bytes += piece.length;
    tables_.vocabulary.reserve(file_.vocab.size(), bytes);
    for (const auto& piece : file_.vocab) {
      KVASIR_CHECK(tables_.vocabulary.add(file_.text(piece.begin, piece.length), piece.id, id_limit()));
    }
    tables_.merges.reserve(file_.merges.size());
    for (const auto& merge : file_.merges) {
      KVASIR_CHECK(tables_.merges.add(file_.text(merge.begin, merge.left_length),
                                      file_.text(merge.begin + merge.left_length, merge.right_length),
                                      tables_.vocabulary));
    }
    const json& unk = member(member(file_.rest, "model"), "unk_token");
    if (unk.is_null()) return {};
    if (unk.is_string()) tables_.unk = tables_.vocabulary.find(unk.get_ref<const std::string&>());
    if (!tables_.unk)
      return fail(Error::damaged, fmt::format("model.unk_token {} is not in the vocabulary", quote(unk.dump())));
    return {};
  }

  Result<void> added_tokens(const json& node) {
    if (node.is_null()) return {};
    if (!node.is_array()) return fail(Error::damaged, "added_tokens is not a list");
    for (const json& one : node) {
      auto token = added_token(one);
      if (!token) return fail(token.error().kind, "added_tokens: " + token.error().what, {}, token.error().hint);
      const auto there = tables_.vocabulary.find(token->content);
      // The same token may stand in both lists; anything else is a contradiction that `add` names.
      if (there != token->id) KVASIR_CHECK(tables_.vocabulary.add(token->content, token->id, id_limit()));
      tables_.added.push_back(std::move(*token));
    }
    return {};
  }

  Result<AddedToken> added_token(const json& node) const {
    AddedToken token;
    KVASIR_TRY(token.content, text(node, "content"));
    const json& id = member(node, "id");
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= static_cast<std::uint64_t>(id_limit())) {
      return fail(Error::damaged, fmt::format("the id {} of {} is not in 0..{}", quote(id.dump()), quote(token.content),
                                              id_limit() - 1));
    }
    token.id = id.get<int>();
    KVASIR_TRY(token.single_word, flag(node, "single_word", false));
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
    return unknown("post_processor", node);
  }

  // `single` is the template for one text. Tokens before the text are kept; tokens after it are refused, since they
  // would end a prompt that generation continues.
  Result<void> template_processing(const json& node) {
    KVASIR_TRY(const json* single, list(node, "single"));
    bool after_text = false;
    for (const json& item : *single) {
      const json& special = member(item, "SpecialToken");
      if (special.is_null()) {
        if (after_text || member(member(item, "Sequence"), "id") != "A") {
          return fail(Error::unsupported,
                      fmt::format("TemplateProcessing with {} is not supported", quote(item.dump())), {}, kHint);
        }
        after_text = true;
        continue;
      }
      KVASIR_TRY(const std::string name, text(special, "id"));
      if (after_text) {
        return fail(Error::unsupported,
                    fmt::format("TemplateProcessing adds {} after the text, which is not supported", quote(name)), {},
                    kHint);
      }
      KVASIR_CHECK(prefix_tokens(member(member(node, "special_tokens"), name.c_str()), name));
    }
    return after_text ? Result<void>() : fail(Error::damaged, "TemplateProcessing leaves the text out");
  }

  Result<void> prefix_tokens(const json& entry, const std::string& name) {
    KVASIR_TRY(const json* ids, list(entry, "ids"));
    for (const json& id : *ids) {
      const bool known = id.is_number_unsigned() && id.get<std::uint64_t>() < static_cast<std::uint64_t>(id_limit()) &&
                         tables_.vocabulary.has(id.get<int>());
      if (!known) {
        return fail(Error::damaged, fmt::format("TemplateProcessing's id {} of {} is not in the vocabulary",
                                                quote(id.dump()), quote(name)));
      }
      tables_.prefix.push_back(id.get<int>());
    }
    return {};
  }

  std::int64_t id_limit() const {
    return static_cast<std::int64_t>(file_.vocab.size() + member(file_.rest, "added_tokens").size()) + kMaxIdGap;
  }

  const TokenizerJson& file_;
  BpeTables tables_;
};

}  // namespace

Result<void> check_bpe_model(const TokenizerJson& file) {
  const json& model = member(file.rest, "model");
  // Files older than the key "type" are BPE if they have merges.
  if (type_of(model) != "BPE" && !(member(model, "type").is_null() && file.has_merges)) return unknown("model", model);
  if (file.vocab_is_list) return fail(Error::unsupported, "model.vocab is a list, not a map");
  for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
    KVASIR_CHECK(refuse_if_set(model, key));
  }
  return {};
}

Result<BpeTables> read_bpe_tables(const TokenizerJson& file) { return BpeReader(file).read(); }

}  // namespace kvasir

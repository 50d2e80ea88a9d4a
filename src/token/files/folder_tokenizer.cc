// Combines what the files of a folder say about added tokens, BOS and the space before a text. Sources of the
// precedence: huggingface/transformers tokenization_utils_base.py, tokenization_utils_fast.py and
// convert_slow_tokenizer.py.
#include "token/files/folder_tokenizer.h"

#include <algorithm>
#include <limits>

#include "base/files.h"
#include "token/byte_level.h"
#include "token/files/folder_settings.h"
#include "token/files/json_values.h"
#include "token/files/sentencepiece_vocab.h"
#include "token/files/tokenizer_byte_json.h"
#include "token/files/tokenizer_spm_json.h"
#include "token/model.h"
#include "token/spm.h"

namespace kvasir {
namespace {

using namespace json_values;
namespace fs = std::filesystem;

constexpr const char* kAloneHint = "the tokenizer's own file as ModelOptions::tokenizer, or files that agree";

// ---- added tokens -------------------------------------------------------------------------------------------------

class Adder {
 public:
  Adder(FolderSettings& settings, BpeTables& tables) : settings_(settings), tables_(tables) {}

  // `raw`: clears the `normalized` flags, as slow tokenizers do.
  Result<void> run(bool raw) {
    for (auto& [token, where, has_flags] : settings_.tokens) {
      if (raw) token.normalized = false;
      KVASIR_TRY(const bool there, place(token, where));
      if (!there) continue;
      const auto same = std::find_if(tables_.added.begin(), tables_.added.end(),
                                     [id = token.id](const AddedToken& other) { return other.id == id; });
      if (same == tables_.added.end()) {
        tables_.added.push_back(token);
      } else if (has_flags) {
        *same = token;
      }
    }
    return {};
  }

 private:
  // Sets the id of the token. Returns false for a token without an id that is not in the vocabulary.
  Result<bool> place(AddedToken& token, const std::string& where) {
    const auto known = tables_.vocabulary.find(token.content);
    if (token.id < 0 && !known) {
      const std::string what = fmt::format("{} is not in the vocabulary", quote(token.content));
      settings_.ignored.push_back({where, what, true});
      return false;
    }
    if (known && token.id >= 0 && *known != token.id)
      return fail(
          Error::damaged,
          fmt::format("{} has id {} in {} and id {} in the vocabulary", quote(token.content), token.id, where, *known),
          {}, kAloneHint);
    if (known) token.id = *known;
    if (known) return true;
    if (tables_.vocabulary.has(token.id))
      return fail(Error::damaged,
                  fmt::format("id {} is {} in {} and {} in the vocabulary", token.id, quote(token.content), where,
                              quote(tables_.vocabulary.piece(token.id))),
                  {}, kAloneHint);
    KVASIR_CHECK(tables_.vocabulary.add(token.content, token.id, tables_.vocabulary.size() + kMaxIdGap));
    return true;
  }

  FolderSettings& settings_;
  BpeTables& tables_;
};

// Sets the kinds of added tokens. Tokens outside the vocabulary's file never merge.
void fill_kinds(SpmTables& tables) {
  const auto known = tables.kinds.size(), all = static_cast<std::size_t>(tables.vocabulary.size());
  tables.kinds.resize(all, tables.scores.empty() ? PieceKind::kNormal : PieceKind::kUnused);
  if (tables.scores.empty()) return;
  tables.scores.resize(all, -std::numeric_limits<float>::infinity());
  for (const AddedToken& token : tables.added) {
    PieceKind& kind = tables.kinds[static_cast<std::size_t>(token.id)];
    if (static_cast<std::size_t>(token.id) >= known || kind == PieceKind::kNormal)
      kind = token.special ? PieceKind::kControl : PieceKind::kUserDefined;
  }
}

// ---- BOS ----------------------------------------------------------------------------------------------------------

Result<void> set_prefix(const FolderSettings& settings, BpeTables& tables) {
  if (!settings.add_bos) return {};
  if (!*settings.add_bos) {
    tables.prefix.clear();
    return {};
  }
  if (settings.bos) {
    const auto id = tables.vocabulary.find(*settings.bos);
    if (!id)
      return fail(Error::damaged, fmt::format("the bos_token {} is not in the vocabulary", quote(*settings.bos)), {},
                  kAloneHint);
    tables.prefix = {*id};
  }
  if (tables.prefix.empty())
    return fail(Error::damaged, "add_bos_token is true, but no bos_token is named", {}, kAloneHint);
  return {};
}

// Removes the tokens that tokenizer.json puts after a text. For folders that set add_bos_token or add_eos_token, which
// replace that rule.
void drop_suffix(json& node) {
  if (type_of(node) == "Sequence" && node.contains("processors")) {
    for (json& one : node["processors"]) drop_suffix(one);
    return;
  }
  if (type_of(node) != "TemplateProcessing" || !node.contains("single") || !node["single"].is_array()) return;
  json& single = node["single"];
  while (!single.empty() && !member(single.back(), "SpecialToken").is_null()) single.erase(single.size() - 1);
}

// ---- the two kinds of folder --------------------------------------------------------------------------------------

Result<void> check_space(const FolderSettings& settings, bool puts_space) {
  if (!settings.add_prefix_space || *settings.add_prefix_space == puts_space) return {};
  return fail(Error::damaged,
              fmt::format("add_prefix_space is {}, but tokenizer.json says otherwise", *settings.add_prefix_space), {},
              kAloneHint);
}

// Notes the keys of tokenizer.json that are ignored. Only calls with several or long texts use truncation and padding.
void note_json_keys(const json& file, std::vector<Ignored>& ignored) {
  constexpr std::string_view kKnown[] = {"version",        "added_tokens", "normalizer", "pre_tokenizer",
                                         "post_processor", "decoder",      "model"};
  for (const auto& [key, value] : file.items()) {
    if (value.is_null() || std::find(std::begin(kKnown), std::end(kKnown), key) != std::end(kKnown)) continue;
    const bool batches = key == "truncation" || key == "padding";
    ignored.push_back({"tokenizer.json: " + key,
                       batches ? "texts are neither truncated nor padded" : "not known to Kvasir", !batches});
  }
}

Result<FolderTokenizer> from_json(const fs::path& path, FolderSettings settings) {
  KVASIR_TRY(std::string bytes, read_text_file(path, kMaxTokenizerBytes));
  KVASIR_TRY(TokenizerJson file, read_tokenizer_json(std::exchange(bytes, {})));
  note_json_keys(file.rest, settings.ignored);
  const bool anew = settings.add_bos || settings.add_eos;
  if (anew && file.rest.contains("post_processor")) drop_suffix(file.rest["post_processor"]);
  if (settings.legacy) settings.ignored.push_back({"tokenizer_config.json: legacy", "tokenizer.json says it", false});
  FolderTokenizer made;
  if (is_spm_json(file)) {
    KVASIR_TRY(SpmTables tables, understand_spm_json(std::move(file)));
    KVASIR_CHECK(check_space(settings, tables.space_before != SpaceBefore::kNever));
    KVASIR_CHECK(Adder(settings, tables).run(false));
    KVASIR_CHECK(set_prefix(settings, tables));
    fill_kinds(tables);
    KVASIR_TRY(made.model, SpmModel::make(std::move(tables)));
  } else {
    KVASIR_TRY(ByteLevelTables tables, understand_byte_json(std::move(file)));
    KVASIR_CHECK(check_space(settings, tables.leading_space));
    KVASIR_CHECK(Adder(settings, tables).run(false));
    KVASIR_CHECK(set_prefix(settings, tables));
    KVASIR_TRY(made.model, ByteLevelModel::make(std::move(tables)));
  }
  made.ignored = std::move(settings.ignored);
  return made;
}

// Returns where the encoder adds a space: as the model's file says, unless the folder's settings differ.
Result<SpaceBefore> space_of(const FolderSettings& settings, SpaceBefore models) {
  const bool space = settings.add_prefix_space.value_or(models != SpaceBefore::kNever);
  if (!space) return SpaceBefore::kNever;
  if (models == SpaceBefore::kNever)
    return fail(Error::damaged, "add_prefix_space is true, but tokenizer.model says otherwise", {}, kAloneHint);
  return settings.legacy.value_or(true) ? models : SpaceBefore::kFirstIfMissing;
}

Result<FolderTokenizer> from_sentencepiece(const fs::path& path, FolderSettings settings) {
  KVASIR_TRY(const std::string bytes, read_text_file(path, kMaxTokenizerBytes));
  KVASIR_TRY(SpmTables tables, read_sentencepiece_vocab(bytes));
  for (int id = 0; id < tables.vocabulary.size(); ++id) {
    const PieceKind kind = tables.kinds[static_cast<std::size_t>(id)];
    const bool special = kind == PieceKind::kUnknown || kind == PieceKind::kControl;
    if (!special && kind != PieceKind::kUserDefined) continue;
    tables.added.push_back({.content = std::string(tables.vocabulary.piece(id)), .id = id, .special = special});
  }
  KVASIR_TRY(tables.space_before, space_of(settings, tables.space_before));
  KVASIR_CHECK(Adder(settings, tables).run(true));
  KVASIR_CHECK(set_prefix(settings, tables));
  fill_kinds(tables);
  FolderTokenizer made;
  KVASIR_TRY(made.model, SpmModel::make(std::move(tables)));
  made.ignored = std::move(settings.ignored);
  return made;
}

}  // namespace

Result<FolderTokenizer> read_folder_tokenizer(const fs::path& folder) {
  KVASIR_TRY(FolderSettings settings, read_folder_settings(folder));
  const fs::path json = folder / "tokenizer.json", model = folder / "tokenizer.model";
  const bool has_json = is_there(json);
  if (!has_json && !is_there(model))
    return fail(Error::not_found, "the folder has no tokenizer", folder.string(),
                "one with a tokenizer.json or a tokenizer.model");
  auto made = has_json ? from_json(json, std::move(settings)) : from_sentencepiece(model, std::move(settings));
  if (!made && made.error().where.empty()) made.error().where = (has_json ? json : model).string();
  return made;
}

}  // namespace kvasir

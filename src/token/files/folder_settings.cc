// The three files, and the table of the keys of tokenizer_config.json. Source of the keys and of what each file
// decides: huggingface/transformers tokenization_utils_base.py.
#include "token/files/folder_settings.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/files.h"
#include "token/files/json_values.h"
#include "token/model.h"

namespace kvasir {
namespace {

using namespace json_values;
namespace fs = std::filesystem;

constexpr const char* kConfig = "tokenizer_config.json";
constexpr const char* kAdded = "added_tokens.json";
constexpr const char* kMap = "special_tokens_map.json";

// Keys that name a token by its role; those of kRoleLists hold several.
constexpr const char* kRoles[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                  "pad_token", "cls_token", "mask_token"};
constexpr const char* kRoleLists[] = {"additional_special_tokens", "extra_special_tokens"};

struct Harmless {
  std::string_view key, why;
};
// Keys of tokenizer_config.json that do not change the ids of a single text. Keys without a reason are not listed as
// ignored: they are read here or elsewhere.
constexpr Harmless kHarmless[] = {
    {"model_max_length", "config.json says how long a context may be"},
    {"tokenizer_class", "the tokenizer's own file says what it is"},
    {"slow_tokenizer_class", "the tokenizer's own file says what it is"},
    {"tokenizer_type", "the tokenizer's own file says what it is"},
    {"processor_class", "not about text"},
    {"image_processor_type", "not about text"},
    {"feature_extractor_type", "not about text"},
    {"auto_map", "code of the folder's own, which is not run"},
    {"trust_remote_code", "code of the folder's own, which is not run"},
    {"padding_side", "texts are not padded"},
    {"padding", "texts are not padded"},
    {"pad_to_multiple_of", "texts are not padded"},
    {"pad_token_type_id", "texts are not padded"},
    {"pad_token_id", "texts are not padded"},
    {"max_length", "texts are not truncated"},
    {"truncation", "texts are not truncated"},
    {"truncation_side", "texts are not truncated"},
    {"stride", "texts are not truncated"},
    {"clean_up_tokenization_spaces", "decoding gives the text as it is"},
    {"spaces_between_special_tokens", "decoding gives the text as it is"},
    {"skip_special_tokens", "decoding gives the text as it is"},
    {"errors", "decoding keeps bytes that are not UTF-8"},
    {"model_input_names", "not about ids"},
    {"return_token_type_ids", "not about ids"},
    {"token_type_ids_pattern", "not about ids"},
    {"model_type", "config.json says it"},
    {"name_or_path", "where the files came from"},
    {"_name_or_path", "where the files came from"},
    {"special_tokens_map_file", "where the files came from"},
    {"tokenizer_file", "where the files came from"},
    {"vocab_file", "where the files came from"},
    {"use_default_system_prompt", "prompts are taken as they are"},
    {"default_system_prompt", "prompts are taken as they are"},
    {"from_slow", "the tokenizer's own file is read"},
    {"use_fast", "the tokenizer's own file is read"},
    {"is_local", "where the files came from"},
    {"backend", "the tokenizer's own file is read"},
    {"language", "not about ids"},
    {"added_tokens_decoder", ""},
    {"chat_template", ""},
    {"add_bos_token", ""},
    {"add_eos_token", ""},
    {"add_prefix_space", ""},
    {"legacy", ""},
};
// Keys that change ids whenever they are set.
constexpr const char* kRefused[] = {"split_special_tokens", "do_lower_case", "sp_model_kwargs",  "remove_space",
                                    "keep_accents",         "strip_accents", "add_dummy_prefix", "normalization"};

bool is_set(const json& value) {
  return !(value.is_null() || value == false || value == "" || (value.is_structured() && value.empty()));
}

Result<std::optional<bool>> maybe(const json& config, const char* key) {
  if (member(config, key).is_null()) return std::nullopt;
  KVASIR_TRY(const bool value, flag(config, key, false));
  return value;
}

class Reader {
 public:
  explicit Reader(const fs::path& folder) : folder_(folder) {}

  Result<FolderSettings> read() {
    KVASIR_TRY(const json config, object(kConfig));
    KVASIR_CHECK(in(kConfig, flags(config)));
    KVASIR_CHECK(in(kConfig, decoder(member(config, "added_tokens_decoder"))));
    KVASIR_CHECK(in(kConfig, keys(config)));
    KVASIR_TRY(const json added, object(kAdded));
    KVASIR_TRY(const json map, object(kMap));
    KVASIR_CHECK(in(kConfig, roles(config, kConfig)));
    // If tokenizer_config.json lists the added tokens, special_tokens_map.json is a copy and counts for nothing.
    if (member(config, "added_tokens_decoder").is_null()) KVASIR_CHECK(in(kMap, roles(map, kMap)));
    KVASIR_CHECK(in(kAdded, added_tokens(added)));
    out_.tokens.insert(out_.tokens.end(), named_.begin(), named_.end());
    return std::move(out_);
  }

 private:
  // Returns null if there is no such file.
  Result<json> object(const char* name) const {
    const fs::path path = folder_ / name;
    if (!is_there(path)) return json();
    KVASIR_TRY(const std::string bytes, read_text_file(path, kMaxTokenizerBytes));
    json file = json::parse(bytes, nullptr, false);
    if (!file.is_object()) return fail(Error::damaged, "not a JSON object", path.string(), "fetch the file again");
    return file;
  }

  Result<void> in(const char* name, Result<void> done) const {
    if (done) return done;
    return fail(done.error().kind, done.error().what, (folder_ / name).string(), done.error().hint);
  }

  Result<void> flags(const json& config) {
    KVASIR_TRY(out_.add_bos, maybe(config, "add_bos_token"));
    KVASIR_TRY(out_.add_eos, maybe(config, "add_eos_token"));
    KVASIR_TRY(out_.add_prefix_space, maybe(config, "add_prefix_space"));
    KVASIR_TRY(out_.legacy, maybe(config, "legacy"));
    if (out_.add_eos.value_or(false))
      return fail(Error::unsupported,
                  "add_eos_token is true, and a token after the text would end a prompt that is to go on", {},
                  "\"add_eos_token\": false, or the tokenizer's own file as ModelOptions::tokenizer");
    for (const char* key : kRefused)
      if (is_set(member(config, key)))
        return fail(Error::unsupported, fmt::format("{} = {} is not supported", key, quote(member(config, key).dump())),
                    {}, "the tokenizer's own file as ModelOptions::tokenizer");
    return {};
  }

  Result<void> decoder(const json& node) {
    if (node.is_null()) return {};
    if (!node.is_object()) return fail(Error::damaged, "added_tokens_decoder is not an object");
    for (const auto& [key, value] : node.items()) {
      int id = -1;
      const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
      if (error != std::errc() || end != key.data() + key.size() || id < 0)
        return fail(Error::damaged,
                    fmt::format("added_tokens_decoder has the id {}, which is not a number", quote(key)));
      auto token = token_of(value, false);
      if (!token) return fail(token.error().kind, fmt::format("added_tokens_decoder: {}: {}", id, token.error().what));
      token->id = id;
      if (!token->content.empty()) out_.tokens.push_back({std::move(*token), "added_tokens_decoder", true});
    }
    return {};
  }

  // Notes a key that is in no list as ignored and not known.
  Result<void> keys(const json& config) {
    if (config.is_null()) return {};
    const auto is = [](const std::string& key) { return [&key](std::string_view other) { return key == other; }; };
    for (const auto& [key, value] : config.items()) {
      if (std::any_of(std::begin(kRoles), std::end(kRoles), is(key)) ||
          std::any_of(std::begin(kRoleLists), std::end(kRoleLists), is(key)) ||
          std::any_of(std::begin(kRefused), std::end(kRefused), is(key)))
        continue;
      const auto known = std::find_if(std::begin(kHarmless), std::end(kHarmless),
                                      [&wanted = key](const Harmless& harmless) { return harmless.key == wanted; });
      const std::string name = fmt::format("{}: {}", kConfig, key);
      if (known == std::end(kHarmless)) {
        if (is_set(value)) out_.ignored.push_back({name, "not known to Kvasir", true});
      } else if (!known->why.empty()) {
        out_.ignored.push_back({name, std::string(known->why), false});
      }
    }
    return {};
  }

  Result<void> roles(const json& file, const char* where) {
    for (const char* role : kRoles) KVASIR_CHECK(role_of(member(file, role), role, where));
    for (const char* role : kRoleLists) {
      const json& list = member(file, role);
      for (const json& one : list.is_structured() ? list : json::array()) KVASIR_CHECK(role_of(one, role, where));
    }
    return {};
  }

  Result<void> role_of(const json& value, const char* role, const char* where) {
    if (value.is_null() || value == "") return {};
    auto token = token_of(value, true);
    if (!token) return fail(token.error().kind, fmt::format("{}: {}", role, token.error().what));
    token->special = true;
    if (std::string_view(role) == "bos_token" && !out_.bos) out_.bos = token->content;
    named_.push_back({std::move(*token), fmt::format("{}: {}", where, role), false});
    return {};
  }

  Result<void> added_tokens(const json& file) {
    if (file.is_null()) return {};
    for (const auto& [content, id] : file.items()) {
      if (!id.is_number_unsigned() || id.get<std::uint64_t>() > INT32_MAX)
        return fail(Error::damaged, fmt::format("the id {} of {} is not a token id", quote(id.dump()), quote(content)));
      const auto same = [&text = content](const Declared& other) { return other.token.content == text; };
      if (content.empty() || std::any_of(out_.tokens.begin(), out_.tokens.end(), same)) continue;
      const bool special = std::any_of(named_.begin(), named_.end(), same);
      out_.tokens.push_back(
          {{.content = content, .id = id.get<int>(), .special = special, .normalized = !special}, kAdded, false});
    }
    return {};
  }

  // `value` is a text, or an object with a content and flags.
  Result<AddedToken> token_of(const json& value, bool special) const {
    AddedToken token{.content = {}, .special = special};
    if (value.is_string()) {
      token.content = value.get<std::string>();
      return token;
    }
    KVASIR_TRY(token.content, text(value, "content"));
    KVASIR_TRY(token.special, flag(value, "special", special));
    KVASIR_TRY(token.normalized, flag(value, "normalized", !token.special));
    KVASIR_TRY(token.single_word, flag(value, "single_word", false));
    KVASIR_TRY(token.lstrip, flag(value, "lstrip", false));
    KVASIR_TRY(token.rstrip, flag(value, "rstrip", false));
    return token;
  }

  using Declared = FolderSettings::Declared;
  const fs::path& folder_;
  FolderSettings out_;
  std::vector<Declared> named_;
};

}  // namespace

Result<FolderSettings> read_folder_settings(const fs::path& folder) { return Reader(folder).read(); }

}  // namespace kvasir

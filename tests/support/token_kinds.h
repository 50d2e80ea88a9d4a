// One folder for each kind of tokenizer, written on request. Test code only.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/proto_writer.h"
#include "tests/support/temp_files.h"
#include "token/files/proto_wire.h"

namespace kvasir::token_kinds {

namespace fs = std::filesystem;

struct Kind {
  std::string name;
  std::string arch;                                  ///< architecture of the GGUF file
  std::string refused;                               ///< part of the refusal; empty: GGUF can hold it
  std::function<bool(const fs::path& folder)> make;  ///< false: outside data is absent
};

inline bool copy_to(const fs::path& from, const fs::path& to) {
  std::error_code ec;
  return fs::exists(from, ec) && fs::copy_file(from, to, fs::copy_options::overwrite_existing, ec);
}

inline fs::path mistral(std::string_view version) {
  const fs::path folder = format_test::outside_data() / "tokenizers/mistral";
  return folder / (version == "v1" ? "tokenizer.model.v1" : "mistral_instruct_tokenizer_240323.model.v3");
}

/// Mistral's v1 with some pieces of another type: of two type fields the later one wins.
inline bool mistral_with_types(const fs::path& folder, unsigned type, const std::vector<std::string>& pieces) {
  using token_test::bytes_field;
  const std::string file = format_test::slurp(mistral("v1"));
  if (file.empty()) return false;
  std::string out;
  ProtoReader reader(file);
  for (auto field = reader.next(); field && *field; field = reader.next()) {
    bool chosen = false;
    if ((*field)->number == 1) {
      const auto piece = ProtoReader((*field)->bytes).next();
      for (const std::string& one : pieces) chosen |= piece && *piece && (*piece)->bytes == one;
    }
    out += chosen ? bytes_field(1, std::string((*field)->bytes) + token_test::varint_field(3, type))
                  : std::string((*field)->whole);
  }
  format_test::put(folder / "tokenizer.model", out);
  return true;
}

inline bool mistral_with_user_defined(const fs::path& folder) {
  return mistral_with_types(folder, 4, {"\u2581the", "world"});
}

/// Mistral's v1 with a file beside it.
inline auto mistral_with(std::string name, std::string text) {
  return [name = std::move(name), text = std::move(text)](const fs::path& folder) {
    format_test::put(folder / name, text);
    return copy_to(mistral("v1"), folder / "tokenizer.model");
  };
}

inline auto json_folder(const std::string& name) {
  return [name](const fs::path& folder) {
    const fs::path from = format_test::outside_data() / "tokenizers" / name;
    copy_to(from / "tokenizer_config.json", folder / "tokenizer_config.json");
    return copy_to(from / "tokenizer.json", folder / "tokenizer.json");
  };
}

inline auto shipped(const std::string& name) {
  return [name](const fs::path& folder) {
    const fs::path from = fs::path(KVASIR_SOURCE_DIR) / "models" / name;
    return copy_to(from / "tokenizer.json", folder / "tokenizer.json");
  };
}

/// Llama 2's kind of tokenizer.json, with its merges by rank.
inline bool llama2_json(const fs::path& folder) {
  format_test::put(folder / "tokenizer.json", R"({"version":"1.0","added_tokens":[
{"id":0,"content":"<unk>","special":true},{"id":1,"content":"<s>","special":true}],
"normalizer":{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},
{"type":"Replace","pattern":{"String":" "},"content":"▁"}]},"pre_tokenizer":null,"post_processor":null,
"decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},
{"type":"ByteFallback"},{"type":"Fuse"}]},
"model":{"type":"BPE","unk_token":"<unk>","byte_fallback":true,"fuse_unk":true,
"vocab":{"<unk>":0,"<s>":1,"▁":2,"t":3,"h":4,"▁t":5,"▁th":6},"merges":["▁ t","▁t h"]}})");
  return true;
}

/// A byte-level tokenizer with more added tokens.
inline auto with_added(const std::string& added) {
  return [added](const fs::path& folder) {
    std::string text = format_test::slurp(fs::path(KVASIR_SOURCE_DIR) / "models/tales/tokenizer.json");
    const std::string key = "\"added_tokens\"";
    text.insert(text.find('[', text.find(key)) + 1, added + ",");
    format_test::put(folder / "tokenizer.json", text);
    return true;
  };
}

inline std::string phi3_tokens(bool rstrip) {
  const auto token = [&](int id, const char* text, bool strips) {
    return "\"" + std::to_string(id) + R"(": {"content": ")" + text + R"(", "special": true, "rstrip": )" +
           (strips ? "true}" : "false}");
  };
  return R"({"added_tokens_decoder": {)" + token(2, "</s>", rstrip) + "," + token(32000, "<|endoftext|>", false) + "," +
         token(32001, "<|assistant|>", rstrip) + "," + token(32007, "<|end|>", rstrip) + "}}";
}

inline std::vector<Kind> kinds() {
  const auto config = [](const char* text) { return mistral_with("tokenizer_config.json", text); };
  return {
      {"gpt2", "gpt2", "", json_folder("gpt2")},
      {"smollm2", "llama", "", json_folder("smollm2")},
      {"qwen3", "qwen3", "", json_folder("qwen3")},
      {"tales", "llama", "", shipped("tales")},
      {"tales-gpt2", "gpt2", "", shipped("tales-gpt2")},
      {"mistral v1", "llama", "", [](const fs::path& to) { return copy_to(mistral("v1"), to / "tokenizer.model"); }},
      {"mistral v3", "llama", "", [](const fs::path& to) { return copy_to(mistral("v3"), to / "tokenizer.model"); }},
      {"user-defined pieces", "llama", "", mistral_with_user_defined},
      {"unused piece", "llama", "never merged", [](const fs::path& to) { return mistral_with_types(to, 5, {"the"}); }},
      {"control piece with a space", "llama", "never merged",
       [](const fs::path& to) { return mistral_with_types(to, 3, {"\u2581the"}); }},
      {"added_tokens.json", "llama", "",
       mistral_with("added_tokens.json", R"({"<|im_end|>": 32000, "<|im_start|>": 32001, "\n\n": 32003})")},
      {"no space", "llama", "", config(R"({"add_prefix_space": false})")},
      {"no bos", "llama", "", config(R"({"add_bos_token": false})")},
      {"a space where none is", "llama", "space only where none is", config(R"({"legacy": false})")},
      {"phi-3", "phi3", "", config(phi3_tokens(true).c_str())},
      {"phi-3 as a llama", "llama", "swallows white space", config(phi3_tokens(true).c_str())},
      {"phi-3 without flags", "phi3", "leaves white space", config(phi3_tokens(false).c_str())},
      {"llama-2 by rank", "llama", "by rank", llama2_json},
      {"tokens that meet", "llama", "meet",
       with_added(R"({"id":4096,"content":"<a|","special":true},{"id":4097,"content":"|bcd>","special":true})")},
      {"normalised and not", "llama", "meet",
       with_added(R"({"id":4096,"content":"<a|b|c|","normalized":true},{"id":4097,"content":"|b","special":true},
{"id":4098,"content":"|>","special":true})")},
      {"normalised with another inside", "llama", "holds",
       with_added(R"({"id":4096,"content":"<a|b|c>","normalized":true},{"id":4097,"content":"|b","special":true})")},
  };
}

}  // namespace kvasir::token_kinds

// Reads a file by its format; a model is also opened, for its fingerprint.
#include "lab/inspect.h"

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <kvasir/model.h>

#include "cache/kv_type.h"
#include "cache/share/snapshot.h"
#include "engine/model_files.h"
#include "format/gguf.h"
#include "format/safetensors.h"

namespace kvasir {
namespace fs = std::filesystem;

namespace {

using Json = nlohmann::json;

constexpr size_t kShownElements = 6;

// The shortest decimal that reads back as the same f32, instead of the 17 digits of the equal double.
Json float_json(double number) { return std::strtod(fmt::format("{}", static_cast<float>(number)).c_str(), nullptr); }

Json scalar_json(const GgufValue& value) {
  if (value.type == GgufType::f32) return float_json(*value.as_number());
  if (const auto integer = value.as_int()) return *integer;
  if (const auto number = value.as_number()) return *number;  // a float, or a u64 above the range of int64
  if (const auto flag = value.as_bool()) return *flag;
  return Json(std::string(value.as_string().value_or("")));
}

Json array_json(const GgufValue& value) {
  Json list = Json::array();
  const auto full = [&list] { return list.size() == kShownElements; };
  for (std::string_view text : value.strings)
    if (!full()) list.push_back(std::string(text));
  if (const auto numbers = value.as_numbers())
    for (double number : *numbers) {
      if (full()) break;
      if (value.element == GgufType::f32)
        list.push_back(float_json(number));
      else if (value.element == GgufType::f64)
        list.push_back(number);
      else
        list.push_back(static_cast<int64_t>(number));
    }
  return list;
}

Inspection::Entry entry_of(std::string_view key, const GgufValue& value) {
  const auto dump = [](const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); };
  if (value.type != GgufType::array)
    return {std::string(key), std::string(gguf_type_name(value.type)), dump(scalar_json(value))};
  return {std::string(key), fmt::format("{} {}", value.count, gguf_type_name(value.element)), dump(array_json(value))};
}

void add_config(const ConfigView& config, Inspection* out) {
  const Json json = Json::parse(config.json_text());
  for (const auto& [key, value] : json.items())
    out->metadata.push_back({key, "", value.dump(-1, ' ', false, Json::error_handler_t::replace)});
}

void add_tensors(const TensorDir& dir, Inspection* out) {
  for (const TensorInfo& tensor : dir.tensors) {
    int64_t elements = 1;
    for (int64_t dim : tensor.shape) elements *= dim;
    out->elements += elements;
    out->bytes += tensor.bytes;
    out->tensors.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.bytes,
                            dir.files[static_cast<size_t>(tensor.file)]->path().filename().string()});
  }
}

Result<void> read_gguf(const fs::path& path, Inspection* out) {
  KVASIR_TRY(const GgufFile file, open_gguf(path));
  out->format = fmt::format("GGUF v{}", file.version);
  for (const auto& [key, value] : file.metadata.entries) out->metadata.push_back(entry_of(key, value));
  add_tensors(file.tensors, out);
  return {};
}

Result<void> read_file(const fs::path& path, Inspection* out) {
  std::error_code ec;
  if (is_gguf(path) || path.extension() == ".gguf") return read_gguf(path, out);
  if (path.extension() == ".safetensors") {
    out->format = "safetensors";
    KVASIR_TRY(const TensorDir dir, open_safetensors(path));
    add_tensors(dir, out);
    return {};
  }
  if (fs::is_directory(path, ec)) {
    out->format = "safetensors";
    KVASIR_TRY(const ConfigView config, ConfigView::read(path / "config.json"));
    KVASIR_TRY(const TensorDir dir, open_safetensors(path));
    add_config(config, out);
    add_tensors(dir, out);
    return {};
  }
  KVASIR_TRY(const ModelFiles files, read_model_files(path));
  out->format = files.format;
  add_config(files.config, out);
  add_tensors(files.tensors, out);
  return {};
}

void add_number(const char* key, int64_t value, Inspection* out) {
  out->metadata.push_back({key, "", Json(value).dump()});
}

// Checks all checksums, so that damaged values are not shown.
Result<void> read_snapshot(const fs::path& path, Inspection* out) {
  KVASIR_TRY(const Snapshot snapshot, Snapshot::open(path));
  KVASIR_CHECK(snapshot.check());
  const SnapshotHeader& h = snapshot.header();
  out->format = "Kvasir snapshot";
  out->fingerprint = h.fingerprint;
  add_number("tokens", static_cast<int64_t>(h.tokens.size()), out);
  add_number("positions", h.positions, out);
  add_number("bytes", static_cast<int64_t>(snapshot.bytes()), out);
  add_number("numerics_version", h.numerics_version, out);
  add_number("layers", h.shape.layers, out);
  add_number("kv_heads", h.shape.kv_heads, out);
  add_number("head_dim", h.shape.head_dim, out);
  const auto add_text = [out](const char* key, std::string_view text) {
    out->metadata.push_back({key, "", Json(std::string(text)).dump()});
  };
  add_text("kv_type_k", h.shape.k->name);
  add_text("kv_type_v", h.shape.v->name);
  add_text("window", h.shape.window_policy());
  out->metadata.push_back({"oldest", "", Json(h.oldest).dump()});
  return {};
}

Result<std::string> fingerprint_of(const std::string& path, std::vector<Ignored>* ignored) {
  KVASIR_TRY(const auto model,
             Model::open(path, {.weights = WeightsMode::mapped, .tokenizer = {}, .with_tokenizer = false}));
  *ignored = model->info().ignored;
  return model->fingerprint();
}

}  // namespace

Result<Inspection> inspect(const std::string& name_or_path) {
  Inspection out;
  KVASIR_TRY(out.path, find_model(name_or_path));
  if (is_snapshot(out.path)) {
    KVASIR_CHECK(read_snapshot(out.path, &out));
    return out;
  }
  try {
    KVASIR_CHECK(read_file(out.path, &out));
  } catch (const std::exception& e) {  // out of memory, or an error of the JSON library
    return fail(Error::no_room, e.what(), out.path);
  }
  auto fingerprint = fingerprint_of(out.path, &out.ignored);
  if (const auto tokenizer = open_tokenizer(out.path))
    out.ignored.insert(out.ignored.end(), (*tokenizer)->ignored().begin(), (*tokenizer)->ignored().end());
  if (fingerprint)
    out.fingerprint = *fingerprint;
  else
    out.reason = fingerprint.error().message();
  return out;
}

}  // namespace kvasir

// Opens a model's safetensors: one file, or the shards that an index lists. safetensors_header.cc parses the headers.
#include "format/safetensors.h"

#include <map>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/quote.h"
#include "format/strict_json.h"

namespace kvasir {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr size_t kMaxIndexBytes = size_t{32} << 20;  // the largest known model's index is 9 MB

using ShardMap = std::map<std::string, std::vector<std::string>>;  // shard file name -> tensors listed in it

/// Maps one more file and appends its tensors.
Result<void> add_file(TensorDir& dir, const fs::path& path) {
  KVASIR_TRY(auto file, MappedFile::open(path));
  KVASIR_TRY(auto tensors, parse_safetensors_header(file->bytes(), path.string()));
  for (TensorInfo& tensor : tensors) {
    tensor.file = static_cast<int>(dir.files.size());
    dir.tensors.push_back(std::move(tensor));
  }
  dir.files.push_back(std::move(file));
  return {};
}

bool is_plain_file_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find_first_of(std::string_view("/\\\0", 3)) == name.npos;
}

Result<ShardMap> read_index(const fs::path& path) {
  KVASIR_TRY(const std::string text, read_text_file(path, kMaxIndexBytes));
  KVASIR_TRY(const nlohmann::json index, parse_strict_json(text, path.string()));
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (map == index.end() || !map->is_object() || map->empty())
    return fail(Error::damaged, "no \"weight_map\" from tensors to shards", path.string());
  ShardMap shards;
  for (const auto& [tensor, shard] : map->items()) {
    if (!shard.is_string() || !is_plain_file_name(shard.get_ref<const std::string&>()))
      return fail(Error::damaged,
                  fmt::format("the shard of {} is not the name of a file beside the index", in_quotes(tensor)),
                  path.string());
    shards[shard.get<std::string>()].push_back(tensor);
  }
  return shards;
}

Result<TensorDir> open_shards(const fs::path& folder) {
  const std::string where = (folder / kIndex).string();
  KVASIR_TRY(const ShardMap shards, read_index(folder / kIndex));
  TensorDir dir;
  for (const auto& [name, listed] : shards) KVASIR_CHECK(add_file(dir, folder / name));
  KVASIR_CHECK(sort_tensors(dir.tensors, where));
  int file = 0;
  for (const auto& [name, listed] : shards) {
    for (const std::string& tensor : listed) {
      const TensorInfo* found = dir.find(tensor);
      if (found == nullptr || found->file != file)
        return fail(Error::damaged, fmt::format("tensor {} is not in its shard {}", in_quotes(tensor), in_quotes(name)),
                    where, "download the index and the shards again");
    }
    ++file;
  }
  return dir;
}

Result<TensorDir> open_folder(const fs::path& folder) {
  if (is_there(folder / kSingle)) {
    TensorDir dir;
    KVASIR_CHECK(add_file(dir, folder / kSingle));
    return dir;
  }
  if (is_there(folder / kIndex)) return open_shards(folder);
  return fail(Error::not_found, fmt::format("neither {} nor {} is in this folder", kSingle, kIndex), folder.string(),
              "save the model as safetensors");
}

}  // namespace

Result<TensorDir> open_safetensors(const fs::path& file_or_folder) {
  try {
    std::error_code ignored;
    if (fs::is_directory(file_or_folder, ignored)) return open_folder(file_or_folder);
    TensorDir dir;
    KVASIR_CHECK(add_file(dir, file_or_folder));
    return dir;
  } catch (const std::exception& e) {
    return fail(Error::no_room, fmt::format("cannot open: {}", e.what()), file_or_folder.string());
  }
}

}  // namespace kvasir

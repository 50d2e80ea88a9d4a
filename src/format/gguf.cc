// Opens GGUF files: one, or all parts of a split one.
#include "format/gguf.h"

#include <fmt/format.h>

namespace kvasir {
namespace fs = std::filesystem;

namespace {

constexpr int64_t kMaxSplits = 65535;  // split.count is 16 bits wide

Result<int64_t> split_key(const GgufMetadata& metadata, std::string_view key, int64_t absent) {
  KVASIR_TRY(const auto value, metadata.get_int(key));
  return value.value_or(absent);
}

// Returns the path of part `no` (from 0) beside `path`, which must be the name of a part, with any ending.
Result<fs::path> part_name(const fs::path& path, int64_t no, int64_t count) {
  constexpr size_t kNumber = 7;  // "-00001-"
  const std::string name = path.filename().string(), total = fmt::format("of-{:05}", count);
  const size_t at = name.rfind(total);
  if (at == name.npos || at <= kNumber || name[at - kNumber] != '-' || name[at - 1] != '-')
    return fail(Error::bad_argument,
                fmt::format("this is a part of {}, but its name does not end in -NNNNN-of-{:05}.gguf", count, count),
                path.string(), "restore the names of the parts");
  return path.parent_path() / fmt::format("{}-{:05}-{}", name.substr(0, at - kNumber), no + 1, name.substr(at));
}

Result<GgufHeader> add_part(const fs::path& path, TensorDir& dir) {
  KVASIR_TRY(auto file, MappedFile::open(path));
  KVASIR_TRY(GgufHeader header, parse_gguf_header(file->bytes(), path.string()));
  for (TensorInfo& tensor : header.tensors) {
    tensor.file = static_cast<int>(dir.files.size());
    dir.tensors.push_back(std::move(tensor));
  }
  dir.files.push_back(std::move(file));
  return header;
}

Result<GgufFile> open_parts(const fs::path& path, int64_t count) {
  GgufFile out;
  if (count > kMaxSplits)
    return fail(Error::unsupported, fmt::format("{} parts are over {}", count, kMaxSplits), path.string());
  int64_t declared = 0;
  for (int64_t no = 0; no < count; ++no) {
    KVASIR_TRY(const fs::path part, part_name(path, no, count));
    KVASIR_TRY(GgufHeader header, add_part(part, out.tensors));
    KVASIR_TRY(const int64_t its_no, split_key(header.metadata, "split.no", -1));
    KVASIR_TRY(const int64_t its_count, split_key(header.metadata, "split.count", -1));
    if (its_no != no || its_count != count) {
      return fail(Error::damaged,
                  fmt::format("the file says that it is part {} of {}, its name {} of {}", its_no + 1, its_count,
                              no + 1, count),
                  part.string(), "the parts of one model in one folder");
    }
    if (no > 0) continue;
    KVASIR_TRY(declared, split_key(header.metadata, "split.tensors.count", -1));
    out.version = header.version;
    out.metadata = std::move(header.metadata);
  }
  const auto found = static_cast<int64_t>(out.tensors.tensors.size());
  if (declared >= 0 && declared != found) {
    return fail(Error::damaged, fmt::format("the parts hold {} tensors, the first one says {}", found, declared),
                path.string(), "fetch the parts again");
  }
  return out;
}

}  // namespace

bool is_gguf(const fs::path& path) {
  constexpr std::string_view kMagic = "GGUF";
  std::string begin(kMagic.size(), '\0');
  const auto file = InputFile::open(path);
  return file && file->read_at(0, std::as_writable_bytes(std::span(begin))) && begin == kMagic;
}

Result<GgufFile> open_gguf(const fs::path& path) {
  GgufFile out;
  KVASIR_TRY(GgufHeader header, add_part(path, out.tensors));
  KVASIR_TRY(const int64_t count, split_key(header.metadata, "split.count", 1));
  if (count > 1) {
    KVASIR_TRY(out, open_parts(path, count));
  } else {
    out.version = header.version;
    out.metadata = std::move(header.metadata);
  }
  KVASIR_CHECK(sort_tensors(out.tensors.tensors, path.string()));
  return out;
}

}  // namespace kvasir

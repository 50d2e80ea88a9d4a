// Parses the listing with nlohmann's JSON and checks every field that is used.
#include "hub/listing.h"

#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/hub_cache.h"
#include "base/quote.h"
#include "hub/digest.h"

namespace kvasir::hub {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostFiles = 100000;
constexpr uint64_t kMostBytes = uint64_t{1} << 50;

tl::unexpected<Error> odd(const std::string& what, const std::string& where) {
  return fail(Error::damaged, "the hub's listing " + what, where, "another endpoint, or report it to the hub");
}

const Json* member(const Json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

// Size and checksum of an entry are in "lfs" for large files, else beside the name.
Result<RemoteFile> parse_file(const Json& entry, const std::string& where) {
  const Json* const name = member(entry, "rfilename");
  if (name == nullptr || !name->is_string()) return odd("has a file without a name", where);
  RemoteFile file{name->get<std::string>(), {}, {}};
  if (!is_safe_file(file.name))
    return odd(fmt::format("has a file name that is not safe to store, {}", in_quotes(file.name)), where);
  const Json* const lfs = member(entry, "lfs");
  const Json* size = lfs == nullptr ? nullptr : member(*lfs, "size");
  if (size == nullptr) size = member(entry, "size");
  const Json* const sum = lfs == nullptr ? member(entry, "blobId") : member(*lfs, "sha256");
  if (size != nullptr && (!size->is_number_unsigned() || size->get<uint64_t>() > kMostBytes))
    return odd(fmt::format("has an invalid size for {}", in_quotes(file.name)), where);
  if (size != nullptr) file.bytes = size->get<uint64_t>();
  if (sum == nullptr) return file;
  if (!sum->is_string() || !is_sum(sum->get<std::string>()) || (lfs != nullptr && sum->get<std::string>().size() != 64))
    return odd(fmt::format("has an invalid checksum for {}", in_quotes(file.name)), where);
  file.sum = sum->get<std::string>();
  return file;
}

}  // namespace

Result<Listing> parse_listing(std::string_view text, const std::string& where) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return odd("is not a JSON object", where);
  const Json* const sha = member(json, "sha");
  const Json* const siblings = member(json, "siblings");
  if (sha == nullptr || !sha->is_string() || !is_commit(sha->get<std::string>())) return odd("names no commit", where);
  if (siblings == nullptr || !siblings->is_array() || siblings->size() > kMostFiles)
    return odd("has no list of files", where);
  Listing out{sha->get<std::string>(), {}};
  std::set<std::string> known;
  for (const Json& entry : *siblings) {
    KVASIR_TRY(RemoteFile file, parse_file(entry, where));
    if (!known.insert(file.name).second) return odd(fmt::format("has {} twice", in_quotes(file.name)), where);
    out.files.push_back(std::move(file));
  }
  return out;
}

}  // namespace kvasir::hub

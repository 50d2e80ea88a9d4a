// Parses and checks a hub's listing of a repository: its commit and its files. choose.h selects among the files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kvasir/result.h>

#include "base/hub_names.h"

namespace kvasir::hub {

struct RemoteFile {
  std::string name;
  std::optional<uint64_t> bytes;  ///< null if the listing does not contain it
  std::string sum;                ///< SHA-256, or git's SHA-1 of a small file; empty if the listing has none
};

struct Listing {
  std::string commit;
  std::vector<RemoteFile> files;
};

/// Parses the JSON of /api/models/OWNER/NAME/revision/main?blobs=true. Errors: other JSON; an invalid commit, checksum
/// or size; a file name that would leave its folder; a file name that occurs twice.
Result<Listing> parse_listing(std::string_view json, const std::string& where);

}  // namespace kvasir::hub

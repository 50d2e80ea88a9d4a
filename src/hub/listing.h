// What a hub says of a repository: its commit and its files, checked. Which of them a model needs is choose.h's.
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
  std::optional<uint64_t> bytes;  ///< null: the listing does not say
  std::string sum;                ///< SHA-256, or git's SHA-1 of a small file; empty: the listing does not say
};

struct Listing {
  std::string commit;
  std::vector<RemoteFile> files;
};

/// Of the JSON of /api/models/OWNER/NAME/revision/main?blobs=true. Errors: no such JSON, a commit or a sum that is
/// none, a size that cannot be, a name that leaves its folder, a name twice.
Result<Listing> parse_listing(std::string_view json, const std::string& where);

}  // namespace kvasir::hub

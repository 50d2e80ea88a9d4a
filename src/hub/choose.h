// Which files of a repository are pulled. Pure: names in, names out.
#pragma once

#include "hub/listing.h"

namespace kvasir::hub {

/// The files of `wanted`: a file or type by name; else what a Hugging Face folder needs to run; else the only GGUF
/// file. In the order in which they may appear: what makes a folder or a split file look whole comes last. Errors:
/// nothing fits, or more than one.
Result<std::vector<RemoteFile>> choose_files(const Listing& listing, const Wanted& wanted);

}  // namespace kvasir::hub

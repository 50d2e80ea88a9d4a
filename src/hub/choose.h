// Chooses the files of a repository that a pull downloads. Pure functions on names.
#pragma once

#include "hub/listing.h"

namespace kvasir::hub {

/// Returns the files that `wanted` needs: the named file or type; or, if it names none, the files that a Hugging Face
/// folder needs to run; or, without such a folder, the only GGUF file. The order is the one in which they may appear:
/// the file that makes a folder or a split file look complete comes last. Errors: no file fits, or several do.
Result<std::vector<RemoteFile>> choose_files(const Listing& listing, const Wanted& wanted);

}  // namespace kvasir::hub

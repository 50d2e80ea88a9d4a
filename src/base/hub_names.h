// Parses names of the hub: OWNER/NAME, the type or file after a colon, and the file names of a repository. It handles
// text only; hub_cache.h finds files on this machine, and src/hub downloads them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kvasir/result.h>

namespace kvasir::hub {

struct RepoName {
  std::string owner, name;
  std::string text() const { return owner + "/" + name; }
  bool operator==(const RepoName&) const = default;
};

/// "OWNER/NAME", "OWNER/NAME:Q4_K_M" or "OWNER/NAME:folder/file.gguf".
struct Wanted {
  RepoName repo;
  std::string what;  ///< a quantisation type or a file; empty for the whole model
  std::string text() const { return what.empty() ? repo.text() : repo.text() + ":" + what; }
};

/// Null if the text cannot be a name of the hub. Owner and name may contain letters, digits and single . _ -, so that
/// they can be part of a folder's name.
std::optional<Wanted> parse_wanted(std::string_view text);
/// Parses "OWNER/NAME"; null if anything follows it.
std::optional<RepoName> parse_repo(std::string_view text);

/// Whether a file of this name stays inside the folder that it is put in. The name must be relative, have no part that
/// is empty or consists of dots only, no control character and no backslash, and fit the length limits of file systems.
bool is_safe_file(std::string_view name);

/// Returns the file named `what`; or the GGUF file whose name contains `what` as its type; or, if `what` is empty, the
/// only GGUF file. For a split file, returns all parts in order. A projector (mmproj) must be named in full.
/// Errors: no file fits, several fit (the error lists them), or a part is missing. `where` is the subject of errors.
Result<std::vector<std::string>> choose_gguf(std::span<const std::string> files, const std::string& what,
                                             const std::string& where);

}  // namespace kvasir::hub

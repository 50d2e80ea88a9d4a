// Names on the hub: OWNER/NAME, the part after a colon, and file names of a repository. Strings only: hub_cache.h finds
// the files on this machine, and src/hub fetches them.
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
  std::string what;  ///< a type or a file name; empty: the whole model
  std::string text() const { return what.empty() ? repo.text() : repo.text() + ":" + what; }
};

/// Parses such a name; empty if the hub allows no such name. Letters, digits and single . _ - are allowed, so that a
/// name is also valid as a folder's name.
std::optional<Wanted> parse_wanted(std::string_view text);
/// The same without a part after a colon.
std::optional<RepoName> parse_repo(std::string_view text);

/// Whether a file of that name stays inside the folder that it is put in: a relative path, no part of it empty or made
/// only of dots, no control characters, no backslash, and neither a part nor the whole longer than file systems allow.
bool is_safe_file(std::string_view name);

/// Returns the file named `what`; or the GGUF file with `what` as the type in its name; or, if `what` is empty, the
/// only GGUF file. A split file is returned as all its parts in order. Projectors (mmproj) match only by their full
/// names. Errors: no match, several matches (with the list), a missing part; `where` is theirs.
Result<std::vector<std::string>> choose_gguf(std::span<const std::string> files, const std::string& what,
                                             const std::string& where);

}  // namespace kvasir::hub

// Names of the hub: OWNER/NAME, what may follow it after a colon, and the names of the files of a repository. Texts
// only: where such files lie on this machine is hub_cache.h's, and fetching them is the program's (src/hub).
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
  std::string what;  ///< a type or a file; empty: the whole model
  std::string text() const { return what.empty() ? repo.text() : repo.text() + ":" + what; }
};

/// Null: the hub gives no such name. Letters, digits and single . _ - are allowed, so that a name is a folder's name.
std::optional<Wanted> parse_wanted(std::string_view text);
/// The same without a colon.
std::optional<RepoName> parse_repo(std::string_view text);

/// Whether a file of that name stays inside the folder that it is put in: relative, no part of it empty or made of dots
/// alone, no control characters, no backslash, and no part or whole longer than file systems take.
bool is_safe_file(std::string_view name);

/// The file of that name, or the GGUF file whose name carries `what` as its type, or, where `what` is empty, the only
/// GGUF file; in parts of a split one, all of them in order. Projectors (mmproj) are taken by their names alone.
/// Errors: none, several (with the list), a part that is missing. `where` is what errors speak of.
Result<std::vector<std::string>> choose_gguf(std::span<const std::string> files, const std::string& what,
                                             const std::string& where);

}  // namespace kvasir::hub

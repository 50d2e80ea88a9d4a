// Fingerprints remembered between runs, so that a large model is not read twice. A cache: losing it costs time only.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace kvasir {

/// One line that changes when a file's path, size, modification time or inode does, or the config.
std::string fingerprint_key(const std::vector<std::string>& files, const std::string& config);
std::optional<std::string> remembered_fingerprint(const std::string& key);
/// Best effort: a folder that cannot be written is no error.
void remember_fingerprint(const std::string& key, const std::string& fingerprint);

}  // namespace kvasir

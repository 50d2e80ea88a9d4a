// Fingerprints already computed, so that a model is read whole only once. What is remembered of a file holds as long as
// nothing says that it may have changed.
#pragma once

#include <optional>
#include <string>

#include "format/tensor_file.h"

namespace kvasir {

/// The key under which a fingerprint is remembered.
struct FingerprintKey {
  std::string place;       ///< config and paths: one value is kept of each
  std::string text;        ///< a line: besides these, the stamp of every file and a sample of what is in it
  int64_t changed_ns = 0;  ///< when the youngest of the files changed
  bool good = false;       ///< all lie where a change shows (InputFile::keeps_change_time); else nothing is remembered
};

/// The key of the files as they were opened; `config` is the part of a fingerprint that is not in them.
FingerprintKey fingerprint_key(const TensorDir& dir, const std::string& config);

/// The stamps of all files, when they were opened and now, as text.
std::string stamps_opened(const TensorDir& dir);
Result<std::string> stamps_now(const TensorDir& dir);

/// Empty when nothing is known, or when it became known so soon after a change that a second change may have got the
/// same time.
std::optional<std::string> remembered_fingerprint(const FingerprintKey& key);

/// `begun_ns`: when its computation began. Failing to remember is no error.
void remember_fingerprint(const FingerprintKey& key, const std::string& fingerprint, int64_t begun_ns);

/// Now, by the clock that files are stamped with.
int64_t file_clock_ns();

}  // namespace kvasir

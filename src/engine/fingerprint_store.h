// Stored fingerprints, so that a model is read whole only once. A stored one is valid as long as no stamp or sample of
// the model's files has changed.
#pragma once

#include <optional>
#include <string>

#include "format/tensor_file.h"

namespace kvasir {

/// The key under which a fingerprint is remembered.
struct FingerprintKey {
  std::string place;       ///< config and paths; one value is stored for each
  std::string text;        ///< one line: `place`, and the stamp of every file and a hash of samples of it
  int64_t changed_ns = 0;  ///< time of the latest change of any file
  bool good = false;  ///< a change of any file would show (InputFile::keeps_change_time); otherwise nothing is stored
};

/// The key of the files as they were opened. `config`: the part of the fingerprint that is not in them.
FingerprintKey fingerprint_key(const TensorDir& dir, const std::string& config);

/// The stamps of all files as text: as they were opened, and as they are now.
std::string stamps_opened(const TensorDir& dir);
Result<std::string> stamps_now(const TensorDir& dir);

/// Empty if none is stored, or if it was computed so soon after a change that a second change may have the same time.
std::optional<std::string> remembered_fingerprint(const FingerprintKey& key);

/// `begun_ns`: when the computation began. A failure to store it is ignored.
void remember_fingerprint(const FingerprintKey& key, const std::string& fingerprint, int64_t begun_ns);

/// The current time of the clock that stamps files.
int64_t file_clock_ns();

}  // namespace kvasir

// A talk in a file, beside the snapshot of its cache: the messages, and the ids that stand for them. docs/chat.md says
// what is in it.
#pragma once

#include <string>
#include <vector>

#include "cli/talk.h"

namespace kvasir::cli {

struct SavedTalk {
  std::string system;
  std::vector<Turn> turns;
};

/// Where the talk of a snapshot is.
std::string talk_path(const std::string& snapshot);
/// Bytes of texts that are not UTF-8 become U+FFFD; the ids stay. Errors: the file system's.
Result<void> write_talk(const std::string& path, const SavedTalk& talk);
/// Errors: no file, one that is no talk, an id that a vocabulary of that size does not have.
Result<SavedTalk> read_talk(const std::string& path, int vocab);

}  // namespace kvasir::cli

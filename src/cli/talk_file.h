// A talk in a file beside the snapshot of its cache: the messages and their ids. docs/chat.md has the format.
#pragma once

#include <string>
#include <vector>

#include "cli/talk.h"

namespace kvasir::cli {

struct SavedTalk {
  std::string system;
  std::vector<Turn> turns;
};

/// The path of the talk that belongs to a snapshot.
std::string talk_path(const std::string& snapshot);
/// Writes a talk. Bytes of texts that are not UTF-8 become U+FFFD; the ids are unchanged. Errors: those of the file
/// system.
Result<void> write_talk(const std::string& path, const SavedTalk& talk);
/// Reads a talk. Errors: no such file, not a talk, an id outside a vocabulary of `vocab` tokens.
Result<SavedTalk> read_talk(const std::string& path, int vocab);

}  // namespace kvasir::cli

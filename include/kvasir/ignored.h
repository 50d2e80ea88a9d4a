// The parts of a model's files that Kvasir does not use, each with the reason. `kvasir inspect` lists them.
#pragma once

#include <span>
#include <string>

namespace kvasir {

struct Ignored {
  std::string name;    ///< a tensor, or a key with its file: "config.json: use_cache"
  std::string why;     ///< "vision tower", "training only", "not known to Kvasir"
  bool noted = false;  ///< the user should hear of it when the model is opened
};

/// One line for a user: the noted ones by reason, "not used: vision_tower.a and 311 more (vision tower)"; empty when
/// none is noted.
std::string note_of(std::span<const Ignored> ignored);

}  // namespace kvasir

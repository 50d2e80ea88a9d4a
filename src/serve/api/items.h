// Joins the parts of an answer into items: reasoning, texts and calls.
#pragma once

#include <string>
#include <vector>

#include <kvasir/chat.h>

namespace kvasir::serve {

struct AnswerItem {
  AnswerPart::Kind kind = AnswerPart::content;  ///< never AnswerPart::arguments
  std::string text = {};                        ///< for a call, its arguments
  std::string name = {};                        ///< for a call
  int call = -1;                                ///< for a call, its index
};

/// Whether a part begins a new item after `items`.
inline bool begins_item(const std::vector<AnswerItem>& items, const AnswerPart& part) {
  if (items.empty() || part.kind == AnswerPart::call) return true;
  return part.kind != AnswerPart::arguments && part.kind != items.back().kind;
}

inline void add_part(std::vector<AnswerItem>* items, const AnswerPart& part) {
  const bool is_call = part.kind == AnswerPart::call;
  if (begins_item(*items, part))
    items->push_back({.kind = part.kind, .name = is_call ? part.text : "", .call = part.index});
  if (!is_call) items->back().text += part.text;
}

inline std::vector<AnswerItem> items_of(const std::vector<AnswerPart>& parts) {
  std::vector<AnswerItem> items;
  for (const AnswerPart& part : parts) add_part(&items, part);
  return items;
}

}  // namespace kvasir::serve

// Filling and searching a vocabulary's arena.
#include "token/vocabulary.h"

#include <fmt/format.h>

#include "token/utf8.h"

namespace kvasir {

Vocabulary::Vocabulary() : store_(std::make_unique<Store>()), index_(0, Hash{store_.get()}, Equal{store_.get()}) {}

void Vocabulary::reserve(std::size_t count, std::size_t bytes) {
  store_->spans.reserve(count);
  store_->bytes.reserve(bytes);
  index_.reserve(count);
}

bool Vocabulary::has(int id) const {
  return id >= 0 && id < size() && store_->spans[static_cast<std::size_t>(id)].begin != kHole;
}

std::string_view Vocabulary::piece(int id) const { return has(id) ? store_->at(id) : std::string_view(); }

std::optional<int> Vocabulary::find(std::string_view piece) const {
  const auto it = index_.find(piece);
  if (it == index_.end()) return std::nullopt;
  return *it;
}

Result<void> Vocabulary::place(std::string_view piece, std::int64_t id, std::int64_t id_limit) {
  if (id < 0 || id >= id_limit) {
    return fail(Error::damaged, fmt::format("token id {} is outside 0..{}", id, id_limit - 1));
  }
  if (has(static_cast<int>(id))) {
    return fail(Error::damaged, fmt::format("token id {} is given twice, to {} and {}", id,
                                            quote(this->piece(static_cast<int>(id))), quote(piece)));
  }
  if (store_->bytes.size() + piece.size() >= kHole)
    return fail(Error::unsupported, "the vocabulary is over 4 GiB of text");
  const auto slot = static_cast<std::size_t>(id);
  if (slot >= store_->spans.size()) store_->spans.resize(slot + 1);
  store_->spans[slot] = {static_cast<std::uint32_t>(store_->bytes.size()), static_cast<std::uint32_t>(piece.size())};
  store_->bytes.append(piece);
  return {};
}

Result<void> Vocabulary::add(std::string_view piece, std::int64_t id, std::int64_t id_limit) {
  if (const auto other = find(piece)) {
    return fail(Error::damaged, fmt::format("the piece {} has two ids, {} and {}", quote(piece), *other, id));
  }
  return add_shadowed(piece, id, id_limit);
}

Result<void> Vocabulary::add_shadowed(std::string_view piece, std::int64_t id, std::int64_t id_limit) {
  KVASIR_CHECK(place(piece, id, id_limit));
  index_.insert(static_cast<int>(id));
  return {};
}

}  // namespace kvasir

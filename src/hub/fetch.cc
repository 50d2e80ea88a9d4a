// A window of pieces moves over the file. Only its first piece is written to disk, so that the file never has a hole.
#include "hub/fetch.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/quote.h"

namespace kvasir::hub {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{8} << 20;
constexpr size_t kPiecesAhead = 2;                      // pieces per connection, an upper bound on memory
constexpr uint64_t kRealProgress = uint64_t{64} << 10;  // fewer bytes between two failures do not count as progress
constexpr double kTick = 0.2;                           // seconds

// Whether a Content-Range such as "bytes 5-9/20" is exactly the requested range [begin, end) of `all` bytes.
bool is_range(const std::string& told, uint64_t begin, uint64_t end, uint64_t all) {
  return told == fmt::format("bytes {}-{}/{}", begin, end - 1, all);
}

}  // namespace

Result<void> Fetch::run() {
  planned_ = file_.size();
  while (file_.size() < file_.bytes()) {
    KVASIR_CHECK(start_pieces());
    Exchange* const ended = client_.wait(kTick);
    if (ended != nullptr) KVASIR_CHECK(finish(piece_of(ended)));
    KVASIR_CHECK(drop_written());
  }
  return {};
}

Fetch::Piece& Fetch::piece_of(const Exchange* exchange) {
  return **std::ranges::find_if(pieces_, [&](const auto& piece) { return &piece->exchange == exchange; });
}

// Makes one request at a time until the server has shown that it supports ranges.
Result<void> Fetch::start_pieces() {
  if (now_seconds() < resume_at_) return {};
  const size_t at_once = takes_ranges_ ? connections_ : 1;
  while (planned_ < file_.bytes() && pieces_.size() < (takes_ranges_ ? kPiecesAhead * connections_ : 1)) {
    auto piece = std::make_unique<Piece>();
    piece->begin = planned_;
    piece->end = planned_ = std::min(file_.bytes(), planned_ + kPieceBytes);
    pieces_.push_back(std::move(piece));
  }
  auto running = static_cast<size_t>(std::ranges::count_if(pieces_, [](const auto& piece) { return piece->running; }));
  for (const auto& piece : pieces_) {
    const bool whole = piece->begin + piece->got == piece->end;
    if (piece->running || whole || running >= at_once) continue;
    KVASIR_CHECK(start(*piece));
    ++running;
  }
  return {};
}

Result<void> Fetch::start(Piece& piece) {
  Exchange& exchange = piece.exchange;
  exchange.url = direct_.empty() ? source_.url : direct_;
  exchange.trusted = direct_.empty() || direct_trusted_;
  exchange.range = {piece.begin + piece.got, piece.end};
  exchange.on_head = [this, &piece](const Answer& answer) { return begin(piece, answer); };
  exchange.on_bytes = [this, &piece](std::string_view bytes) { return take(piece, bytes); };
  piece.skip = 0;
  piece.running = true;
  return client_.start(exchange);
}

// Accepts 206 with the range, or 200 with the whole file from a server without ranges.
Result<void> Fetch::begin(Piece& piece, const Answer& answer) {
  const std::string commit = answer.header("x-repo-commit");
  if (!commit.empty() && commit != source_.commit)
    return fail(Error::damaged,
                fmt::format("the hub answers with commit {}, but listed {}", in_quotes(commit), source_.commit),
                source_.name, "pull again");
  std::string sum = answer.header("x-linked-etag");
  std::erase(sum, '"');
  if (!sum.empty() && sum != source_.sum)
    return fail(Error::damaged,
                fmt::format("the hub answers with checksum {}, but listed {}", in_quotes(sum), source_.sum),
                source_.name, "pull again");
  if (answer.status == 206) {
    const std::string told = answer.header("content-range");
    const auto& [from, to] = *piece.exchange.range;
    if (!is_range(told, from, to, file_.bytes()))
      return fail(Error::damaged,
                  fmt::format("requested bytes {}-{} of {}, but the server answers with {}", from, to - 1,
                              file_.bytes(), told.empty() ? "no range" : in_quotes(told)),
                  source_.name, "pull again, or another endpoint");
    takes_ranges_ = true;
    direct_ = piece.exchange.url;
    direct_trusted_ = piece.exchange.trusted;
    return {};
  }
  const std::string length = answer.header("content-length");
  if (answer.status != 200 || pieces_.size() != 1)
    return fail(Error::damaged, fmt::format("requested a range, but the server answers with status {}", answer.status),
                source_.name, "another endpoint");
  if (!length.empty() && length != std::to_string(file_.bytes()))
    return fail(
        Error::damaged,
        fmt::format("announced with {} bytes, but the server answers with {}", file_.bytes(), in_quotes(length)),
        source_.name, "pull again, or another endpoint");
  piece.skip = piece.begin + piece.got;
  piece.end = planned_ = file_.bytes();
  return {};
}

Result<void> Fetch::take(Piece& piece, std::string_view bytes) {
  const auto skipped = std::min<uint64_t>(piece.skip, bytes.size());
  piece.skip -= skipped;
  bytes.remove_prefix(skipped);
  if (bytes.size() > piece.end - piece.begin - piece.got)
    return fail(Error::damaged, fmt::format("received more than the announced {} bytes", file_.bytes()), source_.name,
                "another endpoint");
  piece.got += bytes.size();
  came_ += bytes.size();
  if (&piece == pieces_.front().get()) return write(piece, bytes);
  piece.held += bytes;
  return {};
}

// Held bytes come before `bytes`.
Result<void> Fetch::write(Piece& piece, std::string_view bytes) {
  if (!piece.held.empty()) {
    KVASIR_CHECK(file_.append(piece.held));
    piece.held = {};
  }
  KVASIR_CHECK(file_.append(bytes));
  if (progress_) progress_(file_.size());
  return {};
}

Result<void> Fetch::finish(Piece& piece) {
  piece.running = false;
  const bool whole = piece.begin + piece.got == piece.end;
  std::optional<Failure> failure = piece.exchange.failure();
  if (!failure && whole) return {};
  if (!failure)
    failure = Failure{
        {Error::io,
         fmt::format("the server closed the connection after {} of {} bytes", piece.begin + piece.got, file_.bytes()),
         source_.name, "pull again"},
        true,
        {}};
  direct_.clear();  // the target of a redirect may expire
  failure->again = failure->again || (!piece.exchange.trusted && piece.exchange.answer().status >= 400);
  return pause_after(*failure);
}

// Failures during the pause belong to the same outage, which counts once.
Result<void> Fetch::pause_after(const Failure& failure) {
  const double now = now_seconds();
  if (failure.again && now < resume_at_) return {};
  if (came_ >= came_at_failure_ + kRealProgress) patience_.progress();
  came_at_failure_ = came_;
  const auto seconds = patience_.wait_after(failure);
  if (!seconds) return tl::unexpected(failure.error);
  resume_at_ = now + *seconds;
  return {};
}

// Drops complete pieces from the front. Each piece that becomes the first writes what it holds.
Result<void> Fetch::drop_written() {
  while (!pieces_.empty()) {
    Piece& first = *pieces_.front();
    KVASIR_CHECK(write(first, {}));
    if (first.running || first.begin + first.got < first.end) return {};
    pieces_.pop_front();
  }
  return {};
}

}  // namespace kvasir::hub

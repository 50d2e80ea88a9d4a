// Cuts a text into windows, and feeds them in pieces so that few logits are in memory at once.
#include "lab/scoring.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "lab/step_all.h"

namespace kvasir {
namespace {

// Upper bound of the logits in memory at once, over all sessions.
constexpr size_t kLogitBytes = size_t{8} << 20;
constexpr size_t kMostRows = 256;

// The number of whole windows to score.
Result<int> count_windows(size_t tokens, int window, int asked) {
  if (window < 3)
    return fail(Error::bad_argument, fmt::format("a window of {} tokens has none to score", window),
                "SessionOptions::ctx", "3 or more, usually 512");
  if (asked < 0)
    return fail(Error::bad_argument, fmt::format("{} windows asked for", asked), "PerplexityOptions::windows",
                "1 or more; 0 for all");
  const auto whole = static_cast<int>(std::min<size_t>(tokens / static_cast<size_t>(window), 1u << 30));
  if (whole == 0)
    return fail(Error::bad_argument, fmt::format("the text has {} tokens, a window takes {}", tokens, window), "text",
                "a longer text or a smaller SessionOptions::ctx");
  return asked == 0 ? whole : std::min(asked, whole);
}

Result<void> feed_all(Engine& engine, std::span<Session> sessions, std::span<const int> tokens, Logits logits,
                      PassOutput* out) {
  std::vector<Feed> feeds;
  for (Session& session : sessions) feeds.push_back({.session = &session, .tokens = tokens, .logits = logits});
  return step_all(engine, feeds, out);
}

}  // namespace

Result<TextWindows> TextWindows::cut(std::span<const int> ids, std::optional<int> bos, int size, int asked,
                                     const Model& model) {
  TextWindows windows;
  KVASIR_TRY(windows.count_, count_windows(ids.size(), size, asked));
  // A window's last token is scored and never fed, so no step would check it.
  KVASIR_CHECK(model.check_ids(ids, "text"));
  windows.ids_ = ids;
  windows.bos_ = bos;
  windows.size_ = size;
  return windows;
}

std::vector<int> TextWindows::at(int w) const {
  const auto size = static_cast<size_t>(size_);
  const auto from = ids_.subspan(static_cast<size_t>(w) * size, size);
  std::vector<int> window(from.begin(), from.end());
  if (bos_) window[0] = *bos_;
  return window;
}

Result<void> score_window(Engine& engine, std::span<Session> sessions, std::span<const int> window,
                          const ScoreRows& score) {
  const size_t row_bytes = static_cast<size_t>(engine.model().info().vocab) * sizeof(float) * sessions.size();
  const size_t middle = window.size() / 2, rows = std::clamp<size_t>(kLogitBytes / row_bytes, 1, kMostRows);
  PassOutput out;
  for (Session& session : sessions) session.clear();
  KVASIR_CHECK(feed_all(engine, sessions, window.first(middle), Logits::none, &out));
  for (size_t at = middle; at + 1 < window.size(); at += rows) {
    const auto fed = window.subspan(at, std::min(rows, window.size() - 1 - at));
    KVASIR_CHECK(feed_all(engine, sessions, fed, Logits::all, &out));
    score(window.subspan(at + 1, fed.size()), out);
  }
  return {};
}

double log_sum_exp(std::span<const float> row) {
  const double most = static_cast<double>(*std::max_element(row.begin(), row.end()));
  double sum = 0;
  for (float x : row) sum += std::exp(static_cast<double>(x) - most);
  return most + std::log(sum);
}

void Moments::add(double x) {
  ++n_;
  const double from_mean = x - mean_;
  mean_ += from_mean / static_cast<double>(n_);
  squares_ += from_mean * (x - mean_);
}

double Moments::standard_error() const {
  return n_ < 2 ? 0 : std::sqrt(squares_ / (static_cast<double>(n_) * static_cast<double>(n_ - 1)));
}

}  // namespace kvasir

// Tests events from bytes in pieces of any size.
#include "serve/http/event_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvasir::serve {
namespace {

using testing::ElementsAre;

std::vector<std::string> events_of(const std::vector<std::string_view>& pieces) {
  EventReader reader;
  std::vector<std::string> events;
  for (const std::string_view piece : pieces)
    EXPECT_TRUE(reader.read(piece, [&](std::string_view data) { events.emplace_back(data); }));
  return events;
}

constexpr std::string_view kStream =
    ": a ping\n\ndata: one\n\ndata:two\r\ndata:  lines\r\n\r\nevent: x\rid: 7\rdata\rdata: 4\r\rdata: \xC3\xA9:\n\n\n"
    "retry: 1\n\ndataless: 5\n\ndata: [DONE]\n\ndata: without an end\n";

TEST(EventReader, IsTheSameHoweverTheBytesAreCut) {
  const std::vector<std::string> whole = events_of({kStream});
  EXPECT_THAT(whole, ElementsAre("one", "two\n lines", "\n4", "\xC3\xA9:", "[DONE]"));
  for (size_t i = 0; i <= kStream.size(); ++i) {
    EXPECT_EQ(events_of({kStream.substr(0, i), kStream.substr(i)}), whole) << i;
    for (size_t k = i; k <= kStream.size(); k += 7)
      EXPECT_EQ(events_of({kStream.substr(0, i), kStream.substr(i, k - i), kStream.substr(k)}), whole)
          << i << ", " << k;
  }
  std::vector<std::string_view> bytes;
  for (size_t i = 0; i < kStream.size(); ++i) bytes.push_back(kStream.substr(i, 1));
  EXPECT_EQ(events_of(bytes), whole);
}

TEST(EventReader, RefusesAnEventWithoutAnEnd) {
  EventReader reader;
  const std::string block(4 << 20, 'x');
  Result<void> taken = reader.read("data: ", [](std::string_view) {});
  for (int i = 0; i < 5 && taken; ++i) taken = reader.read(block, [](std::string_view) {});
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().kind, Error::damaged);
}

}  // namespace
}  // namespace kvasir::serve

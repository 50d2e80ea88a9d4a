// Parses a request's target and formats the head of an answer and of a chunk. No sockets here.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "serve/http/http_server.h"

namespace kvasir::serve {

std::string lower_case(std::string_view text);
/// Replaces %XX escapes; nothing if one is invalid.
std::optional<std::string> percent_decoded(std::string_view text);
/// Sets path and query. Returns false if an escape is invalid.
bool parse_target(std::string_view target, HttpRequest& request);

/// How an answer is sent.
struct Framing {
  bool http10 = false;      ///< the client speaks HTTP/1.0
  bool keep_alive = false;  ///< another request may follow
  bool stream = false;      ///< in chunks, or in HTTP/1.0 until the connection closes
};

bool has_body(int status);
/// Returns the head including the empty line. Leaves out the answer's own headers that the framing determines.
std::string answer_head(const HttpAnswer& answer, std::string_view reason, const Framing& framing);
/// The size line of a chunk, such as "1f\r\n".
std::string chunk_head(size_t bytes);

}  // namespace kvasir::serve

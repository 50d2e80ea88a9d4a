// The texts of HTTP: a request's target taken apart, an answer's head and a chunk's put together. No sockets here.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "serve/http/http_server.h"

namespace kvasir::serve {

std::string lower_case(std::string_view text);
/// Sets path and query. False: an escape that is none.
bool parse_target(std::string_view target, HttpRequest& request);

/// How an answer goes over the connection.
struct Framing {
  bool http10 = false;      ///< the client speaks HTTP/1.0
  bool keep_alive = false;  ///< another request may follow
  bool stream = false;      ///< chunks, or in HTTP/1.0 all until the end
};

bool has_body(int status);
/// Up to the empty line. Of the answer's headers, those that the framing decides are left out.
std::string answer_head(const HttpAnswer& answer, std::string_view reason, const Framing& framing);
/// "1f\r\n"
std::string chunk_head(size_t bytes);

}  // namespace kvasir::serve

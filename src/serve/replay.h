// Replays a trace of arrivals against any server with OpenAI's API. include/kvasir/bench.h defines the trace, its
// timing and the figures.
#pragma once

#include <string>
#include <vector>

#include <kvasir/bench.h>

namespace kvasir::serve {

struct ReplayOptions {
  std::vector<TraceRequest> trace;
  std::string url;         ///< "http://127.0.0.1:8080", with or without "/v1"
  std::string model = {};  ///< the server's name of the model; if empty, the first one that it lists
  int vocab = 0;           ///< prompts use ids below this; if 0, the server's meta.n_vocab
};

struct ReplayResult {
  ServeReport report;
  std::string first_failure = {};  ///< the first failed request, with its error; empty if none failed
};

/// Replays the trace in real time, on this thread. Errors: an invalid URL; a server that cannot be reached or does not
/// report its model or vocabulary; and the first failure if every request failed.
Result<ReplayResult> replay(const ReplayOptions& options);

}  // namespace kvasir::serve

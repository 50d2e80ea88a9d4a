// A trace of arrivals, replayed against a server of OpenAI's API: this one or any other. The trace, its course and the
// figures are include/kvasir/bench.h's.
#pragma once

#include <string>
#include <vector>

#include <kvasir/bench.h>

namespace kvasir::serve {

struct ReplayOptions {
  std::vector<TraceRequest> trace;
  std::string url;         ///< "http://127.0.0.1:8080", with or without "/v1"
  std::string model = {};  ///< as the server calls it; empty: the first that it lists
  int vocab = 0;           ///< ids for prompts are below; 0: as the server says (meta.n_vocab)
};

struct ReplayResult {
  ServeReport report;
  std::string first_failure = {};  ///< of the requests that failed
};

/// Replays the trace in its own time, on this thread. Errors: a URL that is none, a server that is not there or tells
/// too little of its models, and the first failure where every request failed.
Result<ReplayResult> replay(const ReplayOptions& options);

}  // namespace kvasir::serve

// Downloads one file as byte ranges that arrive concurrently and are written in order. blob_file.h stores the bytes;
// http.h decides what a failed request means.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "hub/blob_file.h"
#include "hub/http.h"

namespace kvasir::hub {

struct FetchSource {
  std::string url;     ///< at the hub, which may redirect
  std::string name;    ///< the file's name in errors
  std::string commit;  ///< expected commit: an answer that names another one is refused
  std::string sum;     ///< expected checksum: an answer whose X-Linked-ETag differs is refused
};

/// The download of one file.
class Fetch {
 public:
  /// Calls `progress` with the size of the file after each write.
  Fetch(Client& client, FetchSource source, BlobFile& file, int connections, std::function<void(uint64_t)> progress)
      : client_(client),
        source_(std::move(source)),
        file_(file),
        connections_(static_cast<size_t>(connections)),
        progress_(std::move(progress)) {}

  /// Runs until the file is complete. Errors: a request or a write fails; the bytes written so far stay.
  Result<void> run();

 private:
  // Bytes [begin, end), of which the first `got` have arrived. Only the first piece of the list writes its bytes; the
  // others keep them in `held`.
  struct Piece {
    uint64_t begin = 0, end = 0, got = 0;
    uint64_t skip = 0;  // bytes to drop, when the answer starts before the requested range
    std::string held;
    Exchange exchange;
    bool running = false;
  };

  Result<void> start_pieces();
  Result<void> start(Piece& piece);
  Result<void> begin(Piece& piece, const Answer& answer);
  Result<void> take(Piece& piece, std::string_view bytes);
  Result<void> finish(Piece& piece);
  Result<void> pause_after(const Failure& failure);
  Result<void> write(Piece& piece, std::string_view bytes);
  Result<void> drop_written();
  Piece& piece_of(const Exchange* exchange);

  Client& client_;
  FetchSource source_;
  BlobFile& file_;
  size_t connections_;
  std::function<void(uint64_t)> progress_;

  std::deque<std::unique_ptr<Piece>> pieces_;  // in file order
  uint64_t planned_ = 0;                       // end of the last piece, or of the bytes found at open
  bool takes_ranges_ = false;                  // the server has answered a range with 206
  std::string direct_;                         // URL at the end of the redirects; empty if not known
  bool direct_trusted_ = false;                // Exchange::trusted of direct_
  Patience patience_;
  uint64_t came_ = 0, came_at_failure_ = 0;  // bytes received, written or held
  double resume_at_ = 0;                     // no request starts before: an outage ends all requests at once
};

}  // namespace kvasir::hub

// The bytes of one file, in ranges that come at the same time and are written in order. What is kept of them is
// blob_file.h's; what a failed request means is http.h's.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "hub/blob_file.h"
#include "hub/http.h"

namespace kvasir::hub {

struct FetchSource {
  std::string url;     ///< at the hub; it may redirect
  std::string name;    ///< what errors call the file
  std::string commit;  ///< an answer that names another one is refused
  std::string sum;     ///< the same of the hub's own ETag for large files
};

/// One file on its way.
class Fetch {
 public:
  /// `progress` is called with the bytes that the file has, after each piece of them.
  Fetch(Client& client, FetchSource source, BlobFile& file, int connections, std::function<void(uint64_t)> progress)
      : client_(client),
        source_(std::move(source)),
        file_(file),
        connections_(static_cast<size_t>(connections)),
        progress_(std::move(progress)) {}

  /// Until the file has all its bytes. Errors: as requests and disks have them; what came before stays.
  Result<void> run();

 private:
  // Bytes begin..end, of which `got` have come. The first piece of the list writes them, the others hold them.
  struct Piece {
    uint64_t begin = 0, end = 0, got = 0;
    uint64_t skip = 0;  // of an answer that begins before what was asked for
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

  std::deque<std::unique_ptr<Piece>> pieces_;  // in the order of their bytes
  uint64_t planned_ = 0;                       // bytes that pieces have been made for
  bool takes_ranges_ = false;                  // the server has shown it
  std::string direct_;                         // where redirects led; empty: not known
  bool direct_trusted_ = false;                // and whether the hub alone led there
  Patience patience_;
  uint64_t came_ = 0, came_at_failure_ = 0;  // bytes, whether written or held
  double resume_at_ = 0;                     // nothing is asked for before: an outage ends all requests at once
};

}  // namespace kvasir::hub

// HTTP over libcurl's multi interface. This file follows redirects instead of libcurl, so that one place decides where
// the token may go and which schemes a redirect may lead to.
#include "hub/http.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include <kvasir/version.h>

#include "base/quote.h"
#include "hub/refusals.h"

namespace kvasir::hub {
namespace {

constexpr int kMostHops = 10;
constexpr int kMostTries = 5;
constexpr double kFirstWait = 0.25, kLongestWait = 120;
constexpr size_t kMostHeaderBytes = size_t{256} << 10, kMostRefusalBytes = size_t{16} << 10;
constexpr long kReceiveBytes = 512L << 10;

bool is_redirect(long status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}
bool is_good(long status) { return status >= 200 && status < 300; }

// Headers that survive a redirect to another host, and that another host may not set.
bool is_of_hub(std::string_view header) { return header.starts_with("x-linked-") || header.starts_with("x-repo-"); }

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  return begin == text.npos ? std::string_view() : text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::string url_part(const CurlLibrary& curl, CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl.url_get(url, part, &text, flags) != CURLUE_OK) return {};
  std::string out = text;
  curl.free(text);
  return out;
}

// libcurl has one built-in certificate path; these variables of OpenSSL, curl and Python's requests override it.
std::string file_of_authorities() {
  for (const char* name : {"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"})
    if (const char* file = std::getenv(name); file != nullptr && *file != '\0') return file;
  return {};
}

// A line break in the token would start another header.
Result<void> check_token(const std::string& token) {
  if (std::ranges::all_of(token, [](char c) { return c > 0x20 && c < 0x7f; })) return {};
  return fail(Error::bad_argument, "it contains a space, a control character or a character outside ASCII", "HF_TOKEN",
              "a token of the hub, hf_...");
}

}  // namespace

// ---- addresses ----------------------------------------------------------------------------------------------------

bool Origin::loopback() const {
  return host == "localhost" || host == "[::1]" || host == "::1" ||
         (host.starts_with("127.") && host.find_first_not_of("0123456789.") == host.npos);
}

Result<Origin> origin_of(const CurlLibrary& curl, const std::string& url, const std::string& where) {
  CURLU* const parsed = curl.url_new();
  if (parsed == nullptr) return fail(Error::no_room, "no memory for a URL", where);
  const bool good = curl.url_set(parsed, CURLUPART_URL, url.c_str(), 0) == CURLUE_OK;
  Origin origin{lower_case(url_part(curl, parsed, CURLUPART_SCHEME)),
                lower_case(url_part(curl, parsed, CURLUPART_HOST)),
                url_part(curl, parsed, CURLUPART_PORT, CURLU_DEFAULT_PORT)};
  const bool user = !url_part(curl, parsed, CURLUPART_USER).empty();
  curl.url_free(parsed);
  if (good && !user && !origin.host.empty() && (origin.scheme == "https" || origin.scheme == "http")) return origin;
  return fail(Error::bad_argument,
              fmt::format("{} is not the URL of a server{}", in_quotes(url), user ? ": it contains a user name" : ""),
              where, "https://HOST");
}

std::string url_path(std::string_view path) {
  std::string out;
  for (const char c : path) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
                       c == '_' || c == '.' || c == '~' || c == '/';
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

std::string shown_url(const std::string& url) { return url.substr(0, url.find('?')); }

// ---- failures -----------------------------------------------------------------------------------------------------

std::string Answer::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

std::optional<double> Patience::wait_after(const Failure& failure) {
  if (!failure.again || failures_ >= kMostTries) return std::nullopt;
  const double own = std::ldexp(kFirstWait, failures_++);
  if (!failure.after_seconds) return own;
  if (*failure.after_seconds > kLongestWait) return std::nullopt;
  return std::max(own, *failure.after_seconds);
}

std::optional<Failure> Client::failure_of(const Exchange& exchange, CURLcode code) const {
  if (exchange.stopped_) return Failure{*exchange.stopped_, false, {}};
  const Answer& answer = exchange.answer_;
  if (code == CURLE_OK) {
    if (is_good(answer.status)) return std::nullopt;
    long seconds = 0;
    curl_off_t told = 0;
    if (curl_->easy_info(exchange.easy_, CURLINFO_RETRY_AFTER, &told) == CURLE_OK) seconds = static_cast<long>(told);
    return refusal(answer, exchange.refusal_, seconds, !connection_.token.empty(), sends_token(exchange, origin_));
  }
  const bool connecting = code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST ||
                          code == CURLE_COULDNT_RESOLVE_PROXY || code == CURLE_SSL_CONNECT_ERROR;
  const bool again = connecting ? answered_ : may_pass(code);
  const Error::Kind kind = code == CURLE_OPERATION_TIMEDOUT ? Error::timed_out : Error::io;
  return Failure{{kind, curl_->easy_error(code), shown_url(exchange.url),
                  connecting ? "the address, and whether the network is up" : ""},
                 again,
                 {}};
}

// ---- one exchange -------------------------------------------------------------------------------------------------

Exchange::~Exchange() {
  if (client_ == nullptr) return;
  client_->stop(*this);
  if (easy_ != nullptr) client_->curl_->easy_cleanup(easy_);
}

bool Exchange::take(Result<void> result) {
  if (!result && !stopped_) stopped_ = std::move(result).error();
  return result.has_value();
}

bool Exchange::begin_body() {
  if (body_begun_) return true;
  body_begun_ = true;
  return !is_good(answer_.status) || !on_head || take(on_head(answer_));
}

size_t Exchange::take_header(char* data, size_t size, size_t count, void* exchange) {
  auto& self = *static_cast<Exchange*>(exchange);
  const std::string_view line = trimmed({data, size * count});
  self.header_bytes_ += size * count;
  if (self.header_bytes_ > kMostHeaderBytes) {
    self.take(
        fail(Error::damaged, fmt::format("more than {} bytes of headers", kMostHeaderBytes), shown_url(self.url)));
    return 0;
  }
  if (line.starts_with("HTTP/")) {  // a new answer: drop the headers of an interim one or of a redirect
    std::erase_if(self.answer_.headers, [](const auto& header) { return !is_of_hub(header.first); });
    return size * count;
  }
  const size_t colon = line.find(':');
  if (colon == line.npos) return size * count;
  std::string name = lower_case(trimmed(line.substr(0, colon)));
  if (self.trusted || !is_of_hub(name)) self.answer_.headers[std::move(name)] = trimmed(line.substr(colon + 1));
  return size * count;
}

size_t Exchange::take_bytes(char* data, size_t size, size_t count, void* exchange) {
  auto& self = *static_cast<Exchange*>(exchange);
  const std::string_view bytes(data, size * count);
  if (!self.body_begun_) self.client_->curl_->easy_info(self.easy_, CURLINFO_RESPONSE_CODE, &self.answer_.status);
  if (is_redirect(self.answer_.status)) return bytes.size();
  if (!self.begin_body()) return 0;
  if (is_good(self.answer_.status)) return !self.on_bytes || self.take(self.on_bytes(bytes)) ? bytes.size() : 0;
  self.refusal_ += bytes.substr(0, kMostRefusalBytes - std::min(kMostRefusalBytes, self.refusal_.size()));
  // Returning 0 aborts the transfer: the rest of the body is not needed.
  return self.refusal_.size() < kMostRefusalBytes ? bytes.size() : 0;
}

// ---- the client ---------------------------------------------------------------------------------------------------

Result<std::unique_ptr<Client>> Client::open(const Connection& connection) {
  std::unique_ptr<Client> client(new Client);
  KVASIR_TRY(client->curl_, curl_library());
  client->connection_ = connection;
  std::string& endpoint = client->connection_.endpoint;
  while (endpoint.ends_with('/')) endpoint.pop_back();
  KVASIR_TRY(client->origin_, origin_of(*client->curl_, endpoint, "PullOptions::endpoint"));
  if (endpoint.find_first_of("?#") != endpoint.npos)
    return fail(Error::bad_argument, fmt::format("{} has a query or a fragment", in_quotes(endpoint)),
                "PullOptions::endpoint", "https://HOST");
  KVASIR_CHECK(check_token(connection.token));
  client->authorities_ = file_of_authorities();
  client->multi_ = client->curl_->multi_init();
  if (client->multi_ == nullptr) return fail(Error::no_room, "no memory for a connection", endpoint);
  return client;
}

Client::~Client() {
  if (multi_ != nullptr) curl_->multi_cleanup(multi_);
}

// Plain http is allowed to this machine only, since anybody on the network path could read the token.
bool Client::sends_token(const Exchange& exchange, const Origin& origin) const {
  return !connection_.token.empty() && exchange.trusted && origin == origin_ &&
         (origin.scheme == "https" || origin.loopback());
}

Result<void> Client::set_options(Exchange& exchange) {
  KVASIR_TRY(const Origin origin, origin_of(*curl_, exchange.url, connection_.endpoint));
  exchange.trusted = exchange.trusted && origin == origin_;
  CURL* const easy = exchange.easy_;
  curl_->list_free(std::exchange(exchange.headers_, nullptr));
  exchange.headers_ = curl_->list_append(nullptr, "Accept-Encoding: identity");
  if (sends_token(exchange, origin))
    exchange.headers_ = curl_->list_append(exchange.headers_, ("Authorization: Bearer " + connection_.token).c_str());
  curl_->easy_reset(easy);
  curl_->easy_set(easy, CURLOPT_URL, exchange.url.c_str());
  curl_->easy_set(easy, CURLOPT_HTTPHEADER, exchange.headers_);
  curl_->easy_set(easy, CURLOPT_USERAGENT, fmt::format("kvasir/{}", kVersion).c_str());
  curl_->easy_set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  // With HTTP/2 all ranges would share the bandwidth of one connection.
  curl_->easy_set(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_->easy_set(easy, CURLOPT_FOLLOWLOCATION, 0L);
  curl_->easy_set(easy, CURLOPT_NOBODY, exchange.head_only ? 1L : 0L);
  curl_->easy_set(easy, CURLOPT_BUFFERSIZE, kReceiveBytes);
  curl_->easy_set(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(1000 * connection_.timeout_s));
  curl_->easy_set(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_->easy_set(easy, CURLOPT_LOW_SPEED_TIME, std::max(1L, std::lround(connection_.timeout_s)));
  curl_->easy_set(easy, CURLOPT_HEADERFUNCTION, &Exchange::take_header);
  curl_->easy_set(easy, CURLOPT_HEADERDATA, static_cast<void*>(&exchange));
  curl_->easy_set(easy, CURLOPT_WRITEFUNCTION, &Exchange::take_bytes);
  curl_->easy_set(easy, CURLOPT_WRITEDATA, static_cast<void*>(&exchange));
  curl_->easy_set(easy, CURLOPT_PRIVATE, static_cast<void*>(&exchange));
  if (origin.loopback()) curl_->easy_set(easy, CURLOPT_NOPROXY, "*");
  if (!authorities_.empty()) curl_->easy_set(easy, CURLOPT_CAINFO, authorities_.c_str());
  if (exchange.range)
    curl_->easy_set(easy, CURLOPT_RANGE,
                    fmt::format("{}-{}", exchange.range->first, exchange.range->second - 1).c_str());
  return {};
}

Result<void> Client::add(Exchange& exchange) {
  exchange.body_begun_ = false;
  exchange.header_bytes_ = 0;
  exchange.refusal_.clear();
  exchange.answer_.status = 0;
  KVASIR_CHECK(set_options(exchange));
  if (curl_->multi_add(multi_, exchange.easy_) != CURLM_OK)
    return fail(Error::no_room, "no memory for a connection", shown_url(exchange.url));
  exchange.added_ = true;
  return {};
}

Result<void> Client::start(Exchange& exchange) {
  if (exchange.easy_ == nullptr) exchange.easy_ = curl_->easy_init();
  if (exchange.easy_ == nullptr) return fail(Error::no_room, "no memory for a connection", shown_url(exchange.url));
  exchange.client_ = this;
  exchange.hops_ = 0;
  exchange.answer_ = {};
  exchange.stopped_.reset();
  exchange.failure_.reset();
  return add(exchange);
}

void Client::stop(Exchange& exchange) {
  if (exchange.added_) curl_->multi_remove(multi_, exchange.easy_);
  exchange.added_ = false;
  curl_->list_free(std::exchange(exchange.headers_, nullptr));
}

// Follows a redirect. Returns false if the exchange has ended. A HEAD request ends at the first answer with
// X-Linked-ETag, redirect or not.
Result<bool> Client::redirect(Exchange& exchange) {
  const bool enough = exchange.head_only && !exchange.answer_.header("x-linked-etag").empty();
  if (!is_redirect(exchange.answer_.status) || enough) return false;
  const char* target = nullptr;
  curl_->easy_info(exchange.easy_, CURLINFO_REDIRECT_URL, &target);
  const std::string from = exchange.url, name = shown_url(from), to = target == nullptr ? "" : target;
  if (to.empty()) return fail(Error::damaged, "a redirect without a target", name);
  if (++exchange.hops_ > kMostHops) return fail(Error::damaged, fmt::format("more than {} redirects", kMostHops), name);
  KVASIR_TRY(const Origin was, origin_of(*curl_, from, name));
  KVASIR_TRY(const Origin is, origin_of(*curl_, to, name + ": a redirect"));
  if (was.scheme == "https" && is.scheme != "https")
    return fail(Error::damaged, fmt::format("a redirect from https to plain http, {}", in_quotes(shown_url(to))), name);
  exchange.url = to;
  KVASIR_CHECK(add(exchange));
  return true;
}

void Client::end(Exchange& exchange, CURLcode code) {
  stop(exchange);
  curl_->easy_info(exchange.easy_, CURLINFO_RESPONSE_CODE, &exchange.answer_.status);
  exchange.answer_.url = exchange.url;
  answered_ = answered_ || exchange.answer_.status != 0;
  if (!exchange.refusal_.empty()) code = CURLE_OK;  // the status is known, however the body ended
  if (code == CURLE_OK && !exchange.stopped_) {
    const auto elsewhere = redirect(exchange);
    if (!elsewhere) exchange.stopped_ = elsewhere.error();
    if (elsewhere && *elsewhere) return;
    const bool enough = exchange.head_only && is_redirect(exchange.answer_.status) && elsewhere;
    if (enough) exchange.answer_.status = 200;
    exchange.begin_body();
  }
  exchange.failure_ = failure_of(exchange, code);
  ended_ = &exchange;
}

Exchange* Client::wait(double seconds) {
  int running = 0;
  ended_ = nullptr;
  for (bool polled = false;; polled = true) {
    curl_->multi_perform(multi_, &running);
    int left = 0;
    while (CURLMsg* const message = curl_->multi_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      void* exchange = nullptr;
      const CURLcode code = message->data.result;
      curl_->easy_info(message->easy_handle, CURLINFO_PRIVATE, &exchange);
      end(*static_cast<Exchange*>(exchange), code);
      if (ended_ != nullptr) return std::exchange(ended_, nullptr);
    }
    if (polled) return nullptr;
    curl_->multi_poll(multi_, nullptr, 0, static_cast<int>(std::clamp(1000 * seconds, 0.0, 1000.0)), nullptr);
  }
}

Result<std::string> Client::get(const std::string& url, size_t most, Answer* answer, bool head_only) {
  for (Patience patience;;) {
    std::string body;
    Exchange exchange;
    exchange.url = url;
    exchange.head_only = head_only;
    exchange.on_bytes = [&](std::string_view bytes) -> Result<void> {
      if (bytes.size() > most - body.size())
        return fail(Error::damaged, fmt::format("the answer has more than {} bytes", most), shown_url(url));
      body += bytes;
      return {};
    };
    KVASIR_CHECK(start(exchange));
    while (wait(1) == nullptr) continue;
    if (!exchange.failure()) {
      if (answer != nullptr) *answer = exchange.answer();
      return body;
    }
    const auto seconds = patience.wait_after(*exchange.failure());
    if (!seconds) return tl::unexpected(exchange.failure()->error);
    curl_->multi_poll(multi_, nullptr, 0, static_cast<int>(1000 * *seconds), nullptr);
  }
}

}  // namespace kvasir::hub

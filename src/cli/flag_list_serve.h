// The flags of kvasir serve. Flags that it shares with other commands are in flag_list.h.
#pragma once

#include "cli/flag_list.h"

namespace kvasir::cli::flag {

inline constexpr Flag kServeModels{.names = "MODEL,-m,--model",
                                   .help =
                                       "models: Hugging Face folders, .gguf files, llama2.c .bin files, or names from "
                                       "models/; all except the first are opened when a request names them",
                                   .kind = Kind::texts};
inline constexpr Flag kAlias{.names = "--alias",
                             .help = "name of a model for clients; once for each model, in their order",
                             .kind = Kind::texts};
inline constexpr Flag kModelTtl{.names = "--model-ttl",
                                .help = "seconds without requests after which a model is closed; 0: never",
                                .kind = Kind::real,
                                .high = 1e9,
                                .unit = "seconds"};
inline constexpr Flag kHost{.names = "--host", .help = "address to listen on"};
inline constexpr Flag kPort{.names = "--port",
                            .help = "port to listen on; 0: a free one",
                            .kind = Kind::integer,
                            .high = 65535,
                            .unit = "is not a port"};
inline constexpr Flag kServePrefixRam{
    .names = "--prefix-ram", .help = "memory for KV that later texts with the same prefix reuse", .kind = Kind::size};
inline constexpr Flag kServeSequences{.names = "--max-sequences",
                                      .help = "maximum number of sequences in one pass",
                                      .kind = Kind::integer,
                                      .low = 1,
                                      .high = kMostAtOnce,
                                      .unit = "sequences"};
inline constexpr Flag kServeStepMs{
    .names = "--step-ms",
    .help = "target time of a pass in milliseconds while any sequence decodes; 0: no limit",
    .kind = Kind::real,
    .high = 1e6,
    .unit = "milliseconds"};
inline constexpr Flag kServeDraft{
    .names = "--draft", .help = "small model with the same vocabulary that drafts tokens", .not_with = "--ram"};
inline constexpr Flag kQueue{.names = "--queue",
                             .help = "maximum number of waiting requests; more are refused",
                             .kind = Kind::integer,
                             .low = 1,
                             .high = kMost,
                             .unit = "requests"};
inline constexpr Flag kQueueTokens{.names = "--queue-tokens",
                                   .help = "maximum number of prompt tokens of waiting requests; more are refused",
                                   .kind = Kind::integer,
                                   .low = 1,
                                   .high = kMost,
                                   .unit = "tokens"};
inline constexpr Flag kMaxOutput{.names = "--max-output",
                                 .help = "maximum number of tokens of an answer; 0: the context",
                                 .kind = Kind::integer,
                                 .high = kMost,
                                 .unit = "tokens"};
inline constexpr Flag kApiKeys{
    .names = "--api-key-file",
    .help = "file with lines \"name key [weight] [most requests at a time]\"; requests without a key are refused",
    .kind = Kind::input};
inline constexpr Flag kSharedCache{.names = "--shared-cache",
                                   .help = "share kept prefixes between API keys",
                                   .kind = Kind::toggle,
                                   .needs = "--api-key-file"};
inline constexpr Flag kCors{
    .names = "--cors",
    .help = "origin whose pages may send requests, besides local ones; may be given more than once",
    .kind = Kind::texts};
inline constexpr Flag kNoPage{.names = "--no-page", .help = "serve no page at /", .kind = Kind::toggle};
inline constexpr Flag kStrictModel{
    .names = "--strict-model", .help = "refuse requests for models that are not served", .kind = Kind::toggle};
inline constexpr Flag kStrictFields{
    .names = "--strict-fields", .help = "refuse unknown fields in requests", .kind = Kind::toggle};
inline constexpr Flag kMaxBody{.names = "--max-body", .help = "maximum size of a request's body", .kind = Kind::size};
inline constexpr Flag kMaxConnections{.names = "--max-connections",
                                      .help = "maximum number of open connections; more wait to be accepted",
                                      .kind = Kind::integer,
                                      .low = 1,
                                      .high = 1e6,
                                      .unit = "connections"};
inline constexpr Flag kWriteTimeout{.names = "--write-timeout",
                                    .help = "seconds without a byte read by a client after which it is disconnected",
                                    .kind = Kind::real,
                                    .low = 0.01,
                                    .high = 1e6,
                                    .unit = "seconds"};
inline constexpr Flag kDrainTimeout{.names = "--drain-timeout",
                                    .help = "seconds that running answers have to finish after SIGTERM",
                                    .kind = Kind::real,
                                    .high = 1e6,
                                    .unit = "seconds"};
inline constexpr Flag kMetricsNames{.names = "--metrics-names",
                                    .help = "names of metrics in /metrics; vllm: vLLM's names besides Kvasir's",
                                    .kind = Kind::name,
                                    .unit = "a set of names",
                                    .choices = metrics_names_choices};
inline constexpr Flag kQuiet{.names = "--quiet", .help = "log no line per request", .kind = Kind::toggle};
inline constexpr Flag kCheck{.names = "--check",
                             .help = "open the model and the address, print as JSON what would be served, and exit",
                             .kind = Kind::toggle};

}  // namespace kvasir::cli::flag

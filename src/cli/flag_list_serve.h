// The flags of kvasir serve. Those that it shares with other commands are in flag_list.h.
#pragma once

#include "cli/flag_list.h"

namespace kvasir::cli::flag {

inline constexpr Flag kServeModels{
    .names = "MODEL,-m,--model",
    .help =
        "Hugging Face folders, .gguf files, llama2.c .bin files, or names from models/; all but the first are "
        "opened when a request names them",
    .kind = Kind::texts};
inline constexpr Flag kAlias{.names = "--alias",
                             .help = "what clients call the model; once for each, in the order of the models",
                             .kind = Kind::texts};
inline constexpr Flag kModelTtl{.names = "--model-ttl",
                                .help = "seconds after which a model that nobody asks for is put away; 0: never",
                                .kind = Kind::real,
                                .high = 1e9,
                                .unit = "seconds"};
inline constexpr Flag kHost{.names = "--host", .help = "the address to listen at"};
inline constexpr Flag kPort{
    .names = "--port", .help = "its port; 0: a free one", .kind = Kind::integer, .high = 65535, .unit = "is no port"};
inline constexpr Flag kServePrefixRam{
    .names = "--prefix-ram", .help = "bytes of KV kept of texts for others that begin like them", .kind = Kind::size};
inline constexpr Flag kServeSequences{.names = "--max-sequences",
                                      .help = "sequences in one pass",
                                      .kind = Kind::integer,
                                      .low = 1,
                                      .high = kMostAtOnce,
                                      .unit = "sequences"};
inline constexpr Flag kServeStepMs{.names = "--step-ms",
                                   .help = "milliseconds that a pass should take while somebody decodes; 0: any",
                                   .kind = Kind::real,
                                   .high = 1e6,
                                   .unit = "milliseconds"};
inline constexpr Flag kServeDraft{.names = "--draft",
                                  .help = "a small model of the same vocabulary that guesses how texts go on",
                                  .not_with = "--ram"};
inline constexpr Flag kQueue{.names = "--queue",
                             .help = "requests that wait; more are refused",
                             .kind = Kind::integer,
                             .low = 1,
                             .high = kMost,
                             .unit = "requests"};
inline constexpr Flag kQueueTokens{.names = "--queue-tokens",
                                   .help = "prompt tokens that wait; more are refused",
                                   .kind = Kind::integer,
                                   .low = 1,
                                   .high = kMost,
                                   .unit = "tokens"};
inline constexpr Flag kMaxOutput{.names = "--max-output",
                                 .help = "the most tokens of an answer; 0: the context",
                                 .kind = Kind::integer,
                                 .high = kMost,
                                 .unit = "tokens"};
inline constexpr Flag kApiKeys{.names = "--api-key-file",
                               .help = "lines \"name key [weight] [most requests at a time]\"; nobody else is answered",
                               .kind = Kind::input};
inline constexpr Flag kSharedCache{.names = "--shared-cache",
                                   .help = "what is kept of one key's texts is used for other keys",
                                   .kind = Kind::toggle,
                                   .needs = "--api-key-file"};
inline constexpr Flag kCors{
    .names = "--cors", .help = "an origin whose pages may ask, besides local ones", .kind = Kind::texts};
inline constexpr Flag kStrictModel{
    .names = "--strict-model", .help = "refuse names of models that are not here", .kind = Kind::toggle};
inline constexpr Flag kStrictFields{
    .names = "--strict-fields", .help = "refuse fields of requests that are not known", .kind = Kind::toggle};
inline constexpr Flag kMaxBody{.names = "--max-body", .help = "bytes of a request's body", .kind = Kind::size};
inline constexpr Flag kMaxConnections{.names = "--max-connections",
                                      .help = "open connections; more wait to be accepted",
                                      .kind = Kind::integer,
                                      .low = 1,
                                      .high = 1e6,
                                      .unit = "connections"};
inline constexpr Flag kWriteTimeout{.names = "--write-timeout",
                                    .help = "seconds without a byte read by a client, after which it is let go",
                                    .kind = Kind::real,
                                    .low = 0.01,
                                    .high = 1e6,
                                    .unit = "seconds"};
inline constexpr Flag kDrainTimeout{.names = "--drain-timeout",
                                    .help = "seconds that answers under way have after SIGTERM",
                                    .kind = Kind::real,
                                    .high = 1e6,
                                    .unit = "seconds"};
inline constexpr Flag kMetricsNames{.names = "--metrics-names",
                                    .help = "whose names /metrics has besides Kvasir's",
                                    .kind = Kind::name,
                                    .unit = "a set of names",
                                    .choices = metrics_names_choices};
inline constexpr Flag kQuiet{.names = "--quiet", .help = "no line for each request", .kind = Kind::toggle};
inline constexpr Flag kCheck{.names = "--check",
                             .help = "open the model and the address, print what would be served as JSON, and end",
                             .kind = Kind::toggle};

}  // namespace kvasir::cli::flag

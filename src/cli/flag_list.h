// Every flag of every command, declared once: names, help, what may be given and what excludes it. A command binds them
// to its variables (flags.h). Those of serve alone are in flag_list_serve.h.
#pragma once

#include "base/thread_pool.h"
#include "cli/flags.h"

namespace kvasir::cli {

// The names that a flag takes, from the registries of the library.
std::vector<std::string> weight_mode_choices();
std::vector<std::string> layout_choices();
std::vector<std::string> kv_type_choices();
std::vector<std::string> weight_type_choices();
std::vector<std::string> quantize_type_choices();
std::vector<std::string> synth_type_choices();
std::vector<std::string> on_full_choices();
std::vector<std::string> sampler_choices();
std::vector<std::string> pooling_choices();
std::vector<std::string> chat_format_choices();
std::vector<std::string> talk_format_choices();
std::vector<std::string> metrics_names_choices();
bool is_kv_type(const std::string& name);
bool is_weight_type(const std::string& name);

namespace flag {

inline constexpr double kMost = 2147483647;
/// Sequences that one flag makes; more would take the memory of any machine before they are refused.
inline constexpr double kMostAtOnce = 4096;

// ---- the model ----------------------------------------------------------------------------------------------------

inline constexpr Flag kModel{
    .names = "MODEL,-m,--model",
    .help = "a Hugging Face folder, .gguf, llama2.c .bin, name from models/ or pulled OWNER/NAME"};
inline constexpr Flag kWeights{.names = "--weights",
                               .help = "how weights are held; streamed: two layers in memory",
                               .kind = Kind::name,
                               .unit = "a weight mode",
                               .choices = weight_mode_choices};
inline constexpr Flag kRam{.names = "--ram",
                           .help = "bytes that the whole run may hold: 512M, 8G, auto; what would not fit is refused",
                           .kind = Kind::memory};
inline constexpr Flag kKvRam{
    .names = "--kv-ram", .help = "bytes that the KV of all sequences may hold", .kind = Kind::size};
inline constexpr Flag kTokenizer{
    .names = "--tokenizer", .help = "tokenizer file, where it is not beside the model", .kind = Kind::input};

// ---- the engine and its sessions ----------------------------------------------------------------------------------

inline constexpr Flag kThreads{.names = "--threads,-t",
                               .help = "threads; 0: as many as this process may use cores",
                               .kind = Kind::integer,
                               .high = ThreadPool::kMaxThreads,
                               .unit = "threads"};
inline constexpr Flag kThreadsList{.names = "--threads,-t",
                                   .help = "thread counts, 1,2,4",
                                   .kind = Kind::integers,
                                   .low = 1,
                                   .high = ThreadPool::kMaxThreads,
                                   .unit = "threads"};
inline constexpr Flag kPrefillChunk{.names = "--prefill-chunk",
                                    .help = "prompt tokens in one pass",
                                    .kind = Kind::integer,
                                    .low = 1,
                                    .high = kMost,
                                    .unit = "tokens"};
inline constexpr Flag kCache{.names = "--cache",
                             .help = "cache layout",
                             .kind = Kind::name,
                             .unit = "a cache layout",
                             .choices = layout_choices};
inline constexpr Flag kCtx{.names = "--ctx,-c",
                           .help = "the most positions; 0: the model's limit, or what --ram has room for",
                           .kind = Kind::integer,
                           .high = kMost,
                           .unit = "positions"};
inline constexpr Flag kWindowTokens{.names = "--ctx,-c",
                                    .help = "tokens in a window; 0: the model's limit",
                                    .kind = Kind::integer,
                                    .high = kMost,
                                    .unit = "tokens"};
inline constexpr Flag kKeyType{.names = "--ctk,--cache-type-k",
                               .help = "type of K (also -ctk)",
                               .kind = Kind::name,
                               .unit = "a KV type",
                               .choices = kv_type_choices,
                               .known = is_kv_type};
inline constexpr Flag kValueType{.names = "--ctv,--cache-type-v",
                                 .help = "type of V (also -ctv)",
                                 .kind = Kind::name,
                                 .unit = "a KV type",
                                 .choices = kv_type_choices,
                                 .known = is_kv_type};
inline constexpr Flag kKvType{.names = "--kv-type",
                              .help = "type of both K and V",
                              .kind = Kind::name,
                              .unit = "a KV type",
                              .choices = kv_type_choices,
                              .known = is_kv_type,
                              .not_with = "--ctk --ctv"};
inline constexpr Flag kWindow{
    .names = "--window",
    .help = "see only so many last positions, an approximation of a model that sees all; 0: all",
    .kind = Kind::integer,
    .high = kMost,
    .unit = "positions"};
inline constexpr Flag kSinks{.names = "--sinks",
                             .help = "with --window, the first positions too; 4 by default",
                             .kind = Kind::integer,
                             .high = kMost,
                             .unit = "positions",
                             .needs = "--window!=0 --on-full=slide"};
inline constexpr Flag kOnFull{.names = "--on-full",
                              .help =
                                  "when the context is full: recompute its last half and go on, or slide: let go "
                                  "of the oldest tokens but --sinks, an approximation (RoPE only)",
                              .kind = Kind::name,
                              .unit = "a way to go on",
                              .choices = on_full_choices};

// ---- prompts ------------------------------------------------------------------------------------------------------

inline constexpr Flag kPrompt{.names = "-p,--prompt",
                              .help = "the text",
                              .not_with = "--file --ids --prompts",
                              .or_else = "--file --ids --prompts"};
inline constexpr Flag kPromptFile{.names = "-f,--file",
                                  .help = "a file with the text; -: stdin",
                                  .kind = Kind::text_file,
                                  .not_with = "--ids --prompts"};
inline constexpr Flag kPromptIds{.names = "--ids",
                                 .help = "token ids instead of a text, 1,2,3",
                                 .kind = Kind::integers,
                                 .high = kMost,
                                 .unit = "is no token id",
                                 .not_with = "--prompts"};
inline constexpr Flag kPromptsFile{.names = "--prompts",
                                   .help = "a file with one prompt per line, instead of a prompt; -: stdin",
                                   .kind = Kind::text_file,
                                   .not_with = "--samples --save-cache --load-cache"};
inline constexpr Flag kPredict{.names = "-n,--predict",
                               .help = "how many tokens; -1: until the end of the text or of the context",
                               .kind = Kind::integer,
                               .low = 1,
                               .high = kMost,
                               .also = -1,
                               .unit = "tokens"};
inline constexpr Flag kIgnoreEos{
    .names = "--ignore-eos", .help = "go on past the end of the text", .kind = Kind::toggle};
inline constexpr Flag kSamples{.names = "--samples",
                               .help = "so many continuations of the prompt; in --cache paged they share it",
                               .kind = Kind::integer,
                               .low = 1,
                               .high = kMostAtOnce,
                               .unit = "samples"};
inline constexpr Flag kBatch{.names = "--batch",
                             .help = "with --prompts, how many run side by side",
                             .kind = Kind::integer,
                             .low = 1,
                             .high = kMost,
                             .unit = "sequences",
                             .needs = "--prompts"};
inline constexpr Flag kPrefixRam{.names = "--prefix-ram",
                                 .help = "with --prompts, bytes of KV kept for prompts that begin like earlier ones",
                                 .kind = Kind::size,
                                 .needs = "--prompts"};
inline constexpr Flag kSaveCache{
    .names = "--save-cache", .help = "a file for what the cache holds in the end", .kind = Kind::output};
inline constexpr Flag kLoadCache{.names = "--load-cache",
                                 .help = "such a file; what it has of the prompt is not computed again",
                                 .kind = Kind::input};
inline constexpr Flag kLookup{
    .names = "--lookup",
    .help = "guess so many tokens at a time from what the text repeats; the same text, often sooner. 0: off",
    .kind = Kind::integer,
    .high = kMost,
    .unit = "tokens"};

// ---- how tokens are chosen ----------------------------------------------------------------------------------------

inline constexpr Flag kGreedy{.names = "--greedy",
                              .help = "always the most likely token; the same as --temp 0",
                              .kind = Kind::toggle,
                              .not_with = "--temp!=0"};
// The flags of the samplers' parameters follow from the registry: sampling_args.h.
inline constexpr Flag kLogitBias{
    .names = "--logit-bias",
    .help = "ID:BIAS, added to the logit of this token; -100 or less bans it; may be given more than once",
    .kind = Kind::texts};
inline constexpr Flag kSamplers{.names = "--samplers",
                                .help = "samplers that run, in this order, a;b;c",
                                .kind = Kind::names,
                                .unit = "a sampler",
                                .choices = sampler_choices};
inline constexpr Flag kSeed{.names = "--seed",
                            .help = "of the random numbers; without it a new one each time, shown by --stats",
                            .kind = Kind::seed};
inline constexpr Flag kStop{
    .names = "--stop", .help = "end before this text; may be given more than once", .kind = Kind::texts};

// ---- output -------------------------------------------------------------------------------------------------------

inline constexpr Flag kJson{.names = "--json", .help = "one JSON object on stdout", .kind = Kind::toggle};
inline constexpr Flag kStats{
    .names = "--stats", .help = "what it cost, on stderr; --json has it anyway", .kind = Kind::toggle};
inline constexpr Flag kReceipt{.names = "--receipt",
                               .help = "128 bits that stand for every logit computed; --json has it anyway",
                               .kind = Kind::toggle};

// ---- chat ---------------------------------------------------------------------------------------------------------

inline constexpr Flag kAnswerTokens{.names = "-n,--predict",
                                    .help = "the most tokens of an answer; -1: until its end",
                                    .kind = Kind::integer,
                                    .low = 1,
                                    .high = kMost,
                                    .also = -1,
                                    .unit = "tokens"};
inline constexpr Flag kSystem{.names = "--system",
                              .help = "the system message; of plain turns, the text that they begin with",
                              .may_be_empty = true};
inline constexpr Flag kUser{
    .names = "--user", .help = "of plain turns: how yours begin", .not_with = "--chat-template", .may_be_empty = true};
inline constexpr Flag kAssistant{
    .names = "--assistant", .help = "how answers begin", .not_with = "--chat-template", .may_be_empty = true};
inline constexpr Flag kImage{.names = "--image", .help = "is refused: Kvasir runs text only", .kind = Kind::texts};
inline constexpr Flag kRunChat{.names = "--chat",
                               .help = "the prompt is a user's message, written by the model's chat template",
                               .kind = Kind::toggle,
                               .not_with = "--ids --prompts"};
inline constexpr Flag kChatFormat{.names = "--chat-format",
                                  .help = "how messages become a prompt; auto: by the model's template",
                                  .kind = Kind::name,
                                  .unit = "a chat format",
                                  .choices = chat_format_choices};
inline constexpr Flag kTemplateDate{.names = "--template-date",
                                    .help = "the day that templates write, as 2026-12-31; without it, today"};
inline constexpr Flag kHfSpecialTokens{
    .names = "--hf-special-tokens",
    .help = "read control tokens in messages too, as transformers does; without it they stay text",
    .kind = Kind::toggle};
inline constexpr Flag kChatTemplate{.names = "--chat-template",
                                    .help = "a file of Jinja in place of the model's own chat template",
                                    .kind = Kind::input,
                                    .not_with = "--chat-format=plain"};

// ---- logits, embed ------------------------------------------------------------------------------------------------

inline constexpr Flag kLogitsOut{
    .names = "--out,-o", .help = "a .npy file for the logits, float32 [tokens, vocabulary]", .kind = Kind::output};
inline constexpr Flag kTop{.names = "--top",
                           .help = "how many of the likeliest next tokens to show",
                           .kind = Kind::integer,
                           .low = 1,
                           .high = kMost,
                           .unit = "tokens",
                           .not_with = "--out"};
inline constexpr Flag kPooling{.names = "--pooling",
                               .help = "mean of all positions, or the last one's state",
                               .kind = Kind::name,
                               .unit = "a pooling",
                               .choices = pooling_choices};
inline constexpr Flag kVectorOut{
    .names = "--out,-o", .help = "a .npy file for the vector, float32 [hidden]", .kind = Kind::output};

// ---- perplexity, drift --------------------------------------------------------------------------------------------

inline constexpr Flag kTextFile{
    .names = "-f,--file", .help = "the text; -: stdin", .kind = Kind::text_file, .required = true};
inline constexpr Flag kChunks{.names = "--chunks",
                              .help = "only so many windows from the start; 0: all",
                              .kind = Kind::integer,
                              .high = kMost,
                              .unit = "windows"};
inline constexpr Flag kDriftTypes{.names = "--types",
                                  .help = "KV types to compare with f32, with commas; all by default",
                                  .kind = Kind::names,
                                  .unit = "a KV type",
                                  .choices = kv_type_choices,
                                  .known = is_kv_type};
inline constexpr Flag kCsv{.names = "--csv", .help = "write the table into this file too", .kind = Kind::output};
inline constexpr Flag kSvg{
    .names = "--svg", .help = "draw the mean KL of every type into this file, with gnuplot", .kind = Kind::output};

// ---- verify -------------------------------------------------------------------------------------------------------

inline constexpr Flag kVerifyPrompts{.names = "--prompts",
                                     .help = "a file with one prompt per line; the one that ships by default; -: stdin",
                                     .kind = Kind::text_file};
inline constexpr Flag kCount{.names = "--count",
                             .help = "at most so many of its prompts",
                             .kind = Kind::integer,
                             .low = 1,
                             .high = kMost,
                             .unit = "prompts"};
inline constexpr Flag kVerifyTokens{.names = "-n,--predict",
                                    .help = "tokens generated after each",
                                    .kind = Kind::integer,
                                    .low = 1,
                                    .high = kMost,
                                    .unit = "tokens"};
inline constexpr Flag kOnlyCache{.names = "--cache",
                                 .help = "only this layout",
                                 .kind = Kind::name,
                                 .unit = "a cache layout",
                                 .choices = layout_choices};
inline constexpr Flag kChunkList{.names = "--chunks",
                                 .help = "prefill chunks, 1,7,0; 0: whole prompts",
                                 .kind = Kind::integers,
                                 .high = kMost,
                                 .unit = "tokens"};
inline constexpr Flag kBatchList{.names = "--batches",
                                 .help = "sequences in one pass, 1,4",
                                 .kind = Kind::integers,
                                 .low = 1,
                                 .high = kMost,
                                 .unit = "sequences"};
inline constexpr Flag kCases{.names = "--cases",
                             .help = "a row for every case instead of one a kind; --json has them anyway",
                             .kind = Kind::toggle};

// ---- bench --------------------------------------------------------------------------------------------------------

inline constexpr Flag kBenchPrompt{.names = "-p,--prompt",
                                   .help = "tokens of the prefill test; 0: none",
                                   .kind = Kind::integer,
                                   .high = kMost,
                                   .unit = "tokens",
                                   .not_with = "--limits --prefix --serve"};
inline constexpr Flag kBenchGenerate{.names = "-n,--predict",
                                     .help = "tokens of the decode test; 0: none",
                                     .kind = Kind::integer,
                                     .high = kMost,
                                     .unit = "tokens",
                                     .not_with = "--limits --prefix --serve"};
inline constexpr Flag kDepth{.names = "--depth,-d",
                             .help = "positions filled before",
                             .kind = Kind::integer,
                             .high = kMost,
                             .unit = "positions",
                             .not_with = "--limits --prefix --serve"};
inline constexpr Flag kBenchBatch{.names = "--batch,-b",
                                  .help = "sequences in every step; tok/s counts all of them",
                                  .kind = Kind::integer,
                                  .low = 1,
                                  .high = kMostAtOnce,
                                  .unit = "sequences",
                                  .not_with = "--limits --prefix --serve"};
inline constexpr Flag kRepeats{.names = "--repeats,-r",
                               .help = "how often each is measured",
                               .kind = Kind::integer,
                               .low = 1,
                               .high = kMost,
                               .unit = "repeats",
                               .not_with = "--limits --serve"};
inline constexpr Flag kPlot{.names = "--plot",
                            .help =
                                "measure step by step too, with the last thread count, and write SVG and CSV into "
                                "this folder",
                            .not_with = "--limits --serve"};
inline constexpr Flag kPrefix{
    .names = "--prefix",
    .help = "instead: what a beginning of so many tokens that is known already saves, with one thread count",
    .kind = Kind::integer,
    .low = 1,
    .high = kMost,
    .unit = "tokens",
    .not_with = "--limits --serve"};
inline constexpr Flag kServe{
    .names = "--serve",
    .help =
        "instead: replay this trace of requests through the scheduler (docs/formats/trace.md), with one thread count",
    .kind = Kind::input,
    .not_with = "--limits"};
inline constexpr Flag kUrl{
    .names = "--url",
    .help =
        "with --serve, replay it over HTTP against this server of OpenAI's API, http://HOST:PORT: no model is opened",
    .not_with =
        "MODEL --weights --ram --kv-ram --threads --cache --ctx --ctk --ctv --kv-type --max-sequences --step-ms "
        "--draft",
    .needs = "--serve"};
inline constexpr Flag kServedModel{.names = "--served-model",
                                   .help = "with --url, the model's name there; without it, the first that it lists",
                                   .needs = "--url"};
inline constexpr Flag kVocab{.names = "--n-vocab",
                             .help = "with --url, how many token ids its model has; 0: as the server tells",
                             .kind = Kind::integer,
                             .high = kMost,
                             .unit = "ids",
                             .needs = "--url"};
inline constexpr Flag kMaxSequences{.names = "--max-sequences",
                                    .help = "with --serve, sequences in one pass",
                                    .kind = Kind::integer,
                                    .low = 1,
                                    .high = kMostAtOnce,
                                    .unit = "sequences",
                                    .needs = "--serve"};
inline constexpr Flag kDraft{.names = "--draft",
                             .help = "with --serve, a small model of the same vocabulary that guesses how texts go on",
                             .not_with = "--ram",
                             .needs = "--serve"};
inline constexpr Flag kDraftTokens{.names = "--draft-tokens",
                                   .help = "tokens that the draft model guesses in a pass",
                                   .kind = Kind::integer,
                                   .low = 1,
                                   .high = 64,
                                   .unit = "tokens",
                                   .needs = "--draft"};
inline constexpr Flag kStepMs{
    .names = "--step-ms",
    .help = "with --serve, milliseconds that a pass should take while somebody decodes; 0: any",
    .kind = Kind::real,
    .high = 1e6,
    .unit = "milliseconds",
    .needs = "--serve"};
inline constexpr Flag kLimits{.names = "--limits",
                              .help = "only what this machine can do, measured: no model is opened",
                              .kind = Kind::toggle,
                              .not_with =
                                  "MODEL --weights --ram --kv-ram --cache --ctx --ctk --ctv "
                                  "--kv-type"};
inline constexpr Flag kBenchTokenizer{.names = "--tokenizer",
                                      .help = "with --prefix, the tokenizer file, where it is not beside the model",
                                      .kind = Kind::input,
                                      .needs = "--prefix"};

// ---- plan ---------------------------------------------------------------------------------------------------------

inline constexpr Flag kPlanModel{.names = "MODEL,-m,--model", .help = "a model, or a bare config.json"};
inline constexpr Flag kChat{.names = "--chat",
                            .help = "positions that a sequence uses; 0: all of --ctx",
                            .kind = Kind::integer,
                            .high = kMost,
                            .unit = "positions"};
inline constexpr Flag kPlanDtype{.names = "--dtype",
                                 .help = "weight type, for a bare config.json",
                                 .kind = Kind::name,
                                 .unit = "a weight type",
                                 .choices = weight_type_choices,
                                 .known = is_weight_type};
inline constexpr Flag kPlanRam{
    .names = "--ram", .help = "bytes for the whole run, 512M, 8G, auto: what fits, and how", .kind = Kind::memory};
inline constexpr Flag kPlanKvRam{.names = "--kv-ram", .help = "bytes for the cache alone", .kind = Kind::size};
inline constexpr Flag kPlanThreads{
    .names = "--threads,-t",
    .help = "threads that run it and read memory; 0: as many as this process may use cores",
    .kind = Kind::integer,
    .high = ThreadPool::kMaxThreads,
    .unit = "threads"};
inline constexpr Flag kExplain{.names = "--explain", .help = "the multiplications", .kind = Kind::toggle};

// ---- quantize, synth ----------------------------------------------------------------------------------------------

inline constexpr Flag kQuantizeModel{
    .names = "MODEL",
    .help = "a Hugging Face folder, a .gguf or llama2.c .bin of floats, or a model that ships with Kvasir",
    .required = true};
inline constexpr Flag kQuantizeOut{.names = "OUT", .help = "the GGUF file to write", .required = true};
inline constexpr Flag kQuantizeType{.names = "--type",
                                    .help = "the weight type of the file",
                                    .kind = Kind::name,
                                    .unit = "a type of files",
                                    .choices = quantize_type_choices,
                                    .required = true};
inline constexpr Flag kNoTokenizer{.names = "--no-tokenizer",
                                   .help = "write no tokenizer: only token ids will work",
                                   .kind = Kind::toggle,
                                   .not_with = "--tokenizer"};
inline constexpr Flag kForceFile{.names = "--force", .help = "replace OUT", .kind = Kind::toggle};
inline constexpr Flag kShape{.names = "SHAPE", .help = "the shape, or a config.json", .required = true};
inline constexpr Flag kSynthOut{.names = "OUT", .help = "the Hugging Face folder to make", .required = true};
inline constexpr Flag kSynthDtype{.names = "--dtype",
                                  .help = "the weight type of the folder",
                                  .kind = Kind::name,
                                  .unit = "a type of weights",
                                  .choices = synth_type_choices};
inline constexpr Flag kSynthSeed{
    .names = "--seed", .help = "the same seed gives the same file on every machine", .kind = Kind::seed};
inline constexpr Flag kForceFolder{
    .names = "--force", .help = "replace a folder that an earlier synth made", .kind = Kind::toggle};

// ---- pull, rm -----------------------------------------------------------------------------------------------------
inline constexpr Flag kPullModel{.names = "NAME",
                                 .help = "OWNER/NAME, OWNER/NAME:Q4_K_M (a type of its GGUF files) or OWNER/NAME:FILE",
                                 .required = true};
inline constexpr Flag kEndpoint{.names = "--endpoint",
                                .help = "the hub's address; without it HF_ENDPOINT, or https://huggingface.co"};
inline constexpr Flag kConnections{.names = "--connections",
                                   .help = "ranges of a file that come at the same time",
                                   .kind = Kind::integer,
                                   .low = 1,
                                   .high = 16,
                                   .unit = "connections"};
inline constexpr Flag kTimeout{.names = "--timeout",
                               .help = "seconds without a byte, after which a connection is given up",
                               .kind = Kind::real,
                               .low = 1,
                               .high = 1e6,
                               .unit = "seconds"};

// ---- tokenize, inspect --------------------------------------------------------------------------------------------

inline constexpr Flag kTokenizeModel{.names = "MODEL,-m,--model",
                                     .help = "a model, or a tokenizer.json, tokenizer.model or .gguf"};
inline constexpr Flag kText{
    .names = "TEXT", .help = "the text", .not_with = "--stdin --ids", .or_else = "--stdin --ids", .may_be_empty = true};
inline constexpr Flag kStdin{
    .names = "--stdin", .help = "the text is what stdin gives", .kind = Kind::toggle, .not_with = "--ids"};
inline constexpr Flag kNoBos{
    .names = "--no-bos", .help = "without the token that begins a text", .kind = Kind::toggle, .not_with = "--ids"};
inline constexpr Flag kDecodeIds{.names = "--ids",
                                 .help = "the other way: the text of these ids, 1,2,3",
                                 .kind = Kind::integers,
                                 .high = kMost,
                                 .unit = "is no token id"};
inline constexpr Flag kTalk{.names = "TALK",
                            .help = "[MODEL] TALK.json: a model, unless --chat-template is all, and the talk",
                            .kind = Kind::texts,
                            .required = true};
inline constexpr Flag kTwoTalks{
    .names = "TALKS",
    .help = "[MODEL] A.json B.json: a model, unless --chat-template is all, and two requests",
    .kind = Kind::texts,
    .required = true};
inline constexpr Flag kAdapt{.names = "--adapt",
                             .help = "bring the talk into the form that templates are written for, as the server does",
                             .kind = Kind::toggle};
inline constexpr Flag kInspectModel{.names = "MODEL,-m,--model", .help = "a model, or a .safetensors file"};

}  // namespace flag
}  // namespace kvasir::cli

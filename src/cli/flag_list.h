// Every flag of every command, declared once: names, help, allowed values, and flags that it excludes or needs. A
// command binds flags to its variables (flags.h). Flags of serve alone are in flag_list_serve.h.
#pragma once

#include "base/thread_pool.h"
#include "cli/flags.h"

namespace kvasir::cli {

// The allowed names of each flag, from the registries of the library.
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
std::vector<std::string> conversation_format_choices();
std::vector<std::string> metrics_names_choices();
bool is_kv_type(const std::string& name);
bool is_weight_type(const std::string& name);

namespace flag {

inline constexpr double kMost = 2147483647;
/// Upper bound of a number of sequences; more would exhaust any machine's memory before they are refused.
inline constexpr double kMostAtOnce = 4096;

// ---- the model ----------------------------------------------------------------------------------------------------

inline constexpr Flag kModel{
    .names = "MODEL,-m,--model",
    .help = "model: a Hugging Face folder, .gguf, llama2.c .bin, name from models/ or pulled OWNER/NAME"};
inline constexpr Flag kWeights{.names = "--weights",
                               .help = "where the weights are held; streamed: on disk, except two layers at a time",
                               .kind = Kind::name,
                               .unit = "a weight mode",
                               .choices = weight_mode_choices};
inline constexpr Flag kRam{.names = "--ram",
                           .help = "memory budget of the whole run: 512M, 8G, auto; what would not fit is refused",
                           .kind = Kind::memory};
inline constexpr Flag kKvRam{
    .names = "--kv-ram", .help = "memory budget of the KV of all sequences", .kind = Kind::size};
inline constexpr Flag kTokenizer{
    .names = "--tokenizer", .help = "tokenizer file, if it is not beside the model", .kind = Kind::input};

// ---- the engine and its sessions ----------------------------------------------------------------------------------

inline constexpr Flag kThreads{.names = "--threads,-t",
                               .help = "number of threads; 0: one per core that this process may use",
                               .kind = Kind::integer,
                               .high = ThreadPool::kMaxThreads,
                               .unit = "threads"};
inline constexpr Flag kThreadsList{.names = "--threads,-t",
                                   .help = "thread counts: 1,2,4",
                                   .kind = Kind::integers,
                                   .low = 1,
                                   .high = ThreadPool::kMaxThreads,
                                   .unit = "threads"};
inline constexpr Flag kPrefillChunk{.names = "--prefill-chunk",
                                    .help = "maximum number of prompt tokens in one pass",
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
                           .help = "context length in positions; 0: the model's limit, or what --ram has room for",
                           .kind = Kind::integer,
                           .high = kMost,
                           .unit = "positions"};
inline constexpr Flag kWindowTokens{.names = "--ctx,-c",
                                    .help = "window length in tokens; 0: the model's limit",
                                    .kind = Kind::integer,
                                    .high = kMost,
                                    .unit = "tokens"};
inline constexpr Flag kKeyType{.names = "--ctk,--cache-type-k",
                               .help = "storage type of K (also -ctk)",
                               .kind = Kind::name,
                               .unit = "a KV type",
                               .choices = kv_type_choices,
                               .known = is_kv_type};
inline constexpr Flag kValueType{.names = "--ctv,--cache-type-v",
                                 .help = "storage type of V (also -ctv)",
                                 .kind = Kind::name,
                                 .unit = "a KV type",
                                 .choices = kv_type_choices,
                                 .known = is_kv_type};
inline constexpr Flag kKvType{.names = "--kv-type",
                              .help = "storage type of both K and V",
                              .kind = Kind::name,
                              .unit = "a KV type",
                              .choices = kv_type_choices,
                              .known = is_kv_type,
                              .not_with = "--ctk --ctv"};
inline constexpr Flag kWindow{
    .names = "--window",
    .help = "number of last positions that a token sees, an approximation of a model that sees all; 0: all",
    .kind = Kind::integer,
    .high = kMost,
    .unit = "positions"};
inline constexpr Flag kSinks{.names = "--sinks",
                             .help = "number of first positions that a token sees besides the window; 4 by default",
                             .kind = Kind::integer,
                             .high = kMost,
                             .unit = "positions",
                             .needs = "--window!=0 --on-full=slide"};
inline constexpr Flag kOnFull{
    .names = "--on-full",
    .help =
        "behaviour when the context is full; recompute: compute its last half again and continue; slide: drop the "
        "oldest tokens except --sinks, an approximation (RoPE only)",
    .kind = Kind::name,
    .unit = "a way to go on",
    .choices = on_full_choices};

// ---- prompts ------------------------------------------------------------------------------------------------------

inline constexpr Flag kPrompt{.names = "-p,--prompt",
                              .help = "prompt",
                              .not_with = "--file --ids --prompts",
                              .or_else = "--file --ids --prompts"};
inline constexpr Flag kPromptFile{.names = "-f,--file",
                                  .help = "file with the prompt; -: stdin",
                                  .kind = Kind::text_file,
                                  .not_with = "--ids --prompts"};
inline constexpr Flag kPromptIds{.names = "--ids",
                                 .help = "prompt as token ids: 1,2,3",
                                 .kind = Kind::integers,
                                 .high = kMost,
                                 .unit = "is not a token id",
                                 .not_with = "--prompts"};
inline constexpr Flag kPromptsFile{.names = "--prompts",
                                   .help = "file with one prompt per line; each gets its own answer; -: stdin",
                                   .kind = Kind::text_file,
                                   .not_with = "--samples --save-cache --load-cache"};
inline constexpr Flag kPredict{.names = "-n,--predict",
                               .help = "number of tokens to generate; -1: until the end of the text or of the context",
                               .kind = Kind::integer,
                               .low = 1,
                               .high = kMost,
                               .also = -1,
                               .unit = "tokens"};
inline constexpr Flag kIgnoreEos{
    .names = "--ignore-eos", .help = "continue past the end of the text", .kind = Kind::toggle};
inline constexpr Flag kSamples{.names = "--samples",
                               .help = "number of continuations of the prompt; with --cache paged they share its KV",
                               .kind = Kind::integer,
                               .low = 1,
                               .high = kMostAtOnce,
                               .unit = "samples"};
inline constexpr Flag kBatch{.names = "--batch",
                             .help = "number of prompts that run side by side, with --prompts",
                             .kind = Kind::integer,
                             .low = 1,
                             .high = kMost,
                             .unit = "sequences",
                             .needs = "--prompts"};
inline constexpr Flag kPrefixRam{.names = "--prefix-ram",
                                 .help = "memory for KV that later prompts with the same prefix reuse, with --prompts",
                                 .kind = Kind::size,
                                 .needs = "--prompts"};
inline constexpr Flag kSaveCache{
    .names = "--save-cache", .help = "KV snapshot to write at the end", .kind = Kind::output};
inline constexpr Flag kLoadCache{
    .names = "--load-cache",
    .help = "KV snapshot to load; the part of the prompt that it holds is not computed again",
    .kind = Kind::input};
inline constexpr Flag kLookup{
    .names = "--lookup",
    .help = "number of tokens to draft at a time where the text repeats itself; same text, often faster. 0: off",
    .kind = Kind::integer,
    .high = kMost,
    .unit = "tokens"};

// ---- how tokens are chosen ----------------------------------------------------------------------------------------

inline constexpr Flag kGreedy{.names = "--greedy",
                              .help = "always choose the most likely token; the same as --temp 0",
                              .kind = Kind::toggle,
                              .not_with = "--temp!=0"};
// sampling_args.h makes the flags of the samplers' parameters from the registry.
inline constexpr Flag kLogitBias{
    .names = "--logit-bias",
    .help = "bias of a token's logit, ID:BIAS; -100 or less bans the token; may be given more than once",
    .kind = Kind::texts};
inline constexpr Flag kSamplers{.names = "--samplers",
                                .help = "samplers to run, in this order: a;b;c",
                                .kind = Kind::names,
                                .unit = "a sampler",
                                .choices = sampler_choices};
inline constexpr Flag kSeed{.names = "--seed",
                            .help = "seed of the random numbers; by default a new one each time, shown by --stats",
                            .kind = Kind::seed};
inline constexpr Flag kStop{
    .names = "--stop", .help = "text before which the output ends; may be given more than once", .kind = Kind::texts};

// ---- output -------------------------------------------------------------------------------------------------------

inline constexpr Flag kJson{.names = "--json", .help = "one JSON object on stdout", .kind = Kind::toggle};
inline constexpr Flag kStats{.names = "--stats",
                             .help = "statistics of time and memory on stderr; --json always has them",
                             .kind = Kind::toggle};
inline constexpr Flag kReceipt{
    .names = "--receipt", .help = "128-bit hash over every logit computed; --json always has it", .kind = Kind::toggle};

// ---- chat ---------------------------------------------------------------------------------------------------------

inline constexpr Flag kAnswerTokens{.names = "-n,--predict",
                                    .help = "maximum number of tokens of an answer; -1: until its end",
                                    .kind = Kind::integer,
                                    .low = 1,
                                    .high = kMost,
                                    .also = -1,
                                    .unit = "tokens"};
inline constexpr Flag kSystem{.names = "--system",
                              .help = "system message; with plain turns, the text before the first one",
                              .may_be_empty = true};
inline constexpr Flag kUser{.names = "--user",
                            .help = "beginning of your turns, for plain turns",
                            .not_with = "--chat-template",
                            .may_be_empty = true};
inline constexpr Flag kAssistant{.names = "--assistant",
                                 .help = "beginning of answers, for plain turns",
                                 .not_with = "--chat-template",
                                 .may_be_empty = true};
inline constexpr Flag kImage{
    .names = "--image", .help = "image; always refused: Kvasir runs text only", .kind = Kind::texts};
inline constexpr Flag kRunChat{
    .names = "--chat",
    .help = "treat the prompt as a user's message and render it with the model's chat template",
    .kind = Kind::toggle,
    .not_with = "--ids --prompts"};
inline constexpr Flag kChatFormat{.names = "--chat-format",
                                  .help = "how messages become a prompt; auto: by the model's chat template",
                                  .kind = Kind::name,
                                  .unit = "a chat format",
                                  .choices = chat_format_choices};
inline constexpr Flag kTemplateDate{.names = "--template-date",
                                    .help = "date that templates write, as 2026-12-31; today by default"};
inline constexpr Flag kHfSpecialTokens{
    .names = "--hf-special-tokens",
    .help = "recognise control tokens in messages too, as transformers does; by default they stay text",
    .kind = Kind::toggle};
inline constexpr Flag kChatTemplate{.names = "--chat-template",
                                    .help = "Jinja file to use instead of the model's own chat template",
                                    .kind = Kind::input,
                                    .not_with = "--chat-format=plain"};

// ---- logits, embed ------------------------------------------------------------------------------------------------

inline constexpr Flag kLogitsOut{.names = "--out,-o",
                                 .help = ".npy file to write the logits to, float32 [tokens, vocabulary]",
                                 .kind = Kind::output};
inline constexpr Flag kTop{.names = "--top",
                           .help = "number of most likely next tokens to show",
                           .kind = Kind::integer,
                           .low = 1,
                           .high = kMost,
                           .unit = "tokens",
                           .not_with = "--out"};
inline constexpr Flag kPooling{.names = "--pooling",
                               .help = "mean of the states of all positions, or the last one's state",
                               .kind = Kind::name,
                               .unit = "a pooling",
                               .choices = pooling_choices};
inline constexpr Flag kVectorOut{
    .names = "--out,-o", .help = ".npy file to write the vector to, float32 [hidden]", .kind = Kind::output};

// ---- perplexity, drift --------------------------------------------------------------------------------------------

inline constexpr Flag kTextFile{
    .names = "-f,--file", .help = "text file; -: stdin", .kind = Kind::text_file, .required = true};
inline constexpr Flag kChunks{.names = "--chunks",
                              .help = "number of windows to score, from the start; 0: all",
                              .kind = Kind::integer,
                              .high = kMost,
                              .unit = "windows"};
inline constexpr Flag kDriftTypes{.names = "--types",
                                  .help = "KV types to compare with f32, separated by commas; all by default",
                                  .kind = Kind::names,
                                  .unit = "a KV type",
                                  .choices = kv_type_choices,
                                  .known = is_kv_type};
inline constexpr Flag kCsv{.names = "--csv", .help = "CSV file to write the table to as well", .kind = Kind::output};
inline constexpr Flag kSvg{
    .names = "--svg", .help = "SVG file for a plot of every type's mean KL, drawn by gnuplot", .kind = Kind::output};

// ---- verify -------------------------------------------------------------------------------------------------------

inline constexpr Flag kVerifyPrompts{
    .names = "--prompts",
    .help = "file with one prompt per line; by default the one that ships with Kvasir; -: stdin",
    .kind = Kind::text_file};
inline constexpr Flag kCount{.names = "--count",
                             .help = "maximum number of its prompts to use",
                             .kind = Kind::integer,
                             .low = 1,
                             .high = kMost,
                             .unit = "prompts"};
inline constexpr Flag kVerifyTokens{.names = "-n,--predict",
                                    .help = "number of tokens generated after each prompt",
                                    .kind = Kind::integer,
                                    .low = 1,
                                    .high = kMost,
                                    .unit = "tokens"};
inline constexpr Flag kOnlyCache{.names = "--cache",
                                 .help = "the only layout to check; all by default",
                                 .kind = Kind::name,
                                 .unit = "a cache layout",
                                 .choices = layout_choices};
inline constexpr Flag kChunkList{.names = "--chunks",
                                 .help = "prefill chunks in tokens: 1,7,0; 0: whole prompts",
                                 .kind = Kind::integers,
                                 .high = kMost,
                                 .unit = "tokens"};
inline constexpr Flag kBatchList{.names = "--batches",
                                 .help = "numbers of sequences in one pass: 1,4",
                                 .kind = Kind::integers,
                                 .low = 1,
                                 .high = kMost,
                                 .unit = "sequences"};
inline constexpr Flag kCases{.names = "--cases",
                             .help = "a row for every case instead of one per kind; --json always has them",
                             .kind = Kind::toggle};

// ---- bench --------------------------------------------------------------------------------------------------------

inline constexpr Flag kBenchPrompt{.names = "-p,--prompt",
                                   .help = "number of tokens in the prefill test; 0: no such test",
                                   .kind = Kind::integer,
                                   .high = kMost,
                                   .unit = "tokens",
                                   .not_with = "--limits --prefix --serve"};
inline constexpr Flag kBenchGenerate{.names = "-n,--predict",
                                     .help = "number of tokens in the decode test; 0: no such test",
                                     .kind = Kind::integer,
                                     .high = kMost,
                                     .unit = "tokens",
                                     .not_with = "--limits --prefix --serve"};
inline constexpr Flag kDepth{.names = "--depth,-d",
                             .help = "number of positions filled before each test",
                             .kind = Kind::integer,
                             .high = kMost,
                             .unit = "positions",
                             .not_with = "--limits --prefix --serve"};
inline constexpr Flag kBenchBatch{.names = "--batch,-b",
                                  .help = "number of sequences in every step; tok/s counts all of them",
                                  .kind = Kind::integer,
                                  .low = 1,
                                  .high = kMostAtOnce,
                                  .unit = "sequences",
                                  .not_with = "--limits --prefix --serve"};
inline constexpr Flag kRepeats{.names = "--repeats,-r",
                               .help = "number of measurements of each test",
                               .kind = Kind::integer,
                               .low = 1,
                               .high = kMost,
                               .unit = "repeats",
                               .not_with = "--limits --serve"};
inline constexpr Flag kPlot{
    .names = "--plot",
    .help = "folder to write SVG and CSV to; measures step by step too, with the last thread count",
    .not_with = "--limits --serve"};
inline constexpr Flag kPrefix{
    .names = "--prefix",
    .help = "prefix length in tokens: measure instead how much time reusing such a prefix saves, with one thread count",
    .kind = Kind::integer,
    .low = 1,
    .high = kMost,
    .unit = "tokens",
    .not_with = "--limits --serve"};
inline constexpr Flag kServe{
    .names = "--serve",
    .help = "trace of requests (docs/formats/trace.md) to replay instead through the scheduler, with one thread count",
    .kind = Kind::input,
    .not_with = "--limits"};
inline constexpr Flag kUrl{
    .names = "--url",
    .help = "server with OpenAI's API to replay the trace of --serve against, http://HOST:PORT; no model is opened",
    .not_with =
        "MODEL --weights --ram --kv-ram --threads --cache --ctx --ctk --ctv --kv-type --max-sequences --step-ms "
        "--draft",
    .needs = "--serve"};
inline constexpr Flag kServedModel{
    .names = "--served-model",
    .help = "name of the model on the server of --url; by default the first that it lists",
    .needs = "--url"};
inline constexpr Flag kVocab{.names = "--n-vocab",
                             .help = "number of token ids of that server's model; 0: as the server reports",
                             .kind = Kind::integer,
                             .high = kMost,
                             .unit = "ids",
                             .needs = "--url"};
inline constexpr Flag kMaxSequences{.names = "--max-sequences",
                                    .help = "maximum number of sequences in one pass, with --serve",
                                    .kind = Kind::integer,
                                    .low = 1,
                                    .high = kMostAtOnce,
                                    .unit = "sequences",
                                    .needs = "--serve"};
inline constexpr Flag kDraft{.names = "--draft",
                             .help = "small model with the same vocabulary that drafts tokens, with --serve",
                             .not_with = "--ram",
                             .needs = "--serve"};
inline constexpr Flag kDraftTokens{.names = "--draft-tokens",
                                   .help = "number of tokens that the draft model drafts per pass",
                                   .kind = Kind::integer,
                                   .low = 1,
                                   .high = 64,
                                   .unit = "tokens",
                                   .needs = "--draft"};
inline constexpr Flag kStepMs{
    .names = "--step-ms",
    .help = "target time of a pass in milliseconds while any sequence decodes, with --serve; 0: no limit",
    .kind = Kind::real,
    .high = 1e6,
    .unit = "milliseconds",
    .needs = "--serve"};
inline constexpr Flag kLimits{.names = "--limits",
                              .help = "measure only the limits of this machine; no model is opened",
                              .kind = Kind::toggle,
                              .not_with =
                                  "MODEL --weights --ram --kv-ram --cache --ctx --ctk --ctv "
                                  "--kv-type"};
inline constexpr Flag kBenchTokenizer{.names = "--tokenizer",
                                      .help = "tokenizer file, if it is not beside the model, with --prefix",
                                      .kind = Kind::input,
                                      .needs = "--prefix"};

// ---- plan ---------------------------------------------------------------------------------------------------------

inline constexpr Flag kPlanModel{.names = "MODEL,-m,--model", .help = "model, or a bare config.json"};
inline constexpr Flag kChat{.names = "--chat",
                            .help = "number of positions that a sequence uses; 0: all of --ctx",
                            .kind = Kind::integer,
                            .high = kMost,
                            .unit = "positions"};
inline constexpr Flag kPlanDtype{.names = "--dtype",
                                 .help = "weight type, for a bare config.json",
                                 .kind = Kind::name,
                                 .unit = "a weight type",
                                 .choices = weight_type_choices,
                                 .known = is_weight_type};
inline constexpr Flag kPlanRam{.names = "--ram",
                               .help = "memory budget of the whole run: 512M, 8G, auto; shows what fits, and how",
                               .kind = Kind::memory};
inline constexpr Flag kPlanKvRam{
    .names = "--kv-ram", .help = "memory budget of the KV cache alone", .kind = Kind::size};
inline constexpr Flag kPlanThreads{
    .names = "--threads,-t",
    .help = "number of threads of the run and of the memory measurement; 0: one per core that this process may use",
    .kind = Kind::integer,
    .high = ThreadPool::kMaxThreads,
    .unit = "threads"};
inline constexpr Flag kExplain{.names = "--explain", .help = "show how the bytes are calculated", .kind = Kind::toggle};

// ---- quantize, synth ----------------------------------------------------------------------------------------------

inline constexpr Flag kQuantizeModel{
    .names = "MODEL",
    .help = "model: a Hugging Face folder, a .gguf or llama2.c .bin of floats, or a model that ships with Kvasir",
    .required = true};
inline constexpr Flag kQuantizeOut{.names = "OUT", .help = "GGUF file to write", .required = true};
inline constexpr Flag kQuantizeType{.names = "--type",
                                    .help = "weight type of the file",
                                    .kind = Kind::name,
                                    .unit = "a weight type to write",
                                    .choices = quantize_type_choices,
                                    .required = true};
inline constexpr Flag kImportance{
    .names = "--imatrix", .help = "file of imatrix or llama-imatrix: which errors matter", .kind = Kind::input};
inline constexpr Flag kTensorTypes{
    .names = "--keep",
    .help = "NAME=TYPE: the type of a tensor, or of every layer's of that kind (attn_v); may be given more than once",
    .kind = Kind::texts};
inline constexpr Flag kImatrixModel{.names = "MODEL", .help = "GGUF file of the model", .required = true};
inline constexpr Flag kImatrixOut{.names = "--out,-o", .help = "GGUF file to write", .kind = Kind::output};
inline constexpr Flag kNoTokenizer{.names = "--no-tokenizer",
                                   .help = "write no tokenizer: only token ids will work",
                                   .kind = Kind::toggle,
                                   .not_with = "--tokenizer"};
inline constexpr Flag kForceFile{.names = "--force", .help = "replace OUT if it exists", .kind = Kind::toggle};
inline constexpr Flag kShape{.names = "SHAPE", .help = "name of a shape, or a config.json", .required = true};
inline constexpr Flag kSynthOut{.names = "OUT", .help = "Hugging Face folder to write", .required = true};
inline constexpr Flag kSynthDtype{.names = "--dtype",
                                  .help = "weight type of the folder",
                                  .kind = Kind::name,
                                  .unit = "a weight type to write",
                                  .choices = synth_type_choices};
inline constexpr Flag kSynthSeed{.names = "--seed",
                                 .help = "seed of the weights; the same seed gives the same file on every machine",
                                 .kind = Kind::seed};
inline constexpr Flag kForceFolder{
    .names = "--force", .help = "replace a folder that an earlier synth wrote", .kind = Kind::toggle};

// ---- pull, rm -----------------------------------------------------------------------------------------------------
inline constexpr Flag kPullModel{.names = "NAME",
                                 .help = "OWNER/NAME, OWNER/NAME:Q4_K_M (a type of its GGUF files) or OWNER/NAME:FILE",
                                 .required = true};
inline constexpr Flag kEndpoint{.names = "--endpoint",
                                .help = "address of the hub; by default HF_ENDPOINT, or https://huggingface.co"};
inline constexpr Flag kConnections{.names = "--connections",
                                   .help = "number of ranges of a file that are downloaded at the same time",
                                   .kind = Kind::integer,
                                   .low = 1,
                                   .high = 16,
                                   .unit = "connections"};
inline constexpr Flag kTimeout{.names = "--timeout",
                               .help = "seconds without a byte after which a connection is given up",
                               .kind = Kind::real,
                               .low = 1,
                               .high = 1e6,
                               .unit = "seconds"};

// ---- tokenize, inspect --------------------------------------------------------------------------------------------

inline constexpr Flag kTokenizeModel{.names = "MODEL,-m,--model",
                                     .help = "model, or a tokenizer.json, tokenizer.model or .gguf"};
inline constexpr Flag kText{.names = "TEXT",
                            .help = "text to tokenize",
                            .not_with = "--stdin --ids",
                            .or_else = "--stdin --ids",
                            .may_be_empty = true};
inline constexpr Flag kStdin{
    .names = "--stdin", .help = "read the text from stdin", .kind = Kind::toggle, .not_with = "--ids"};
inline constexpr Flag kNoBos{
    .names = "--no-bos", .help = "leave out the token that begins a text", .kind = Kind::toggle, .not_with = "--ids"};
inline constexpr Flag kDecodeIds{.names = "--ids",
                                 .help = "token ids to decode to text instead: 1,2,3",
                                 .kind = Kind::integers,
                                 .high = kMost,
                                 .unit = "is not a token id"};
inline constexpr Flag kChatFile{
    .names = "CHAT",
    .help = "[MODEL] CHAT.json: a conversation, and the model; with --chat-template the model may be left out",
    .kind = Kind::texts,
    .required = true};
inline constexpr Flag kTwoChatFiles{
    .names = "CHATS",
    .help = "[MODEL] A.json B.json: two requests, and the model; with --chat-template the model may be left out",
    .kind = Kind::texts,
    .required = true};
inline constexpr Flag kAdapt{.names = "--adapt",
                             .help = "adapt the conversation to the form that templates expect, as the server does",
                             .kind = Kind::toggle};
inline constexpr Flag kInspectModel{.names = "MODEL,-m,--model", .help = "model, or a .safetensors file"};

}  // namespace flag
}  // namespace kvasir::cli

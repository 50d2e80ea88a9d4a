// kvasir serve: turns flags into the options of the server, which is in src/serve.
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

#include "base/system.h"
#include "cli/cli.h"
#include "cli/flag_list_serve.h"
#include "cli/parameter_names.h"
#include "cli/printable.h"
#include "cli/template_args.h"
#include "serve/server.h"

namespace kvasir::cli {
namespace {

struct Args {
  ModelArgs model;
  EngineArgs engine;
  SchedulerOptions scheduler;
  serve::ServerOptions server;
  std::vector<std::string> models, aliases;
  std::string chat_format = "auto", metrics_names = "kvasir", api_keys, draft;
  int port = 8080, max_connections = 1024, queue_tokens = 1 << 20;
  TemplateArgs chat_template;
  bool quiet = false, check = false, no_page = false;
};

bool is_loopback(const std::string& host) { return host == "localhost" || host == "::1" || host.starts_with("127."); }

// "models/tales/" to "tales", "a/b.gguf" to "b".
std::string name_of(const std::string& model) {
  std::filesystem::path path(model);
  if (!path.has_filename()) path = path.parent_path();
  const std::string extension = path.extension();
  return extension == ".gguf" || extension == ".bin" ? path.stem() : path.filename();
}

Result<std::vector<serve::ServiceOptions::Model>> models_of(const Args& a) {
  // A server keeps prefixes for later requests by default.
  EngineOptions engine = a.engine.engine;
  if (engine.prefix_ram == 0) engine.prefix_ram = std::min<size_t>(size_t{1} << 30, available_memory_bytes() / 4);
  const std::vector<std::string> paths = a.models.empty() ? std::vector<std::string>{"tales"} : a.models;
  engine.prefix_ram /= paths.size();
  if (a.aliases.size() > paths.size())
    return fail(Error::bad_argument, fmt::format("{} names for {} models", a.aliases.size(), paths.size()), "--alias",
                "one for each model");
  std::vector<serve::ServiceOptions::Model> models;
  for (size_t i = 0; i < paths.size(); ++i) {
    serve::HostOptions host{.model = paths[i], .open = a.model.options, .engine = engine, .scheduler = a.scheduler};
    host.scheduler.session = a.engine.session;
    host.chat_format = a.chat_format;
    host.chat_template = a.chat_template.file;
    KVASIR_TRY(host.chat, a.chat_template.options());
    KVASIR_TRY(host.open.weights, parse_weights_mode(a.model.weights));
    host.open.ram /= paths.size();
    host.open.kv_ram /= paths.size();
    std::string name = i < a.aliases.size() ? a.aliases[i] : name_of(paths[i]);
    for (const auto& other : models)
      if (other.name == name)
        return fail(Error::bad_argument, fmt::format("two models are called \"{}\"", name), "--alias", "other names");
    models.push_back({.name = std::move(name), .host = std::move(host)});
  }
  return models;
}

Result<serve::ServerOptions> server_options(const Args& a) {
  serve::ServerOptions o = a.server;
  o.http.port = static_cast<uint16_t>(a.port);
  o.http.limits.connections = a.max_connections;
  KVASIR_TRY(o.service.models, models_of(a));
  for (auto& model : o.service.models) {
    model.host.scheduler.max_queue_tokens = a.queue_tokens;
    if (a.draft.empty()) continue;
    KVASIR_TRY(model.host.scheduler.draft, Model::open(a.draft));
  }
  if (!a.api_keys.empty()) {
    KVASIR_TRY(o.service.keys, serve::Keys::read(a.api_keys));
  }
  o.service.page = !a.no_page;
  o.service.vllm_names = a.metrics_names == "vllm";
  o.service.local_only = is_loopback(o.http.host);
  if (!a.quiet) o.service.log = [](const std::string& line) { fmt::print(stderr, "{}\n", printable(line)); };
  return o;
}

std::string url(const std::string& host, uint16_t port) {
  const std::string shown = host.find(':') == host.npos ? host : "[" + host + "]";
  return fmt::format("http://{}:{}", shown, port);
}

Json described(const serve::ServerOptions& o, const Args& a) {
  Json models = Json::array();
  for (const auto& m : o.service.models) {
    const SessionOptions& s = m.host.scheduler.session;
    models.push_back({{"name", m.name},
                      {"path", m.host.model},
                      {"ram", m.host.open.ram},
                      {"kv_ram", m.host.open.kv_ram},
                      {"prefix_ram", m.host.engine.prefix_ram},
                      {"threads", m.host.engine.threads},
                      {"prefill_chunk", m.host.engine.prefill_chunk},
                      {"layout", s.layout},
                      {"ctx", s.ctx},
                      {"kv_type_k", s.kv_type_k},
                      {"kv_type_v", s.kv_type_v},
                      {"window", s.window},
                      {"sinks", s.sinks ? Json(*s.sinks) : Json()},
                      {"weights", a.model.weights},
                      {"tokenizer", m.host.open.tokenizer},
                      {"max_sequences", m.host.scheduler.max_sequences},
                      {"step_ms", m.host.scheduler.step_ms},
                      {"queue", m.host.scheduler.max_queue},
                      {"queue_tokens", m.host.scheduler.max_queue_tokens},
                      {"draft", a.draft},
                      {"draft_tokens", m.host.scheduler.draft_tokens}});
  }
  Json cors = Json::array();
  for (const std::string& origin : o.service.cors) cors.push_back(origin);
  return {{"models", models},
          {"host", o.http.host},
          {"port", a.port},
          {"chat_format", a.chat_format},
          {"chat_template", a.chat_template.file},
          {"metrics_names", a.metrics_names},
          {"keys", o.service.keys.required()},
          {"shared_cache", o.service.shared_cache},
          {"cors", cors},
          {"page", o.service.page},
          {"strict_model", o.service.strict_model},
          {"strict_fields", o.service.strict_fields},
          {"model_ttl_s", o.service.model_ttl_s},
          {"max_output", o.service.max_output},
          {"max_body", o.http.limits.body_bytes},
          {"max_connections", o.http.limits.connections},
          {"write_timeout_s", o.http.limits.write_s},
          {"drain_timeout_s", o.drain_s},
          {"quiet", a.quiet}};
}

Result<int> run(const Args& a) {
  KVASIR_TRY(serve::ServerOptions o, server_options(a));
  if (!is_loopback(o.http.host) && !o.service.keys.required())
    fmt::print(stderr, "kvasir: anybody who reaches {} may use this server (try: --api-key-file FILE)\n", o.http.host);
  if (a.check) {
    KVASIR_CHECK(serve::check(o));
    print_json(described(o, a));
    return kOk;
  }
  o.on_ready = [host = o.http.host, name = o.service.models[0].name](uint16_t port, const Model& model, int ctx) {
    print_note(model.info().ignored);
    fmt::print("{} at {}, {} positions; Ctrl-C ends\n", name, url(host, port), ctx);
    std::fflush(stdout);
  };
  KVASIR_CHECK(serve::serve(std::move(o)));
  return kOk;
}

void add_models(Flags& flags, Args& a) {
  a.engine.session.layout = "paged";
  flags.bind(flag::kServeModels, &a.models);
  flags.bind(flag::kAlias, &a.aliases);
  flags.bind(flag::kModelTtl, &a.server.service.model_ttl_s);
  flags.bind(flag::kWeights, &a.model.weights);
  flags.bind(flag::kTokenizer, &a.model.options.tokenizer);
  flags.bind(flag::kRam, &a.model.options.ram);
  flags.bind(flag::kKvRam, &a.model.options.kv_ram);
  flags.bind(flag::kServePrefixRam, &a.engine.engine.prefix_ram);
  a.engine.add(flags);
  add_kv_types(flags, a.engine.session);
}

void add_scheduling(Flags& flags, Args& a) {
  flags.bind(flag::kServeSequences, &a.scheduler.max_sequences);
  flags.bind(flag::kServeStepMs, &a.scheduler.step_ms);
  flags.bind(flag::kServeDraft, &a.draft);
  flags.bind(flag::kDraftTokens, &a.scheduler.draft_tokens);
  flags.bind(flag::kQueue, &a.scheduler.max_queue);
  flags.bind(flag::kQueueTokens, &a.queue_tokens);
  flags.bind(flag::kMaxOutput, &a.server.service.max_output);
}

void add_http(Flags& flags, Args& a) {
  flags.bind(flag::kHost, &a.server.http.host);
  flags.bind(flag::kPort, &a.port);
  flags.bind(flag::kApiKeys, &a.api_keys);
  flags.bind(flag::kSharedCache, &a.server.service.shared_cache);
  flags.bind(flag::kCors, &a.server.service.cors);
  flags.bind(flag::kMaxBody, &a.server.http.limits.body_bytes);
  flags.bind(flag::kMaxConnections, &a.max_connections);
  flags.bind(flag::kWriteTimeout, &a.server.http.limits.write_s);
  flags.bind(flag::kDrainTimeout, &a.server.drain_s);
}

void add(Flags& flags, Run* run_command) {
  auto a = std::make_shared<Args>();
  add_models(flags, *a);
  add_http(flags, *a);
  flags.bind(flag::kChatFormat, &a->chat_format);
  a->chat_template.add(flags);
  flags.bind(flag::kNoPage, &a->no_page);
  flags.bind(flag::kStrictModel, &a->server.service.strict_model);
  flags.bind(flag::kStrictFields, &a->server.service.strict_fields);
  add_scheduling(flags, *a);
  flags.bind(flag::kMetricsNames, &a->metrics_names);
  flags.bind(flag::kQuiet, &a->quiet);
  flags.bind(flag::kCheck, &a->check);
  flags.footer(
      "Examples:\n  kvasir serve tales --chat-format plain\n"
      "  kvasir serve smollm2.gguf --kv-type f16 --prefix-ram 1G --port 8000\n"
      "  kvasir serve a.gguf b.gguf --alias small --alias large --ram 8G --model-ttl 600\n"
      "  kvasir serve smollm2.gguf --host 0.0.0.0 --api-key-file keys.txt");
  *run_command = [a] { return run(*a); };
}

}  // namespace

extern const Command cmd_serve;
const Command cmd_serve{"serve", "serve models over HTTP, with OpenAI's API", add};

}  // namespace kvasir::cli

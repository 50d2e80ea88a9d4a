// Walks over every flag of every command, as the program itself declares them: a bad value is refused in one line that
// names the flag, and a good value changes the output.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "lab/synth.h"
#include "tests/support/program.h"

namespace kvasir::e2e {
namespace {

using Arguments = std::vector<std::string>;
using Json = nlohmann::json;

const Json& declarations() {
  static const Json all = Json::parse(expect_ok(run_program({"--flags"})));
  return all["commands"];
}

bool is_place(const std::string& name) { return !name.starts_with('-'); }

std::string shown_name(const Json& flag) { return flag["names"][0]; }

// ---- a command line that is good ----------------------------------------------------------------------------------

// Positional arguments in order, and flags, each with its value.
struct Line {
  std::vector<std::pair<std::string, std::string>> places, flags;

  void set(const Json& flag, const std::string& value) {
    for (auto* among : {&places, &flags})
      for (auto& [known, old] : *among)
        if (known == shown_name(flag)) {
          old = value;
          return;
        }
    (is_place(flag["names"].back()) ? places : flags).emplace_back(shown_name(flag), value);
  }
  void drop(const std::string& name) {
    std::erase_if(flags, [&](const auto& f) { return f.first == name; });
    std::erase_if(places, [&](const auto& f) { return f.first == name && f.second == "tales"; });
  }
};

Arguments arguments_of(const std::string& command, const Line& line) {
  Arguments out{command};
  for (const auto& [name, value] : line.places) out.push_back(value);
  for (const auto& [name, value] : line.flags) {
    out.push_back(name == "MODEL" ? "--model" : name);
    if (value != "\n") out.push_back(value);  // "\n": a toggle
  }
  return out;
}

constexpr const char* kPrompt = "Once upon a time there was a fox who lived in a wood";

class SlowE2eFlags : public testing::Test {
 protected:
  void SetUp() override {
    put(text(), slurp(KVASIR_SOURCE_DIR "/models/prompts.txt"));
    put(folder_ / "keys.txt", "ann key-1\n");
    put(folder_ / "chat.json", R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]})");
    put(folder_ / "other.json", R"({"messages": [{"role": "user", "content": "b"}]})");
    put(folder_ / "empty.json", R"({"messages": [{"role": "user", "content": ""}]})");
    put(folder_ / "chat.jinja", "{{ strftime_now('%Y%m%d') }}{{ messages[0].content }}");
    put(folder_ / "open.jinja", "<{{ messages[0].content }}");
    put(folder_ / "other.jinja", "<{{ messages[0].content }}>");
    put(folder_ / "config.json", R"({"model_type": "llama", "vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 48, "max_position_embeddings": 256,
        "rms_norm_eps": 1e-5})");
    const auto made = synthesize({.shape = "tiny", .out = folder_ / "tiny", .dtype = "f32", .seed = 3});
    ASSERT_TRUE(made) << made.error().message();
    run_program({"run", "tales", "-p", "Once", "-n", "1", "--save-cache", path("saved.kv")});
    run_program({"quantize", "tales", path("tales.gguf"), "--type", "f16"});
    run_program({"quantize", "tales-gpt2", path("tales-gpt2.gguf"), "--type", "f16"});
    run_program({"imatrix", path("tales.gguf"), "-f", text(), "--ctx", "16", "--chunks", "1", "-o",
                 path("tales-imatrix.gguf")});
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string text() const { return path("text.txt"); }

  // The minimal valid line of each command that gives output.
  Line line_of(const std::string& command) const {
    const std::string toggle = "\n";
    const std::vector<std::pair<std::string, std::string>> tales{{"MODEL", "tales"}};
    if (command == "run") return {tales, {{"-p", kPrompt}, {"-n", "12"}, {"--seed", "1"}, {"--json", toggle}}};
    if (command == "chat") return {tales, {{"-n", "12"}, {"--seed", "1"}}};
    if (command == "logits" || command == "embed") return {tales, {{"-p", kPrompt}, {"--json", toggle}}};
    if (command == "perplexity" || command == "drift") {
      Line line{tales, {{"-f", text()}, {"--ctx", "16"}, {"--chunks", "1"}, {"--json", toggle}}};
      if (command == "drift") line.flags.emplace_back("--types", "f16");
      return line;
    }
    if (command == "verify")
      return {tales,
              {{"--count", "1"},
               {"-n", "1"},
               {"--threads", "1"},
               {"--chunks", "0"},
               {"--batches", "1"},
               {"--cache", "grow"},
               {"--json", toggle}}};
    if (command == "bench")
      return {tales, {{"-p", "8"}, {"-n", "0"}, {"--repeats", "1"}, {"--threads", "1"}, {"--json", toggle}}};
    if (command == "plan" || command == "inspect") return {tales, {{"--json", toggle}}};
    if (command == "quantize")
      return {{{"MODEL", path("tiny")}, {"OUT", path("out.gguf")}}, {{"--type", "f16"}, {"--json", toggle}}};
    if (command == "imatrix")
      return {{{"MODEL", path("tales.gguf")}},
              {{"-f", text()}, {"--ctx", "16"}, {"--out", path("out.gguf")}, {"--json", toggle}}};
    if (command == "synth") return {{{"SHAPE", "tiny"}, {"OUT", path("out")}}, {{"--json", toggle}}};
    if (command == "serve") return {tales, {{"--port", "0"}, {"--check", toggle}}};
    if (command == "template")
      return {{{"CHAT", path("chat.json")}}, {{"--chat-template", path("chat.jinja")}, {"--json", toggle}}};
    if (command == "explain-cache")
      return {{{"CHATS", path("empty.json")}, {"CHATS", path("chat.json")}},
              {{"--chat-template", path("chat.jinja")}, {"--json", toggle}}};
    if (command == "tokenize") return {{{"MODEL", "tales"}, {"TEXT", "Once upon"}}, {{"--json", toggle}}};
    if (command == "pull")  // no server is there; tests/hub has a hub
      return {{{"NAME", "nobody/nothing"}}, {{"--endpoint", "http://127.0.0.1:1"}, {"--json", toggle}}};
    if (command == "list") return {{}, {{"--json", toggle}}};
    if (command == "rm") return {{{"NAME", "nobody/nothing"}}, {{"--json", toggle}}};
    ADD_FAILURE() << "a command that this test does not know: " << command;
    return {};
  }

  Outcome outcome_of(const std::string& command, const Line& line) const {
    fs::remove_all(folder_ / "out.gguf");
    fs::remove_all(folder_ / "out");
    How how;
    how.input = command == "chat" ? "The dog ran.\n/stats\n" : "Once upon a time there was\n";
    return run_program(arguments_of(command, line), how);
  }

  void expect_bad(const std::string& command, const Json& flag, const std::string& value) {
    Line line = line_of(command);
    line.set(flag, value);
    const Outcome outcome = outcome_of(command, line);
    expect_refused(outcome, shown_name(flag));
    EXPECT_EQ(outcome.err.find("Could not"), std::string::npos) << outcome.err;
    ++tried_;
  }

  TempFolder folder_;
  int tried_ = 0;
};

// ---- what is refused ----------------------------------------------------------------------------------------------

const char* const kNoNumbers[] = {"nan", "inf", "-inf", "x", "12x", "0x10", " 1", "1 ", "+1", "--json", "1;2"};

std::vector<std::string> bad_integers(const Json& flag) {
  std::vector<std::string> bad(std::begin(kNoNumbers), std::end(kNoNumbers));
  bad.insert(bad.end(), {"-7", "2147483648", "9223372036854775808", "12345678901234567890123", "1e3", "1.5"});
  const auto low = flag["low"].get<int64_t>(), high = flag["high"].get<int64_t>();
  for (const int64_t value : {low - 1, high + 1})
    if (!flag.contains("also") || flag["also"] != value) bad.push_back(std::to_string(value));
  return bad;
}

std::vector<std::string> bad_values(const Json& flag) {
  const std::string kind = flag["kind"];
  std::vector<std::string> bad;
  if (kind == "integer" || kind == "integers") bad = bad_integers(flag);
  if (kind == "integers") bad.insert(bad.end(), {"1,,2", ",", "1,", ",1", "1, 2", "1,x"});
  if (kind == "real") {
    bad.assign(std::begin(kNoNumbers), std::end(kNoNumbers));
    bad.insert(bad.end(), {"1e400", "1,5", std::to_string(flag["low"].get<double>() - 1),
                           std::to_string(flag["high"].get<double>() * 2)});
  }
  if (kind == "seed") {
    bad.assign(std::begin(kNoNumbers), std::end(kNoNumbers));
    bad.insert(bad.end(), {"-1", "18446744073709551616", "12345678901234567890123", "1.5"});
  }
  if (kind == "size" || kind == "memory")
    bad = {"0", "-1", "nan", "inf", "x", "12x", "M", "1T", "0x10", "1 G", " 1G", "1e400", "99999999999G", "-1G"};
  if (kind == "size") bad.emplace_back("auto");
  if (kind == "name") bad = {"nosuch", "F-32", " f16", "f16,f16", "-"};
  if (kind == "names") bad = {"nosuch", "f16,", ",f16", ",", "f16,,q8_0", "f16, q8_0"};
  if (kind == "input" || kind == "text_file") bad = {"/nonexistent/file", "."};
  if (kind == "output") bad = {"/nonexistent/folder/file", "."};
  if (!flag["may_be_empty"]) bad.emplace_back("");
  return bad;
}

TEST_F(SlowE2eFlags, WhatAFlagDoesNotTakeIsRefusedByItsName) {
  EXPECT_GE(declarations().size(), 13u);
  std::set<std::string>
      known;  // declarations of earlier commands too: for a repeated one, a few values show that it is bound
  for (const Json& command : declarations())
    for (const Json& flag : command["flags"]) {
      if (flag["kind"] == "toggle") continue;
      std::vector<std::string> bad = bad_values(flag);
      Json declared = flag;
      declared.erase("default");
      if (!known.insert(declared.dump()).second && bad.size() > 2) bad.erase(bad.begin() + 1, bad.end() - 1);
      for (const std::string& value : bad) expect_bad(command["name"], flag, value);
    }
  EXPECT_GT(tried_, 700);
}

TEST_F(SlowE2eFlags, AToggleTakesNoValueAndOthersNeedOne) {
  for (const Json& command : declarations())
    for (const Json& flag : command["flags"]) {
      const std::string name = flag["names"].back();
      if (is_place(name)) continue;
      Line line = line_of(command["name"]);
      line.drop(shown_name(flag));
      Arguments arguments = arguments_of(command["name"], line);
      arguments.push_back(flag["kind"] == "toggle" ? name + "=1" : name);
      expect_refused(run_program(arguments), shown_name(flag));
    }
}

// ---- what is taken ------------------------------------------------------------------------------------------------

enum class Shows {
  differs,  // the output differs
  refused,  // the value makes the run impossible, which shows that it is used
  nothing,  // no difference: the flag promises none, or only a file or a speed shows it
};

struct Good {
  const char* value;
  Shows shows = Shows::differs;
  Arguments with = {};     // further flags that it needs
  Arguments without = {};  // flags of the usual line that exclude it
};

// The key is "command flag", or "flag" for every command that has it. "\n" stands for a toggle.
std::map<std::string, Good> good_values(const std::string& text, const std::string& folder) {
  static std::vector<std::string> kept;
  const auto keep = [](std::string value) { return kept.emplace_back(std::move(value)).c_str(); };
  kept.reserve(100);
  const std::string tokenizer = KVASIR_SOURCE_DIR "/models/tales/tokenizer.json";
  const char* const trace = keep(folder + "/trace.jsonl");
  const char* const kNobody = "http://127.0.0.1:1";
  const Arguments kOwnModel = {"-p", "-n", "--repeats", "--threads", "MODEL"};
  put(trace, R"({"name": "a", "prompt": [{"tokens": 9, "salt": 1}], "max_tokens": 8})"
             "\n");
  return {
      {"MODEL", {"tales-gpt2"}},
      {"bench MODEL", {"tales-gpt2", Shows::nothing}},  // only speeds
      {"quantize MODEL", {"tales"}},
      {"quantize OUT", {keep(folder + "/other.gguf")}},
      {"synth OUT", {keep(folder + "/other")}},
      {"synth SHAPE", {"tiny-gpt2"}},
      {"tokenize MODEL", {keep(folder + "/tiny")}},
      {"tokenize TEXT", {"Another text"}},
      {"--weights", {"streamed", Shows::nothing}},  // the bits are the same
      {"run --weights", {"streamed"}},
      {"--ram", {"1M", Shows::refused}},
      {"plan --ram", {"100M"}},
      {"--kv-ram", {"1K", Shows::refused}},
      {"plan --kv-ram", {"1M"}},
      {"--tokenizer", {keep(tokenizer), Shows::nothing}},  // the one it has anyway
      {"quantize --tokenizer", {keep(folder + "/tiny/tokenizer.json"), Shows::nothing}},
      {"bench --tokenizer", {keep(tokenizer), Shows::nothing, {"--prefix", "20"}, {"-p", "-n"}}},
      {"--threads", {"2", Shows::nothing}},  // the bits are the same
      {"run --threads", {"3"}},
      {"verify --threads", {"1,2"}},
      {"bench --threads", {"2"}},
      {"plan --threads", {"3"}},
      {"--prefill-chunk", {"2", Shows::nothing}},  // the bits are the same
      {"plan --prefill-chunk", {"7"}},
      {"--cache", {"dense", Shows::nothing}},  // the bits are the same
      {"run --cache", {"dense"}},
      {"chat --cache", {"dense"}},
      {"verify --cache", {"dense"}},
      {"plan --cache", {"dense"}},
      {"--ctx", {"2", Shows::refused}},
      {"plan --ctx", {"100"}},
      {"perplexity --ctx", {"12"}},
      {"drift --ctx", {"12"}},
      {"chat --ctx", {"100"}},
      {"--ctk", {"q8_0"}},
      {"--ctv", {"q8_0"}},
      {"--kv-type", {"q8_0"}},
      {"bench --ctk", {"q8_0", Shows::nothing}},  // only speeds
      {"bench --ctv", {"q8_0", Shows::nothing}},
      {"bench --kv-type", {"q8_0", Shows::nothing}},
      {"verify --ctk", {"f16"}},
      {"--window", {"2"}},
      {"chat --window", {"5"}},
      {"verify --window", {"5"}},
      {"drift --window", {"5"}},
      {"perplexity --window", {"5"}},
      {"plan --window", {"64", Shows::differs, {"--cache", "windowed"}}},
      {"--sinks", {"1", Shows::differs, {"--window", "2"}}},
      {"plan --sinks", {"1", Shows::differs, {"--window", "64", "--cache", "windowed", "--explain"}}},
      {"verify --sinks", {"1", Shows::nothing, {"--window", "5"}}},
      {"--on-full", {"slide"}},
      {"-p", {"Another beginning"}},
      {"bench -p", {"9"}},
      {"-f", {keep(text), Shows::differs, {}, {"-p"}}},
      {"perplexity -f", {"-", Shows::refused}},  // a text that is too short
      {"drift -f", {"-", Shows::refused}},
      {"--ids", {"5,6,7", Shows::differs, {}, {"-p"}}},
      {"tokenize --ids", {"5,6,7", Shows::differs, {}, {"TEXT"}}},
      {"-n", {"2"}},
      {"verify -n", {"2"}},
      {"bench -n", {"4"}},
      {"--greedy", {"\n"}},
      {"--temp", {"30"}},
      {"--top-k", {"1"}},
      {"--top-p", {"0.0001"}},
      {"--min-p", {"1"}},
      {"--repeat-penalty", {"100"}},
      {"--repeat-last-n", {"0", Shows::differs, {"--repeat-penalty", "100"}}},
      {"--presence-penalty", {"100"}},
      {"--frequency-penalty", {"100"}},
      {"--dry-multiplier", {"100", Shows::differs, {"-n", "100"}, {"-n"}}},
      {"--dry-base", {"100", Shows::nothing, {"--dry-multiplier", "0.1"}}},  // a repeat of that length is rare
      {"--dry-allowed-length", {"1", Shows::differs, {"--dry-multiplier", "100", "-n", "100"}, {"-n"}}},
      {"--dry-penalty-last-n",
       {"0", Shows::differs, {"--dry-multiplier", "100", "--dry-allowed-length", "1", "-n", "100"}, {"-n"}}},
      {"--typical", {"0.01"}},
      {"--xtc-probability", {"1"}},
      {"--xtc-threshold", {"0.01", Shows::differs, {"--xtc-probability", "1"}}},
      {"--logit-bias", {"5:100"}},
      {"--samplers", {"penalties"}},
      {"--seed", {"12345678901234567"}},
      {"--stop", {" "}},
      {"--ignore-eos", {"\n", Shows::nothing}},  // no text ends so soon
      {"--samples", {"2"}},
      {"--prompts", {keep(text), Shows::differs, {}, {"-p"}}},
      {"verify --prompts", {keep(folder + "/two.txt"), Shows::differs, {"--count", "5"}, {"--count"}}},
      {"--batch", {"2", Shows::nothing, {"--prompts", keep(text)}, {"-p"}}},  // the bits are the same
      {"bench --batch", {"2"}},
      {"--prefix-ram", {"16M", Shows::differs, {"--prompts", keep(folder + "/two.txt")}, {"-p"}}},
      {"--save-cache", {keep(folder + "/new.kv"), Shows::nothing}},
      {"--load-cache", {keep(folder + "/saved.kv"), Shows::differs}},
      {"--lookup", {"4", Shows::differs, {"-n", "60", "--greedy"}, {"-n"}}},
      {"--stats", {"\n", Shows::nothing}},    // in the JSON anyway
      {"--receipt", {"\n", Shows::nothing}},  // in the JSON anyway
      {"--json", {"\n"}},
      {"--system", {"A long conversation."}},
      {"run --system",
       {"You are brief.", Shows::differs, {"--chat-template", keep(folder + "/other.jinja"), "--chat"}}},
      {"run --chat", {"\n", Shows::differs, {"--chat-template", keep(folder + "/other.jinja")}}},
      {"run --chat-template", {keep(folder + "/other.jinja"), Shows::differs, {"--chat"}}},
      {"run --template-date",
       {"2026-01-31", Shows::nothing, {"--chat-template", keep(folder + "/other.jinja"), "--chat"}}},
      {"run --hf-special-tokens", {"\n", Shows::nothing, {"--chat-template", keep(folder + "/other.jinja"), "--chat"}}},
      {"template --template-date", {"2026-01-31"}},
      {"template --hf-special-tokens", {"\n"}},
      {"--template-date", {"2026-01-31", Shows::nothing}},
      {"--hf-special-tokens", {"\n", Shows::nothing}},
      {"chat --chat-format", {"plain", Shows::nothing}},  // tales has no template
      {"--image", {"picture.png", Shows::refused}},
      {"--user", {"You say: "}},
      {"--assistant", {""}},
      {"logits --out", {keep(folder + "/l.npy")}},
      {"embed --out", {keep(folder + "/e.npy")}},
      {"--top", {"2"}},
      {"--pooling", {"last"}},
      {"--chunks", {"2"}},
      {"verify --chunks", {"1,0"}},
      {"--types", {"q8_0,f16"}},
      {"--csv", {keep(folder + "/d.csv"), Shows::nothing}},
      {"--svg", {keep(folder + "/d.svg"), Shows::nothing}},
      {"--count", {"2"}},
      {"--batches", {"1,2"}},
      {"--cases", {"\n", Shows::nothing}},  // in the JSON anyway
      {"serve --weights", {"streamed"}},
      {"serve --kv-ram", {"1M"}},
      {"serve --tokenizer", {keep(tokenizer)}},
      {"serve --threads", {"2"}},
      {"serve --prefill-chunk", {"2"}},
      {"serve --cache", {"dense"}},
      {"serve --ctx", {"100"}},
      {"serve --prefix-ram", {"16M"}},
      {"serve --max-sequences", {"3"}},
      {"serve --step-ms", {"7"}},
      {"serve --draft", {"tales"}},
      {"serve --draft-tokens", {"2", Shows::differs, {"--draft", "tales"}}},
      {"--alias", {"a"}},
      {"--model-ttl", {"7"}},
      {"--host", {"localhost"}},
      {"--port", {"39871"}},
      {"--chat-format", {"plain"}},
      {"--queue", {"3"}},
      {"--queue-tokens", {"3"}},
      {"--max-output", {"3"}},
      {"--api-key-file", {keep(folder + "/keys.txt")}},
      {"--shared-cache", {"\n", Shows::differs, {"--api-key-file", keep(folder + "/keys.txt")}}},
      {"--cors", {"http://a.example"}},
      {"--no-page", {"\n"}},
      {"--strict-model", {"\n"}},
      {"--strict-fields", {"\n"}},
      {"--max-body", {"1K"}},
      {"--max-connections", {"3"}},
      {"--write-timeout", {"3"}},
      {"--drain-timeout", {"3"}},
      {"--metrics-names", {"vllm"}},
      {"--quiet", {"\n"}},
      {"--check", {"\n", Shows::nothing}},  // without it, it does not end
      {"--depth", {"4"}},
      {"--repeats", {"2", Shows::nothing}},
      {"bench --cache", {"dense", Shows::nothing}},  // only speeds
      {"--plot", {keep(folder + "/plots"), Shows::nothing, {"--ctx", "32"}}},
      {"--prefix", {"20", Shows::differs, {}, {"-p", "-n"}}},
      {"--serve", {trace, Shows::differs, {}, {"-p", "-n", "--repeats"}}},
      {"--url", {kNobody, Shows::refused, {"--serve", trace}, kOwnModel}},  // tests/e2e/replay_test.cc has a server
      {"--served-model", {"x", Shows::refused, {"--serve", trace, "--url", kNobody}, kOwnModel}},
      {"--n-vocab", {"9", Shows::refused, {"--serve", trace, "--url", kNobody}, kOwnModel}},
      {"--max-sequences", {"1", Shows::nothing, {"--serve", trace}, {"-p", "-n", "--repeats"}}},
      {"--step-ms", {"50", Shows::nothing, {"--serve", trace}, {"-p", "-n", "--repeats"}}},
      {"--draft", {"tales", Shows::differs, {"--serve", trace}, {"-p", "-n", "--repeats"}}},
      {"--draft-tokens", {"2", Shows::nothing, {"--serve", trace, "--draft", "tales"}, {"-p", "-n", "--repeats"}}},
      {"--limits", {"\n", Shows::nothing, {}, {"-p", "-n", "--repeats", "MODEL"}}},  // no model is opened
      {"--chat", {"100"}},
      {"plan --dtype", {"f32", Shows::differs, {"--model", keep(folder + "/config.json")}, {"MODEL"}}},
      {"synth --dtype", {"f32"}},
      {"--explain", {"\n"}},
      {"--type", {"f32"}},
      {"--keep", {"attn_v=f32"}},
      {"--imatrix", {keep(folder + "/tales-imatrix.gguf"), Shows::nothing}},  // f16 does not search
      {"imatrix --ctx", {"12"}},
      {"imatrix -f", {"-", Shows::refused}},  // a text that is too short
      {"imatrix --out", {keep(folder + "/imat.gguf")}},
      {"imatrix MODEL", {keep(folder + "/tales-gpt2.gguf")}},
      {"--no-tokenizer", {"\n"}},
      {"--force", {"\n", Shows::nothing}},
      {"--stdin", {"\n", Shows::differs, {}, {"TEXT"}}},
      {"--no-bos", {"\n", Shows::nothing}},  // tales has no such token
      {"CHAT", {keep(folder + "/other.json")}},
      {"CHATS", {keep(folder + "/chat.json")}},
      {"--chat-template", {keep(folder + "/other.jinja")}},
      {"explain-cache --chat-template", {keep(folder + "/open.jinja")}},  // B continues A in its output
      {"--adapt", {"\n"}},
      {"NAME", {"nobody/other", Shows::refused}},
      {"--endpoint", {"http://127.0.0.1:2", Shows::refused}},
      {"--connections", {"2", Shows::refused}},
      {"--timeout", {"2", Shows::refused}},
      {"pull --json", {"\n", Shows::refused}},
      {"rm --json", {"\n", Shows::refused}},
  };
}

// The output of a run, as flat JSON where it is JSON.
Json leaves(const Outcome& o, const std::string& command) {
  const std::string out = o.out;
  if (command == "chat") return o.out + o.err.substr(0, o.err.find("; first token"));
  const Json json = Json::parse(out, nullptr, false);
  return json.is_discarded() ? Json(out) : json.flatten();
}

bool differs(const Json& a, const Json& same, const Json& b) {
  if (!a.is_object() || !b.is_object()) return a != b;
  for (const auto& [key, value] : a.items())
    if (value == same[key] && (!b.contains(key) || b[key] != value)) return true;
  for (const auto& [key, value] : b.items())
    if (!a.contains(key)) return true;
  return false;
}

TEST_F(SlowE2eFlags, AGoodValueShows) {
  put(folder_ / "two.txt", "Once upon a time\nOnce upon a time there was\n");
  const auto goods = good_values(text(), folder_.path().string());
  std::map<Arguments, std::pair<Json, Json>> usual_of;
  for (const Json& command : declarations()) {
    const std::string name = command["name"];
    for (const Json& flag : command["flags"]) {
      const std::string shown = shown_name(flag);
      auto good = goods.find(name + " " + shown);
      if (good == goods.end()) good = goods.find(shown);
      ASSERT_NE(good, goods.end()) << name << " " << shown << ": say here what a good value of it shows";
      const Good& g = good->second;
      Line base = line_of(name);
      for (const std::string& other : g.without) base.drop(other);
      if (std::find(g.without.begin(), g.without.end(), "TEXT") != g.without.end()) base.places.resize(1);
      for (size_t i = 0; i < g.with.size(); i += 2)
        if (i + 1 == g.with.size() || g.with[i].empty())
          base.flags.emplace_back(g.with[i], "\n");
        else
          base.flags.emplace_back(g.with[i], g.with[i + 1]);
      Line line = base;
      if (shown == "--json") base.drop(shown);
      line.set(flag, g.value);
      const Outcome with = outcome_of(name, line);
      SCOPED_TRACE("kvasir" + with.command);
      if (g.shows == Shows::refused) {
        EXPECT_EQ(with.code, 2);
        continue;
      }
      EXPECT_EQ(with.code, 0) << with.err;
      if (g.shows == Shows::nothing) continue;
      auto& [usual, same] = usual_of[arguments_of(name, base)];
      if (usual.is_null()) {  // twice, for the numbers that differ from run to run
        usual = leaves(outcome_of(name, base), name);
        same = leaves(outcome_of(name, base), name);
      }
      EXPECT_TRUE(differs(usual, same, leaves(with, name))) << with.out;
    }
  }
}

// ---- what flags exclude and need ----------------------------------------------------------------------------------

// Every declared pair of flags that exclude each other, every flag given twice, and every flag without the one that it
// needs.
TEST_F(SlowE2eFlags, WhatIsExcludedOrNeededOrGivenTwiceIsRefused) {
  put(folder_ / "two.txt", "Once upon a time\n");
  const auto goods = good_values(text(), folder_.path().string());
  const auto value_of = [&](const std::string& command, const std::string& name) {
    const auto good = goods.find(command + " " + name);
    return std::string((good == goods.end() ? goods.at(name) : good->second).value);
  };
  int pairs = 0;
  for (const Json& command : declarations()) {
    const std::string name = command["name"];
    const auto find = [&](const std::string& condition) -> const Json* {
      for (const Json& flag : command["flags"])
        for (const Json& known : flag["names"])
          if (known == condition.substr(0, condition.find_first_of("!="))) return &flag;
      return nullptr;
    };
    for (const Json& flag : command["flags"]) {
      for (const std::string condition : flag["not_with"]) {
        const Json* other = find(condition);
        if (other == nullptr) continue;
        Line line = line_of(name);
        line.set(flag, value_of(name, shown_name(flag)));
        line.set(*other, value_of(name, shown_name(*other)));
        expect_refused(outcome_of(name, line), "is given too");
        ++pairs;
      }
      if (flag["kind"] != "toggle" && flag["kind"] != "texts" && !is_place(flag["names"].back())) {
        Arguments twice = arguments_of(name, line_of(name));
        for (int i = 0; i < 2; ++i) twice.insert(twice.end(), {flag["names"].back(), value_of(name, shown_name(flag))});
        expect_refused(run_program(twice), shown_name(flag) + ": it is given");
      }
      if (flag["needs"].empty()) continue;
      Line line = line_of(name);
      for (const std::string excluded : flag["not_with"]) line.drop(excluded);
      line.set(flag, value_of(name, shown_name(flag)));
      expect_refused(outcome_of(name, line), "changes nothing");
    }
  }
  EXPECT_GT(pairs, 30);
}

}  // namespace
}  // namespace kvasir::e2e

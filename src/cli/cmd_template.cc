// kvasir template: renders a conversation with a model's chat template.
#include <cstdio>

#include <kvasir/chat.h>

#include "cli/prompt_args.h"
#include "cli/template_args.h"

namespace kvasir::cli {
namespace {

struct Args {
  std::vector<std::string> files;
  TemplateArgs chat_template;
  bool adapt = false, json = false;
};

Result<std::shared_ptr<const ChatTemplate>> open(const Args& a) {
  if (a.files.size() == 2) return ChatTemplate::of_model(a.files[0], a.chat_template.file);
  if (a.chat_template.file.empty())
    return fail(Error::bad_argument, "no template is given", "CHAT", "MODEL CHAT.json, or --chat-template FILE");
  KVASIR_TRY(const std::string jinja, read_text_file(a.chat_template.file));
  auto made = ChatTemplate::parse(jinja);
  if (!made) made.error().where = a.chat_template.file + ": " + made.error().where;
  return made;
}

Result<int> run(const Args& a) {
  if (a.files.size() > 2)
    return fail(Error::bad_argument, std::to_string(a.files.size()) + " files", "CHAT", "[MODEL] CHAT.json");
  KVASIR_TRY(const auto chat_template, open(a));
  KVASIR_TRY(const std::string conversation, read_text_file(a.files.back()));
  KVASIR_TRY(ChatOptions options, a.chat_template.options());
  options.adapt = a.adapt;
  KVASIR_TRY(const ChatText text, chat_template->render(conversation, options));
  if (!a.json) {
    std::fwrite(text.text.data(), 1, text.text.size(), stdout);
    return kOk;
  }
  std::vector<std::vector<size_t>> data;
  for (const TextSpan& span : text.data) data.push_back({span.begin, span.end});
  print_json({{"text", text.text}, {"data", data}});
  return kOk;
}

void add(Flags& flags, Run* run_command) {
  auto a = std::make_shared<Args>();
  flags.bind(flag::kChatFile, &a->files);
  a->chat_template.add(flags);
  flags.bind(flag::kAdapt, &a->adapt);
  flags.bind(
      with_help(flag::kJson, "one JSON object on stdout: text, data (byte ranges that come from the conversation)"),
      &a->json);
  flags.footer(
      "CHAT.json has messages, and other variables of the template: tools, bos_token, add_generation_prompt. -: "
      "stdin.\n"
      "Examples:\n  kvasir template path/to/folder chat.json\n"
      "  kvasir template --chat-template chat.jinja chat.json");
  *run_command = [a] { return run(*a); };
}

}  // namespace

extern const Command cmd_template;
const Command cmd_template{"template", "render a conversation with a chat template", add};

}  // namespace kvasir::cli

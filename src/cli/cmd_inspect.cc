// kvasir inspect: shows the contents of a model file.
#include <algorithm>
#include <cstdio>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/cli.h"
#include "cli/parameter_names.h"
#include "cli/printable.h"
#include "lab/inspect.h"

namespace kvasir::cli {
namespace {

struct Args {
  std::string model = "tales";
  bool json = false;
};

constexpr size_t kWidestValue = 100;

void print_inspection(const Inspection& r) {
  fmt::print("file         {}\nformat       {}\n", printable(r.path), r.format);
  if (!r.tensors.empty())
    fmt::print("tensors      {} of {} elements, {} B\n", r.tensors.size(),
               with_commas(static_cast<uint64_t>(r.elements)), with_commas(r.bytes));
  fmt::print("fingerprint  {}\n", r.fingerprint.empty() ? "none: " + printable(r.reason) : r.fingerprint);
  if (!r.ignored.empty()) fmt::print("\nnot used\n");
  for (const Ignored& one : r.ignored) fmt::print("  {:<42} {}\n", printable(one.name), printable(one.why));
  if (!r.metadata.empty()) fmt::print("\nmetadata\n");
  for (const auto& entry : r.metadata) {
    std::string value = printable(entry.value);
    if (value.size() > kWidestValue) value = cut_utf8(value, kWidestValue) + " ...";
    fmt::print("  {:<42} {:<14} {}\n", printable(entry.key), entry.type, value);
  }
  if (!r.tensors.empty()) fmt::print("\ntensors\n");
  size_t widest = 0;
  for (const auto& tensor : r.tensors) widest = std::max(widest, std::min<size_t>(tensor.name.size(), 60));
  for (const auto& tensor : r.tensors)
    fmt::print("  {:<{}}  {:<6} {:>20} {:>16} B  {}\n", printable(tensor.name), widest, tensor.type,
               fmt::format("[{}]", fmt::join(tensor.shape, ", ")), with_commas(tensor.bytes), printable(tensor.file));
}

Json inspection_json(const Inspection& r) {
  Json metadata = Json::object(), tensors = Json::array();
  Json ignored = Json::array();
  for (const Ignored& one : r.ignored) ignored.push_back({{"name", one.name}, {"why", one.why}, {"noted", one.noted}});
  for (const auto& entry : r.metadata) {
    const Json value = Json::raw(entry.value);
    metadata.set(entry.key, entry.type.empty() ? value : Json{{"type", entry.type}, {"value", value}});
  }
  for (const auto& tensor : r.tensors)
    tensors.push_back({{"name", tensor.name},
                       {"type", tensor.type},
                       {"shape", tensor.shape},
                       {"bytes", tensor.bytes},
                       {"file", tensor.file}});
  return {{"path", r.path},
          {"format", r.format},
          {"fingerprint", r.fingerprint.empty() ? Json() : Json(r.fingerprint)},
          {"reason", r.reason.empty() ? Json() : Json(r.reason)},
          {"elements", r.elements},
          {"bytes", r.bytes},
          {"ignored", ignored},
          {"metadata", metadata},
          {"tensors", tensors}};
}

Result<int> run(const Args& a) {
  KVASIR_TRY(Inspection report, inspect(a.model));
  report.reason = with_flags(report.reason);
  for (Ignored& one : report.ignored) one.why = with_flags(one.why);
  if (a.json)
    print_json(inspection_json(report));
  else
    print_inspection(report);
  return kOk;
}

void add(Flags& flags, Run* run_command) {
  auto a = std::make_shared<Args>();
  flags.bind(flag::kInspectModel, &a->model);
  flags.bind(flag::kJson, &a->json);
  flags.footer("Examples:\n  kvasir inspect model.gguf\n  kvasir inspect tales --json");
  *run_command = [a] { return run(*a); };
}

}  // namespace

extern const Command cmd_inspect;
const Command cmd_inspect{"inspect", "show a model file: metadata, tensors, types, sizes, fingerprint", add};

}  // namespace kvasir::cli

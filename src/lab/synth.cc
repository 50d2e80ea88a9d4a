// Writes a synthetic model folder: the weights tensor by tensor, then a temporary folder beside the target, renamed
// when complete. Its contents are made in synth_content.cc.
#include "lab/synth.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "arch/family.h"
#include "base/files.h"
#include "base/float_env.h"
#include "engine/model_files.h"
#include "format/safetensors.h"
#include "lab/synth_content.h"

namespace kvasir {
namespace fs = std::filesystem;

namespace {

constexpr std::array<std::string_view, 3> kFiles{"config.json", "model.safetensors", "tokenizer.json"};
constexpr size_t kPiece = 1 << 18;  // elements made at once; a multiple of 4

struct Type {
  std::string_view name, torch;
};
constexpr std::array kTypes{Type{"f32", "float32"}, Type{"f16", "float16"}, Type{"bf16", "bfloat16"}};

Result<Type> find_type(const std::string& name) {
  for (const Type& type : kTypes)
    if (type.name == name) return type;
  return fail(Error::bad_argument, fmt::format("\"{}\" is not a type of weights", name), "SynthOptions::dtype",
              "f32, f16, bf16");
}

struct Tensor {
  TensorSpec spec;
  bool embedding = false;

  uint64_t elements() const {
    uint64_t n = 1;
    for (int64_t dim : spec.shape) n *= static_cast<uint64_t>(dim);
    return n;
  }
};

// The tensors in file order, with Hugging Face's names; a tied head is the embedding and is left out.
std::vector<Tensor> list_tensors(const Family& family, const ModelConfig& config) {
  const TensorTable table = family.tensor_table(config);
  std::vector<Tensor> tensors;
  std::set<std::string> seen;
  const auto add = [&](const std::vector<TensorSpec>& specs, bool embedding) {
    for (TensorSpec spec : specs) {
      if (!spec.present || !seen.insert(spec.name).second) continue;
      if (!spec.name.starts_with("lm_head.")) spec.name = std::string(family.prefixes[0]) + spec.name;
      tensors.push_back({std::move(spec), embedding});
    }
  };
  add(table.embed, true);
  for (const auto& layer : table.layers) add(layer, false);
  add(table.head, false);
  return tensors;
}

// ---- where it is written ------------------------------------------------------------------------------------------

// Checks that the target may be replaced and, with `remove`, removes it. Only files of an earlier synth are removed.
Result<void> clear_target(const fs::path& out, bool force, bool remove) {
  std::error_code ec;
  const fs::file_status status = fs::status(out, ec);
  if (!fs::exists(status)) return {};
  if (!fs::is_directory(status))
    return fail(Error::bad_argument, "exists and is not a folder", out.string(), "another name");
  if (fs::equivalent(out, fs::current_path(ec), ec))  // a shell in it would lose its working directory
    return fail(Error::bad_argument, "is the current folder", out.string(), "the name of a folder to make");
  bool empty = true;
  for (fs::directory_iterator it(out, ec), end; !ec && it != end; it.increment(ec)) {
    empty = false;
    const std::string name = it->path().filename().string();
    if (std::find(kFiles.begin(), kFiles.end(), name) == kFiles.end())
      return fail(Error::bad_argument, fmt::format("the folder holds another file, {}", name), out.string(),
                  "another name");
  }
  if (ec)
    return fail(kind_of_errno(ec.value()), "cannot be read: " + ec.message(), out.string(), "a folder of your own");
  if (!empty && !force)
    return fail(Error::bad_argument, "the folder is not empty", out.string(),
                "another name, or SynthOptions::force = true to replace it");
  if (!remove) return {};
  fs::remove_all(out, ec);
  if (ec) return fail(kind_of_errno(ec.value()), "cannot be replaced: " + ec.message(), out.string(), "another name");
  return {};
}

/// A temporary folder that exists only while complete files are moved into it. create() first removes what a process
/// killed at that moment left behind.
class TempFolder {
 public:
  static Result<TempFolder> create(const fs::path& beside) {
    for (const fs::path& leftover : leftovers_of(beside)) remove_ours(leftover);
    TempFolder folder(temporary_name(beside));
    std::error_code ec;
    if (!fs::create_directory(folder.path(), ec))
      return fail(kind_of_errno(ec.value()),
                  "cannot be created: " + (ec ? ec.message() : folder.path_.string() + " is in the way"),
                  beside.string(), "an output in a folder that exists and can be written");
    folder.made_ = true;
    folder.lock_ = ::open(folder.path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder.lock_ >= 0) lock_temporary(folder.lock_);
    return folder;
  }
  TempFolder(TempFolder&& other) noexcept
      : path_(std::move(other.path_)),
        names_(std::move(other.names_)),
        made_(std::exchange(other.made_, false)),
        lock_(std::exchange(other.lock_, -1)) {}
  TempFolder& operator=(TempFolder&&) = delete;
  ~TempFolder() {
    if (made_) remove_ours(path_);
    if (lock_ >= 0) ::close(lock_);
  }

  const fs::path& path() const { return path_; }
  Result<void> become(const fs::path& target) {
    std::error_code ec;
    fs::rename(path_, target, ec);
    if (ec)
      return fail(kind_of_errno(ec.value()), "cannot be renamed to: " + ec.message(), target.string(), "another name");
    made_ = false;
    return {};
  }

 private:
  explicit TempFolder(fs::path path) : path_(std::move(path)) {
    for (const std::string_view file : kFiles) names_.emplace_back(path_ / file);
    names_.emplace_back(path_);
  }

  // Removes our own files only, never those of another program.
  static void remove_ours(const fs::path& folder) {
    std::error_code ec;
    for (const std::string_view file : kFiles) fs::remove(folder / file, ec);
    fs::remove(folder, ec);
  }

  fs::path path_;
  std::vector<TemporaryName> names_;
  bool made_ = false;
  int lock_ = -1;
};

Result<void> check_space(const fs::path& folder, const fs::path& out, uint64_t bytes) {
  std::error_code ec;
  const fs::space_info space = fs::space(folder, ec);
  if (ec || space.available >= bytes) return {};
  return fail(Error::io, fmt::format("needs {} bytes of disk, {} are free", bytes, space.available), out.string(),
              "another disk, a smaller shape, or SynthOptions::dtype = bf16");
}

// ---- what is written ----------------------------------------------------------------------------------------------

// Writes everything except the last step, which gives the file its name.
Result<SafetensorsWriter> write_weights(const fs::path& path, const std::vector<Tensor>& tensors, const Codec& codec,
                                        const SynthOptions& options) {
  std::vector<TensorDecl> decls;
  uint64_t all = 0, done = 0;
  for (const Tensor& t : tensors) {
    decls.push_back({t.spec.name, &codec, t.spec.shape});
    all += codec.row_bytes(static_cast<int64_t>(t.elements()));
  }
  KVASIR_CHECK(check_space(path.parent_path(), options.out, all));
  SafetensorsWriter writer;
  KVASIR_CHECK(writer.create(path, std::move(decls)));
  std::vector<float> values(kPiece);
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const uint64_t n = tensors[i].elements();
    const SynthValues shape = synth_values(tensors[i].spec, tensors[i].embedding);
    for (uint64_t at = 0; at < n; at += kPiece) {
      const std::span<float> piece(values.data(), std::min<uint64_t>(kPiece, n - at));
      synth_fill(options.seed, static_cast<uint32_t>(i), at, shape, piece);
      bytes.resize(codec.row_bytes(static_cast<int64_t>(piece.size())));
      codec.encode(piece.data(), bytes.data(), static_cast<int64_t>(piece.size()));
      KVASIR_CHECK(writer.write(bytes));
      done += bytes.size();
      if (options.progress) options.progress(done, all);
    }
  }
  return writer;
}

Result<void> write_text(const fs::path& path, const std::string& text) {
  return write_file_atomically(path, std::as_bytes(std::span(text)));
}

Result<void> synthesize_checked(const SynthOptions& options) {
  const FloatEnv env;
  KVASIR_TRY(const Type type, find_type(options.dtype));
  KVASIR_TRY(const std::string json, synth_config_json(options.shape, std::string(type.torch)));
  KVASIR_TRY(const ConfigView view, ConfigView::parse(json, options.shape));
  KVASIR_TRY(const ModelDescription description, describe_config(view));
  const ModelConfig& config = description.config;

  std::error_code ec;
  fs::path out = fs::weakly_canonical(options.out, ec);
  if (!out.has_filename()) out = out.parent_path();
  if (options.out.empty() || out.empty())
    return fail(Error::bad_argument, "no output folder is named", "SynthOptions::out", "a folder to make");
  KVASIR_CHECK(clear_target(out, options.force, false));
  fs::path beside = out;  // in the same file system; the file has no name until it is complete, where possible
  beside += ".safetensors";
  KVASIR_TRY(SafetensorsWriter weights,
             write_weights(beside, list_tensors(*description.family, config), *find_codec(type.name), options));
  KVASIR_CHECK(weights.sync());
  const std::string tokenizer = config.vocab >= 256 ? synth_tokenizer_json(config.vocab) : std::string();
  KVASIR_TRY(TempFolder folder, TempFolder::create(out));
  KVASIR_CHECK(write_text(folder.path() / "config.json", json));
  if (!tokenizer.empty()) KVASIR_CHECK(write_text(folder.path() / "tokenizer.json", tokenizer));
  KVASIR_CHECK(weights.finish(folder.path() / "model.safetensors"));
  KVASIR_CHECK(clear_target(out, options.force, true));
  return folder.become(out);
}

}  // namespace

std::vector<std::string_view> synth_types() {
  std::vector<std::string_view> names;
  for (const Type& type : kTypes) names.push_back(type.name);
  return names;
}

Result<void> synthesize(const SynthOptions& options) {
  try {
    return synthesize_checked(options);
  } catch (const std::exception& e) {  // thrown by another library, for example when memory runs out
    return fail(Error::no_room, e.what(), options.shape);
  }
}

}  // namespace kvasir

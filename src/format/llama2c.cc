// The two f32 formats of llama2.c (its export.py: legacy_export, version1_export). Both store one kind of tensor for
// all layers before the next kind; they differ in the order of kinds.
#include "format/llama2c.h"

#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace kvasir {
namespace {

constexpr uint32_t kVersionedMagic = 0x616b3432;  // "ak42"
constexpr size_t kLegacyHeaderBytes = 7 * sizeof(int32_t);
constexpr size_t kV1HeaderBytes = 256;
constexpr const char* kNotOurs = "name a llama2.c .bin file, a Hugging Face folder or a .safetensors file";

/// The seven integers of either header, and what they imply.
struct Header {
  int64_t dim, hidden, layers, heads, kv_heads, vocab, max_seq;
  bool legacy = true;
  bool tied = true;
  size_t data_start = kLegacyHeaderBytes;

  int64_t head_dim() const { return dim / heads; }
  int64_t kv_dim() const { return head_dim() * kv_heads; }
};

int32_t read_i32(std::span<const std::byte> bytes, size_t at) {
  int32_t value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

void read_fields(std::span<const std::byte> bytes, size_t at, Header& h) {
  for (int64_t* field : {&h.dim, &h.hidden, &h.layers, &h.heads, &h.kv_heads, &h.vocab, &h.max_seq}) {
    *field = read_i32(bytes, at);
    at += sizeof(int32_t);
  }
}

Result<void> check_field(const char* name, int64_t value, int64_t max, const std::string& where) {
  if (value >= 1 && value <= max) return {};
  return fail(Error::damaged, fmt::format("{} is {}, allowed 1..{}", name, value, max), where, kNotOurs);
}

/// The limits keep every product of fields far below 2^63.
Result<void> check_header(const Header& h, const std::string& where) {
  KVASIR_CHECK(check_field("dim", h.dim, 1 << 17, where));
  KVASIR_CHECK(check_field("hidden_dim", h.hidden, 1 << 20, where));
  KVASIR_CHECK(check_field("n_layers", h.layers, 4096, where));
  KVASIR_CHECK(check_field("n_heads", h.heads, h.dim, where));
  KVASIR_CHECK(check_field("n_kv_heads", h.kv_heads, h.heads, where));
  KVASIR_CHECK(check_field("vocab_size", h.vocab, 1 << 24, where));
  KVASIR_CHECK(check_field("max_seq_len", h.max_seq, 1 << 24, where));
  if (h.dim % h.heads != 0 || h.head_dim() % 2 != 0)
    return fail(Error::damaged, fmt::format("dim {} does not split into {} heads of even size", h.dim, h.heads), where,
                kNotOurs);
  if (h.heads % h.kv_heads != 0)
    return fail(Error::damaged, fmt::format("{} heads do not split over {} KV heads", h.heads, h.kv_heads), where,
                kNotOurs);
  return {};
}

Result<Header> read_header(std::span<const std::byte> bytes, const std::string& where) {
  const auto too_short =
      fail(Error::damaged, fmt::format("{} bytes are too few for a llama2.c header", bytes.size()), where, kNotOurs);
  Header h{};
  if (bytes.size() < kLegacyHeaderBytes) return too_short;
  if (static_cast<uint32_t>(read_i32(bytes, 0)) == kVersionedMagic) {
    if (bytes.size() < kV1HeaderBytes) return too_short;
    const int32_t version = read_i32(bytes, 4);
    if (version == 2)
      return fail(Error::unsupported, "int8 llama2.c files are not supported", where,
                  "export the model again as version 1");
    if (version != 1) return fail(Error::unsupported, fmt::format("llama2.c version {} is unknown", version), where);
    read_fields(bytes, 8, h);
    const auto shared = std::to_integer<int>(bytes[36]);
    if (shared > 1) return fail(Error::damaged, fmt::format("shared_classifier is {}, allowed 0..1", shared), where);
    h.legacy = false;
    h.tied = shared == 1;
    h.data_start = kV1HeaderBytes;
  } else {
    read_fields(bytes, 0, h);
    h.tied = h.vocab > 0;  // a negative size marks a separate classifier
    h.vocab = h.vocab < 0 ? -h.vocab : h.vocab;
  }
  KVASIR_CHECK(check_header(h, where));
  return h;
}

/// Names tensors one after the other from the start of the data.
class Placer {
 public:
  explicit Placer(const Header& h) : h_(h), at_(h.data_start) {}

  void one(std::string name, std::vector<int64_t> shape) {
    uint64_t bytes = sizeof(float);
    for (const int64_t dim : shape) bytes *= static_cast<uint64_t>(dim);
    tensors_.push_back({std::move(name), &codec_f32(), "F32", std::move(shape), at_, bytes, 0});
    at_ += bytes;
  }

  void per_layer(const char* part, const std::vector<int64_t>& shape) {
    for (int64_t layer = 0; layer < h_.layers; ++layer)
      one(fmt::format("model.layers.{}.{}.weight", layer, part), shape);
  }

  void skip(int64_t floats) { at_ += static_cast<uint64_t>(floats) * sizeof(float); }

  void attention_weights() {
    per_layer("self_attn.q_proj", {h_.dim, h_.dim});
    per_layer("self_attn.k_proj", {h_.kv_dim(), h_.dim});
    per_layer("self_attn.v_proj", {h_.kv_dim(), h_.dim});
    per_layer("self_attn.o_proj", {h_.dim, h_.dim});
  }

  void mlp_weights() {
    per_layer("mlp.gate_proj", {h_.hidden, h_.dim});
    per_layer("mlp.down_proj", {h_.dim, h_.hidden});
    per_layer("mlp.up_proj", {h_.hidden, h_.dim});
  }

  std::vector<TensorInfo> take() { return std::move(tensors_); }
  uint64_t end() const { return at_; }

 private:
  const Header& h_;
  uint64_t at_;
  std::vector<TensorInfo> tensors_;
};

void place_legacy(const Header& h, Placer& place) {
  place.one("model.embed_tokens.weight", {h.vocab, h.dim});
  place.per_layer("input_layernorm", {h.dim});
  place.attention_weights();
  place.per_layer("post_attention_layernorm", {h.dim});
  place.mlp_weights();
  place.one("model.norm.weight", {h.dim});
  place.skip(h.max_seq * h.head_dim());  // cos and sin tables, head_dim / 2 each
}

void place_v1(const Header& h, Placer& place) {
  place.per_layer("input_layernorm", {h.dim});
  place.per_layer("post_attention_layernorm", {h.dim});
  place.one("model.norm.weight", {h.dim});
  place.one("model.embed_tokens.weight", {h.vocab, h.dim});
  place.attention_weights();
  place.mlp_weights();
}

ConfigView config_of(const Header& h, const std::string& where) {
  ConfigView config = *ConfigView::parse("{}", where);
  config.set("model_type", "llama");
  config.set("hidden_size", h.dim);
  config.set("intermediate_size", h.hidden);
  config.set("num_hidden_layers", h.layers);
  config.set("num_attention_heads", h.heads);
  config.set("num_key_value_heads", h.kv_heads);
  config.set("vocab_size", h.vocab);
  config.set("max_position_embeddings", h.max_seq);
  config.set("rms_norm_eps", 1e-5);   // run.c: rmsnorm
  config.set("rope_theta", 10000.0);  // run.c: forward
  config.set("tie_word_embeddings", h.tied);
  config.set("rope_interleaved", true);
  config.set("bos_token_id", 1);
  config.set("eos_token_id", std::vector<int64_t>{1, 2});  // run.c ends a text at the next BOS, which is 1
  return config;
}

}  // namespace

Result<Llama2cFile> open_llama2c(const std::filesystem::path& path) {
  const std::string where = path.string();
  KVASIR_TRY(auto file, MappedFile::open(path));
  KVASIR_TRY(const Header header, read_header(file->bytes(), where));
  Placer place(header);
  if (header.legacy)
    place_legacy(header, place);
  else
    place_v1(header, place);
  if (!header.tied) place.one("lm_head.weight", {header.vocab, header.dim});
  if (place.end() != file->bytes().size())
    return fail(Error::damaged,
                fmt::format("the header asks for {} bytes but the file has {}", place.end(), file->bytes().size()),
                where, "the file may be cut, or is no llama2.c file");
  Llama2cFile out{config_of(header, where), {{std::move(file)}, place.take()}};
  KVASIR_CHECK(sort_tensors(out.tensors.tensors, where));
  return out;
}

}  // namespace kvasir

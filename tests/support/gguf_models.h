// A tiny model of tests/support/tiny_models.h as a GGUF file, with the names and the order of q's and k's rows that
// llama.cpp's converter writes for a Llama. Test code only.
#pragma once

#include <map>
#include <string>

#include "tests/support/gguf_bytes.h"
#include "tests/support/tiny_models.h"

namespace kvasir::tiny {

/// "model.layers.1.self_attn.q_proj.weight" -> "blk.1.attn_q.weight".
inline std::string gguf_name(std::string name) {
  static const std::pair<std::string_view, std::string_view> kParts[] = {{"model.embed_tokens", "token_embd"},
                                                                         {"model.norm", "output_norm"},
                                                                         {"lm_head", "output"},
                                                                         {"model.layers.", "blk."},
                                                                         {"input_layernorm", "attn_norm"},
                                                                         {"self_attn.q_proj", "attn_q"},
                                                                         {"self_attn.k_proj", "attn_k"},
                                                                         {"self_attn.v_proj", "attn_v"},
                                                                         {"self_attn.o_proj", "attn_output"},
                                                                         {"post_attention_layernorm", "ffn_norm"},
                                                                         {"mlp.gate_proj", "ffn_gate"},
                                                                         {"mlp.up_proj", "ffn_up"},
                                                                         {"mlp.down_proj", "ffn_down"}};
  for (const auto& [from, to] : kParts)
    if (const size_t at = name.find(from); at != std::string::npos) name.replace(at, from.size(), to);
  return name;
}

/// Returns the values with the rows of each head paired: row 2i + j of a head is row j * 4 + i (heads of 8 channels).
inline std::vector<float> paired_rows(const Tensor& tensor) {
  const size_t cols = tensor.values.size() / static_cast<size_t>(tensor.decl.shape[0]);
  std::vector<float> out;
  for (size_t r = 0; r < static_cast<size_t>(tensor.decl.shape[0]); ++r) {
    const size_t in_head = r % 8, from = r - in_head + in_head % 2 * 4 + in_head / 2;
    out.insert(out.end(), tensor.values.begin() + static_cast<std::ptrdiff_t>(from * cols),
               tensor.values.begin() + static_cast<std::ptrdiff_t>((from + 1) * cols));
  }
  return out;
}

/// tiny::llama() in GGUF version 3. `matrix_type`: ggml's number for the weights' codec. `more`: `more_count` further
/// metadata entries.
inline gguf_test::Bytes llama_gguf(const Model& model, uint32_t matrix_type = 0, const gguf_test::Bytes& more = {},
                                   uint64_t more_count = 0) {
  using gguf_test::head;
  std::string data;
  std::vector<std::pair<const Tensor*, uint64_t>> places;
  for (const Tensor& tensor : model.tensors) {
    data.resize((data.size() + 31) / 32 * 32);
    places.emplace_back(&tensor, data.size());
    const bool paired =
        tensor.decl.name.find("q_proj") != std::string::npos || tensor.decl.name.find("k_proj") != std::string::npos;
    std::vector<float> values = paired ? paired_rows(tensor) : tensor.values;
    const auto n = static_cast<int64_t>(values.size());
    std::vector<std::byte> bytes(tensor.decl.codec->row_bytes(n));
    tensor.decl.codec->encode(values.data(), bytes.data(), n);
    if (tensor.decl.shape.size() == 1) {  // the converter keeps these in f32, the values as they were in the folder
      tensor.decl.codec->decode(bytes.data(), values.data(), n);
      bytes.resize(values.size() * sizeof(float));
      codec_f32().encode(values.data(), bytes.data(), n);
    }
    data.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  gguf_test::Bytes b = head(places.size(), 11 + more_count);
  b.text_entry("general.architecture", "llama");
  const std::pair<const char*, uint32_t> kNumbers[] = {{"block_count", 2},          {"context_length", 160},
                                                       {"embedding_length", 24},    {"feed_forward_length", 40},
                                                       {"attention.head_count", 6}, {"attention.head_count_kv", 2},
                                                       {"attention.key_length", 8}};
  for (const auto& [key, value] : kNumbers) b.entry(std::string("llama.") + key, GgufType::u32, value);
  b.entry("llama.attention.layer_norm_rms_epsilon", GgufType::f32, 1e-5f);
  b.entry("llama.rope.freq_base", GgufType::f32, 1000.0f);
  b.entry("tokenizer.ggml.eos_token_id", GgufType::u32, uint32_t{7});
  b.data += more.data;
  for (const auto& [tensor, offset] : places) {
    const std::vector<uint64_t> dims(tensor->decl.shape.rbegin(), tensor->decl.shape.rend());
    b.tensor(gguf_name(tensor->decl.name), dims, dims.size() == 1 ? 0 : matrix_type, offset);
  }
  b.data_section(0);
  b.data += data;
  return b;
}

}  // namespace kvasir::tiny

// Keys of config.json and generation_config.json that no family reads. Source of names and meanings: transformers,
// configuration_utils.py, generation/configuration_utils.py and the configurations of its models.
#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "arch/unused.h"
#include "base/quote.h"

namespace kvasir {
namespace {

constexpr std::string_view kTraining = "training only", kLabel = "a label",
                           kOutput = "the form of transformers' output", kMedia = "images, video or sound",
                           kExperts = "experts", kWindow = "no layer has a window",
                           kScaling = "scaled activations or logits", kOtherAttention = "another kind of attention",
                           kSampling = "Kvasir reads sampling from generation_config.json",
                           kFixed = "the family fixes it", kLimit = "another name for the context length",
                           kSpeed = "speed or memory of another program",
                           kUnused = "a token that generation never needs", kOuter = "text_config has its own";

constexpr KeyRule kConfigRules[] = {
    {"architectures", KeyUse::harmless, kLabel},
    {"name_or_path", KeyUse::harmless, kLabel},
    {"_name_or_path", KeyUse::harmless, kLabel},
    {"_commit_hash", KeyUse::harmless, kLabel},
    {"transformers_version", KeyUse::harmless, kLabel},
    {"tokenizer_class", KeyUse::harmless, kLabel},
    {"auto_map", KeyUse::harmless, "Python code, which Kvasir does not run"},
    {"finetuning_task", KeyUse::harmless, kLabel},
    {"task_specific_params", KeyUse::harmless, kLabel},
    {"id2label", KeyUse::harmless, kLabel},
    {"label2id", KeyUse::harmless, kLabel},
    {"num_labels", KeyUse::harmless, kLabel},
    {"problem_type", KeyUse::harmless, kLabel},
    {"license", KeyUse::harmless, kLabel},
    {"language", KeyUse::harmless, kLabel},
    {"unsloth_*", KeyUse::harmless, kLabel},
    {"is_llama_config", KeyUse::harmless, kLabel},
    {"n_special", KeyUse::off, "further tokens"},
    {"predict_special_tokens", KeyUse::harmless, kTraining},
    {"transformers.js_config", KeyUse::harmless, kLabel},
    {"torch_dtype", KeyUse::harmless, "each tensor has its own type"},
    {"dtype", KeyUse::harmless, "each tensor has its own type"},

    {"tie_word_embeddings", KeyUse::noted, kOuter},
    {"eos_token_id", KeyUse::noted, kOuter},
    {"bos_token_id", KeyUse::noted, kOuter},

    {"attention_dropout", KeyUse::harmless, kTraining},
    {"attention_probs_dropout_prob", KeyUse::harmless, kTraining},
    {"hidden_dropout", KeyUse::harmless, kTraining},
    {"hidden_dropout_prob", KeyUse::harmless, kTraining},
    {"classifier_dropout", KeyUse::harmless, kTraining},
    {"dropout", KeyUse::harmless, kTraining},
    {"embd_pdrop", KeyUse::harmless, kTraining},
    {"attn_pdrop", KeyUse::harmless, kTraining},
    {"resid_pdrop", KeyUse::harmless, kTraining},
    {"initializer_range", KeyUse::harmless, kTraining},
    {"initializer_factor", KeyUse::harmless, kTraining},
    {"gradient_checkpointing", KeyUse::harmless, kTraining},
    {"pretraining_tp", KeyUse::harmless, kTraining},
    {"router_aux_loss_coef", KeyUse::harmless, kTraining},
    {"router_jitter_noise", KeyUse::harmless, kTraining},
    {"input_jitter_noise", KeyUse::harmless, kTraining},
    {"output_router_logits", KeyUse::harmless, kOutput},
    {"embedding_dropout", KeyUse::harmless, kTraining},
    {"residual_dropout", KeyUse::harmless, kTraining},
    {"_from_model_config", KeyUse::harmless, kLabel},
    {"model_type", KeyUse::harmless, kOuter},
    {"vocab_size", KeyUse::harmless, kOuter},
    {"norm_type", KeyUse::harmless, kFixed},
    {"mlp_type", KeyUse::harmless, kFixed},
    {"activation_function", KeyUse::harmless, kFixed},
    {"lm_head_bias", KeyUse::off, "biases that the family does not have"},
    {"scale_attn_weights", KeyUse::yes, kScaling},
    {"attention_softmax_in_fp32", KeyUse::harmless, "scores are f32 here"},
    {"scale_attention_softmax_in_fp32", KeyUse::harmless, "scores are f32 here"},
    {"summary_*", KeyUse::harmless, "a head for classification"},

    {"use_cache", KeyUse::harmless, kSpeed},
    {"use_bfloat16", KeyUse::harmless, kSpeed},
    {"_attn_implementation*", KeyUse::harmless, kSpeed},
    {"attn_implementation", KeyUse::harmless, kSpeed},
    {"use_flash_attn*", KeyUse::harmless, kSpeed},
    {"_flash_attn_2_enabled", KeyUse::harmless, kSpeed},
    {"reorder_and_upcast_attn", KeyUse::harmless, kSpeed},
    {"fused_*", KeyUse::harmless, kSpeed},
    {"torchscript", KeyUse::harmless, kSpeed},
    {"cache_implementation", KeyUse::harmless, kSpeed},
    {"prefill_chunk_size", KeyUse::harmless, kSpeed},
    {"context_window_size", KeyUse::harmless, kLimit},
    {"tf_legacy_loss", KeyUse::harmless, kTraining},
    {"return_dict*", KeyUse::harmless, kOutput},
    {"output_attentions", KeyUse::harmless, kOutput},
    {"output_hidden_states", KeyUse::harmless, kOutput},
    {"output_scores", KeyUse::harmless, kOutput},

    {"pad_token_id", KeyUse::harmless, kUnused},
    {"unk_token_id", KeyUse::harmless, kUnused},
    {"sep_token_id", KeyUse::harmless, kUnused},
    {"cls_token_id", KeyUse::harmless, kUnused},
    {"mask_token_id", KeyUse::harmless, kUnused},
    {"decoder_start_token_id", KeyUse::harmless, kUnused},

    {"n_ctx", KeyUse::harmless, kLimit},
    {"initial_context_length", KeyUse::harmless, "another name for the original context length"},
    {"seq_length", KeyUse::harmless, kLimit},
    {"seq_len", KeyUse::harmless, kLimit},
    {"max_sequence_length", KeyUse::harmless, kLimit},
    {"model_max_length", KeyUse::harmless, kLimit},
    {"original_max_position_embeddings", KeyUse::harmless, "this RoPE does not depend on it"},
    {"rope_scaling.original_max_position_embeddings", KeyUse::harmless, "this RoPE does not depend on it"},
    {"rope_scaling.mrope_section", KeyUse::harmless, "a text has one position, not three"},
    {"use_mrope", KeyUse::off, "positions in images"},
    {"sliding_window", KeyUse::harmless, kWindow},
    {"max_window_layers", KeyUse::harmless, "layer_types decides, or no layer has a window"},
    {"use_sliding_window", KeyUse::off, kWindow},
    {"sliding_window_pattern", KeyUse::off, kWindow},

    {"attention_bias", KeyUse::harmless, "a layer has the biases that its file contains"},
    {"mlp_bias", KeyUse::harmless, "a layer has the biases that its file contains"},
    {"is_decoder", KeyUse::harmless, kFixed},
    {"layer_norm_eps", KeyUse::harmless, kFixed},
    {"layer_norm_epsilon", KeyUse::harmless, kFixed},
    {"norm_eps", KeyUse::harmless, kFixed},
    {"rms_norm_eps", KeyUse::harmless, kFixed},

    {"do_sample", KeyUse::noted, kSampling},
    {"temperature", KeyUse::noted, kSampling},
    {"top_k", KeyUse::noted, kSampling},
    {"top_p", KeyUse::noted, kSampling},
    {"typical_p", KeyUse::noted, kSampling},
    {"repetition_penalty", KeyUse::noted, kSampling},
    {"length_penalty", KeyUse::noted, kSampling},
    {"diversity_penalty", KeyUse::noted, kSampling},
    {"exponential_decay_length_penalty", KeyUse::noted, kSampling},
    {"num_beams", KeyUse::noted, kSampling},
    {"num_beam_groups", KeyUse::noted, kSampling},
    {"num_return_sequences", KeyUse::noted, kSampling},
    {"early_stopping", KeyUse::noted, kSampling},
    {"min_length", KeyUse::noted, kSampling},
    {"max_length", KeyUse::noted, kSampling},
    {"max_new_tokens", KeyUse::noted, kSampling},
    {"no_repeat_ngram_size", KeyUse::noted, kSampling},
    {"encoder_no_repeat_ngram_size", KeyUse::noted, kSampling},
    {"bad_words_ids", KeyUse::noted, kSampling},
    {"suppress_tokens", KeyUse::noted, kSampling},
    {"begin_suppress_tokens", KeyUse::noted, kSampling},
    {"forced_bos_token_id", KeyUse::noted, kSampling},
    {"forced_eos_token_id", KeyUse::noted, kSampling},
    {"remove_invalid_values", KeyUse::noted, kSampling},
    {"prefix", KeyUse::noted, kSampling},

    {"vision_*", KeyUse::harmless, kMedia},
    {"image_*", KeyUse::harmless, kMedia},
    {"img_*", KeyUse::harmless, kMedia},
    {"video_*", KeyUse::harmless, kMedia},
    {"audio_*", KeyUse::harmless, kMedia},
    {"mm_*", KeyUse::harmless, kMedia},
    {"boi_*", KeyUse::harmless, kMedia},
    {"eoi_*", KeyUse::harmless, kMedia},
    {"projector_*", KeyUse::harmless, kMedia},
    {"multimodal_projector_bias", KeyUse::harmless, kMedia},
    {"spatial_merge_size", KeyUse::harmless, kMedia},
    {"use_image_newline_parameter", KeyUse::harmless, kMedia},
    {"embd_layer", KeyUse::harmless, kMedia},
    {"ignore_index", KeyUse::harmless, kTraining},

    {"quantization_config.modules_to_not_convert", KeyUse::harmless, "each tensor has its own type"},
    {"quantization_config.dequantize", KeyUse::harmless, kSpeed},
    {"compression_config", KeyUse::refused, "quantised weights"},
    {"moe_capacity", KeyUse::harmless, kTraining},
    {"moe_use_aux_free", KeyUse::harmless, "used if the file contains the bias"},
    {"moe_gate", KeyUse::harmless, kFixed},
    {"moe_layer_end_index", KeyUse::harmless, "the last layer"},
    {"scoring_func", KeyUse::harmless, kFixed},
    {"topk_method", KeyUse::harmless, kFixed},
    {"aux_loss_alpha", KeyUse::harmless, kTraining},
    {"seq_aux", KeyUse::harmless, kTraining},
    {"use_bidirectional_attention", KeyUse::off, "an encoder"},
    {"attention_out_bias", KeyUse::off, "biases that the family does not have"},
    {"img_processor", KeyUse::harmless, kMedia},
    {"num_experts", KeyUse::off, kExperts},
    {"num_local_experts", KeyUse::off, kExperts},
    {"n_routed_experts", KeyUse::off, kExperts},
    {"n_shared_experts", KeyUse::off, kExperts},
    {"num_experts_per_tok", KeyUse::off, kExperts},
    {"num_shared_experts", KeyUse::off, kExperts},
    {"moe_*", KeyUse::off, kExperts},
    {"shared_expert_intermediate_size", KeyUse::off, kExperts},
    {"decoder_sparse_step", KeyUse::one, kExperts},
    {"first_k_dense_replace", KeyUse::off, kExperts},
    {"mlp_only_layers", KeyUse::off, kExperts},
    {"norm_topk_prob", KeyUse::off, kExperts},

    {"attn_logit_softcapping", KeyUse::off, kScaling},
    {"final_logit_softcapping", KeyUse::off, kScaling},
    {"query_pre_attn_scalar", KeyUse::refused, kScaling},
    {"attention_multiplier", KeyUse::off, kScaling},
    {"embedding_multiplier", KeyUse::one, kScaling},
    {"residual_multiplier", KeyUse::one, kScaling},
    {"logits_scaling", KeyUse::one, kScaling},
    {"logit_scale", KeyUse::one, kScaling},
    {"scale_emb", KeyUse::one, kScaling},
    {"scale_depth", KeyUse::off, kScaling},
    {"dim_model_base", KeyUse::off, kScaling},
    {"mup_*", KeyUse::off, kScaling},
    {"attn_temperature_tuning", KeyUse::off, kScaling},

    {"alibi", KeyUse::off, kOtherAttention},
    {"use_alibi", KeyUse::off, kOtherAttention},
    {"clip_qkv", KeyUse::off, kOtherAttention},
    {"qk_norm", KeyUse::off, kOtherAttention},
    {"use_qk_norm", KeyUse::off, kOtherAttention},
    {"qk_layernorm", KeyUse::off, kOtherAttention},
    {"kv_lora_rank", KeyUse::off, kOtherAttention},
    {"q_lora_rank", KeyUse::off, kOtherAttention},
    {"num_kv_shared_layers", KeyUse::off, kOtherAttention},
    {"cla_share_factor", KeyUse::off, kOtherAttention},
    {"attention_chunk_size", KeyUse::off, kOtherAttention},
    {"no_rope_layers", KeyUse::off, kOtherAttention},
    {"no_rope_layer_interval", KeyUse::off, kOtherAttention},
    {"rope_local_base_freq", KeyUse::refused, "RoPE that differs between layers"},
    {"rope_ratio", KeyUse::one, "scaled RoPE"},
    {"rope_interleave", KeyUse::off, "rotation of neighbouring channels"},
    {"use_parallel_residual", KeyUse::off, "another form of layer"},
    {"parallel_attn", KeyUse::off, "another form of layer"},
    {"add_cross_attention", KeyUse::off, "an encoder"},
    {"cross_attention_hidden_size", KeyUse::off, "an encoder"},
    {"is_encoder_decoder", KeyUse::off, "an encoder"},
    {"tie_encoder_decoder", KeyUse::off, "an encoder"},
    {"pruned_heads", KeyUse::off, "heads that are removed"},
    {"chunk_size_feed_forward", KeyUse::harmless, kSpeed},
    {"is_causal", KeyUse::yes, kOtherAttention},
};

constexpr std::string_view kLength = "the length is limited by GenerateOptions::max_tokens and the context",
                           kChoice = "Kvasir's sampler does not use it";

constexpr KeyRule kGenerationRules[] = {
    {"transformers_version", KeyUse::harmless, kLabel},
    {"_from_model_config", KeyUse::harmless, kLabel},
    {"trust_remote_code", KeyUse::harmless, kLabel},
    {"chat_format", KeyUse::harmless, kLabel},
    {"pad_token_id", KeyUse::harmless, kUnused},
    {"decoder_start_token_id", KeyUse::harmless, kUnused},
    {"use_cache", KeyUse::harmless, kSpeed},
    {"cache_implementation", KeyUse::harmless, kSpeed},
    {"return_dict*", KeyUse::harmless, kOutput},
    {"output_*", KeyUse::harmless, kOutput},
    {"max_length", KeyUse::harmless, kLength},
    {"max_new_tokens", KeyUse::harmless, kLength},
    {"max_window_size", KeyUse::harmless, kLength},
    {"num_beams", KeyUse::one, kChoice},
    {"num_beam_groups", KeyUse::one, kChoice},
    {"num_return_sequences", KeyUse::one, kChoice},
    {"length_penalty", KeyUse::one, kChoice},
    {"typical_p", KeyUse::one, kChoice},
    {"guidance_scale", KeyUse::one, kChoice},
    {"early_stopping", KeyUse::off, kChoice},
    {"diversity_penalty", KeyUse::off, kChoice},
    {"presence_penalty", KeyUse::off, kChoice},
    {"frequency_penalty", KeyUse::off, kChoice},
    {"penalty_alpha", KeyUse::off, kChoice},
    {"epsilon_cutoff", KeyUse::off, kChoice},
    {"eta_cutoff", KeyUse::off, kChoice},
    {"min_length", KeyUse::off, kChoice},
    {"min_new_tokens", KeyUse::off, kChoice},
    {"no_repeat_ngram_size", KeyUse::off, kChoice},
    {"encoder_no_repeat_ngram_size", KeyUse::off, kChoice},
    {"encoder_repetition_penalty", KeyUse::one, kChoice},
    {"remove_invalid_values", KeyUse::off, kChoice},
    {"renormalize_logits", KeyUse::off, kChoice},
    {"suppress_tokens", KeyUse::off, kChoice},
    {"begin_suppress_tokens", KeyUse::off, kChoice},
    {"bad_words_ids", KeyUse::off, kChoice},
    {"stop_strings", KeyUse::off, kChoice},
};

// Whether this value of the key changes nothing.
bool is_neutral(KeyUse use, std::string_view value) {
  constexpr std::string_view kOff[] = {"false", "0", "0.0", "-0.0", "\"\"", "[]", "{}"};
  const auto is = [value](std::string_view text) { return value == text; };
  const bool off = std::any_of(std::begin(kOff), std::end(kOff), is);
  switch (use) {
    case KeyUse::harmless:
    case KeyUse::noted:
      return true;
    case KeyUse::off:
      return off;
    case KeyUse::one:
      return off || is("1") || is("1.0");
    case KeyUse::yes:
      return is("true");
    case KeyUse::refused:
      break;
  }
  return false;
}

// The name that the tables use: keys of the language model, wherever the file keeps it, and one spelling of RoPE's
// object.
std::string canonical_key(std::string_view path) {
  constexpr std::string_view kText = "text_config.", kNew = "rope_parameters.", kOld = "rope_scaling.";
  if (path.starts_with(kText)) path.remove_prefix(kText.size());
  if (!path.starts_with(kNew)) return std::string(path);
  path.remove_prefix(kNew.size());
  for (std::string_view type : {"full_attention.", "sliding_attention."})
    if (path.starts_with(type)) path.remove_prefix(type.size());
  return std::string(kOld).append(path);
}

// Marks a quantisation of the known method as an object, so that its keys are checked one by one. Errors: another
// method, by its name ("awq", "gptq", "fp8", ...).
Result<void> open_quantization(const ConfigView& file, std::string_view known) {
  for (const std::string& path : file.unread()) {
    if (canonical_key(path) != "quantization_config") continue;
    std::string method = "unnamed";
    auto holder = path.starts_with("text_config.") ? file.object("text_config") : std::optional(file);
    if (const auto config = holder ? holder->object("quantization_config") : std::nullopt)
      method = config->get_string_or("quant_method", method).value_or(method);
    if (!known.empty() && method == known) continue;
    return fail(Error::unsupported,
                fmt::format("quantised weights ({}: {}) are not supported", in_quotes(path), in_quotes(method)),
                file.where(), "the model in f32, f16 or bf16, or as GGUF");
  }
  return {};
}

std::string name_in(const ConfigView& file, const std::string& path) {
  const size_t slash = file.where().rfind('/');
  return fmt::format("{}: {}", file.where().substr(slash + 1), path);  // npos + 1 is 0
}

}  // namespace

const KeyRule* find_rule(std::span<const KeyRule> rules, std::string_view name) {
  const auto fits = [name](const KeyRule& rule) {
    const bool many = rule.name.ends_with('*');
    return many ? name.starts_with(rule.name.substr(0, rule.name.size() - 1)) : name == rule.name;
  };
  const auto it = std::find_if(rules.begin(), rules.end(), fits);
  return it == rules.end() ? nullptr : &*it;
}

Result<std::vector<Ignored>> unused_config_keys(const ConfigView& file, std::string_view known) {
  KVASIR_CHECK(open_quantization(file, known));
  std::vector<Ignored> ignored;
  for (const std::string& path : file.unread()) {
    const std::string key = canonical_key(path);
    const KeyRule* rule = find_rule(kConfigRules, key);
    if (rule == nullptr) {
      ignored.push_back({name_in(file, path), "not known to Kvasir", true});
      continue;
    }
    if (!is_neutral(rule->use, file.value_text(path)))
      return fail(
          Error::unsupported,
          fmt::format("{} is {}, which is not supported ({})", in_quotes(path), file.value_text(path), rule->why),
          file.where(), "a model without it");
    ignored.push_back({name_in(file, path), std::string(rule->why), rule->use == KeyUse::noted});
  }
  return ignored;
}

std::vector<Ignored> unused_generation_keys(const ConfigView& file) {
  std::vector<Ignored> ignored;
  for (const std::string& path : file.unread()) {
    const KeyRule* rule = find_rule(kGenerationRules, path);
    const bool neutral = rule != nullptr && is_neutral(rule->use, file.value_text(path));
    ignored.push_back(
        {name_in(file, path), std::string(rule != nullptr ? rule->why : "not known to Kvasir"), !neutral});
  }
  return ignored;
}

}  // namespace kvasir

"""GGUF's metadata of many families: from Hugging Face's config, as llama.cpp's converter writes it, and back.

Keys stand without the architecture's name. IMPLIED has the values that an architecture implies and GGUF does not state.
"""
import math

import numpy as np

from family_blocks import rope_settings
from to_gguf import rope_divisors

# Keys that the converter writes for each family without a list of its own, if the config has the number.
COMMON = (
    ('context_length', ('max_position_embeddings',)), ('embedding_length', ('hidden_size',)),
    ('feed_forward_length', ('intermediate_size',)), ('attention.head_count', ('num_attention_heads',)),
    ('attention.head_count_kv', ('num_key_value_heads',)), ('attention.layer_norm_rms_epsilon', ('rms_norm_eps',)),
    ('attention.layer_norm_epsilon', ('layer_norm_eps', 'norm_epsilon')),
    ('expert_count', ('num_local_experts', 'num_experts')), ('expert_used_count', ('num_experts_per_tok',)),
    ('expert_group_count', ('n_group',)), ('expert_group_used_count', ('topk_group',)),
    ('attention.key_length', ('head_dim',)), ('attention.value_length', ('head_dim',)))
GATING = {'softmax': 1, 'sigmoid': 2}


def rope_width(config):
    return config.get('head_dim') or config['hidden_size'] // config['num_attention_heads']


def turned(config):
    return int(rope_width(config) * (rope_settings(config)['partial_rotary_factor'] or 1.0))


def scaling(config):
    rope = rope_settings(config)
    kind = rope.get('rope_type') or rope.get('type')
    if kind == 'linear':
        return {'rope.scaling.type': 'linear', 'rope.scaling.factor': rope['factor']}
    if kind != 'yarn':
        return {}
    keys = {'rope.scaling.type': 'yarn', 'rope.scaling.factor': rope['factor'],
            'rope.scaling.original_context_length': rope['original_max_position_embeddings']}
    for name, key in (('attention_factor', 'attn_factor'), ('beta_fast', 'beta_fast'), ('beta_slow', 'beta_slow')):
        if rope.get(name) is not None:
            keys['rope.scaling.yarn_' + key] = rope[name]
    return keys


def common(config):
    keys = {'block_count': config['num_hidden_layers']}
    for key, names in COMMON:
        found = [config[name] for name in names if config.get(name) is not None]
        if found:
            keys[key] = found[0]
    keys |= scaling(config)
    if rope_settings(config)['rope_theta'] is not None:
        keys['rope.freq_base'] = float(rope_settings(config)['rope_theta'])
    local = config.get('rope_local_base_freq') or config.get('rope_parameters', {}).get(
        'sliding_attention', {}).get('rope_theta')
    if local:
        keys['rope.freq_base_swa'] = float(local)
    if config.get('scoring_func'):
        keys['expert_gating_func'] = GATING[config['scoring_func']]
    return keys


def listed(config, *wanted):
    """Some of the common keys: of a family that the converter has a list of its own for."""
    keys = common(config)
    return {key: keys[key] for key in ('block_count', *wanted) if key in keys}


PLAIN = ('context_length', 'embedding_length', 'feed_forward_length', 'attention.head_count')
HEADS = ('attention.head_count_kv', 'attention.key_length', 'attention.value_length')


def llama(config):
    return common(config) | {'vocab_size': config['vocab_size'], 'rope.dimension_count': rope_width(config)}


def gemma(config):
    return listed(config, *PLAIN, *HEADS, 'attention.layer_norm_rms_epsilon')


def gemma2(config):
    return gemma(config) | {'attn_logit_softcapping': config['attn_logit_softcapping'],
                            'final_logit_softcapping': config['final_logit_softcapping'],
                            'attention.sliding_window': config['sliding_window']}


def gemma3(config):
    keys = common(config) | {'attention.sliding_window': config['sliding_window']}
    cap = config.get('final_logit_softcapping')
    return keys | ({'final_logit_softcapping': cap} if cap else {})


def granite(config):
    return llama(config) | {'attention.scale': config['attention_multiplier'],
                            'embedding_scale': config['embedding_multiplier'],
                            'residual_scale': config['residual_multiplier'], 'logit_scale': config['logits_scaling']}


def granitemoe(config):
    shared = config.get('shared_intermediate_size')
    return granite(config) | ({'expert_shared_feed_forward_length': shared} if shared else {})


def minicpm(config):
    return common(config) | {'embedding_scale': float(config['scale_emb']),
                             'residual_scale': config['scale_depth'] / config['num_hidden_layers'] ** 0.5,
                             'logit_scale': config['hidden_size'] / config['dim_model_base']}


def ministral3(config):
    rope = config['rope_parameters']
    return llama(config) | {'rope.scaling.yarn_log_multiplier': rope['mscale_all_dim'],
                            'attention.temperature_scale': rope['llama_4_scaling_beta']}


def windows(config):
    if not config.get('sliding_window'):
        return {}
    slides = [kind == 'sliding_attention' for kind in config['layer_types']]
    return {'attention.sliding_window': config['sliding_window'], 'attention.sliding_window_pattern': slides}


def olmo(config):
    return common(config) | windows(config)


def exaone4(config):
    return common(config) | {'vocab_size': config['vocab_size']} | windows(config)


def rotated(config):
    return common(config) | {'rope.dimension_count': turned(config)}


def hunyuan(config):
    """The one theta that its alpha means; a context of 256K, whatever the config says."""
    rope, width = rope_settings(config), rope_width(config)
    return common(config) | {
        'rope.freq_base': rope['rope_theta'] * rope['alpha'] ** (width / (width - 2)), 'rope.scaling.type': 'none',
        'rope.scaling.factor': 1.0, 'rope.scaling.original_context_length': 256 * 1024, 'context_length': 256 * 1024}


def baichuan(config):
    keys = {'tensor_data_layout': 'Meta AI original pth'} | listed(config, *PLAIN, 'attention.layer_norm_rms_epsilon')
    heads = config['num_attention_heads']
    return keys | {'attention.head_count_kv': heads, 'rope.dimension_count': config['hidden_size'] // heads}


def phi2(config):
    """The MLP's width is not asked for: four times the hidden size."""
    keys = listed(config, *PLAIN, 'attention.layer_norm_epsilon') | {'feed_forward_length': 4 * config['hidden_size']}
    return keys | {'attention.head_count_kv': config['num_attention_heads'], 'rope.dimension_count': turned(config)}


def longrope_factor(config):
    longer = config['max_position_embeddings'] / config['original_max_position_embeddings']
    return math.sqrt(1 + math.log(longer) / math.log(config['original_max_position_embeddings'])) if longer > 1 else 1.0


def phi3(config):
    keys = listed(config, *PLAIN, 'attention.head_count_kv', 'attention.layer_norm_rms_epsilon', 'rope.freq_base')
    return keys | {'rope.dimension_count': turned(config),
                   'attention.sliding_window': config.get('sliding_window') or 0,
                   'rope.scaling.original_context_length': config['original_max_position_embeddings'],
                   'rope.scaling.attn_factor': longrope_factor(config)}


def phimoe(config):
    return phi3(config) | {'expert_count': config['num_local_experts'],
                           'expert_used_count': config['num_experts_per_tok']}


def gpt_neox(config):
    return listed(config, *PLAIN, 'attention.layer_norm_epsilon') | {
        'rope.dimension_count': turned(config), 'use_parallel_residual': config['use_parallel_residual']}


def stablelm(config):
    return listed(config, *PLAIN, 'attention.head_count_kv', 'attention.layer_norm_epsilon') | {
        'rope.dimension_count': turned(config), 'use_parallel_residual': config['use_parallel_residual']}


def cohere(config):
    return common(config) | {'logit_scale': config['logit_scale'], 'rope.scaling.type': 'none'}


def cohere2(config):
    return cohere(config) | {'attention.sliding_window': config['sliding_window'], 'vocab_size': config['vocab_size'],
                             'rope.dimension_count': turned(config)}


def qwen_moe(config):
    shared = config.get('shared_expert_intermediate_size')
    return common(config) | {'expert_feed_forward_length': config['moe_intermediate_size']} | (
        {'expert_shared_feed_forward_length': shared} if shared else {})


def deepseek(config):
    return common(config) | {
        'rope.dimension_count': rope_width(config), 'rope.scaling.type': 'none', 'vocab_size': config['vocab_size'],
        'leading_dense_block_count': config['first_k_dense_replace'], 'expert_weights_scale': 1.0,
        'expert_feed_forward_length': config['moe_intermediate_size'], 'expert_count': config['n_routed_experts'],
        'expert_shared_count': config['n_shared_experts']}


def glm4_moe(config):
    return rotated(config) | {
        'expert_count': config['n_routed_experts'], 'expert_feed_forward_length': config['moe_intermediate_size'],
        'expert_shared_count': config['n_shared_experts'], 'leading_dense_block_count': config['first_k_dense_replace'],
        'expert_gating_func': 2, 'expert_weights_scale': config['routed_scaling_factor'],
        'expert_weights_norm': config['norm_topk_prob'], 'nextn_predict_layers': config['num_nextn_predict_layers']}


def ernie4_5_moe(config):
    return common(config) | {
        'expert_count': config['moe_num_experts'], 'expert_used_count': config['moe_k'],
        'interleave_moe_layer_step': config['moe_layer_interval'],
        'leading_dense_block_count': config['moe_layer_start_index'],
        'expert_feed_forward_length': config['moe_intermediate_size'],
        'expert_shared_count': config['moe_num_shared_experts'],
        'expert_shared_feed_forward_length': config['intermediate_size'] // config['num_key_value_heads']}


def gpt_oss(config):
    return common(config) | {'attention.sliding_window': config['sliding_window'],
                             'expert_feed_forward_length': config['intermediate_size']}


METADATA = {
    'gemma': gemma, 'gemma2': gemma2, 'gemma3_text': gemma3, 'smollm3': llama, 'granite': granite, 'minicpm': minicpm,
    'ministral3': ministral3, 'olmo2': olmo, 'olmo3': olmo, 'exaone4': exaone4, 'glm4': rotated, 'seed_oss': common,
    'ernie4_5': common, 'hunyuan_v1_dense': hunyuan, 'internlm2': common, 'baichuan': baichuan, 'phi3': phi3,
    'starcoder2': common, 'phi': phi2, 'gpt_neox': gpt_neox, 'stablelm': stablelm, 'cohere': cohere, 'cohere2': cohere2,
    'qwen3_moe': qwen_moe, 'qwen2_moe': qwen_moe, 'mixtral': llama, 'olmoe': common, 'granitemoe': granitemoe,
    'granitemoeshared': granitemoe, 'deepseek': deepseek, 'glm4_moe': glm4_moe, 'ernie4_5_moe': ernie4_5_moe,
    'phimoe': phimoe, 'gpt_oss': gpt_oss}


def metadata(config):
    """{key: value}; whole numbers are int, real ones float, lists are of bool."""
    return METADATA[config['model_type']](config)


def extra_tensors(config):
    """Divisors of the frequencies: longrope's two lists, or Llama 3.1's one."""
    rope = config.get('rope_scaling') or {}
    lists = {f'rope_factors_{which}': rope.get(which + '_factor') for which in ('long', 'short')}
    lists['rope_freqs'] = rope_divisors(config)
    return {name + '.weight': np.array(found) for name, found in lists.items() if found is not None}


# ---- The way back.

KINDS = {
    'gemma': 'gemma', 'gemma2': 'gemma2', 'gemma3': 'gemma3_text', 'smollm3': 'smollm3', 'granite': 'granite',
    'minicpm': 'minicpm', 'mistral3': 'ministral3', 'olmo2': 'olmo2', 'exaone4': 'exaone4', 'glm4': 'glm4',
    'seed_oss': 'seed_oss', 'ernie4_5': 'ernie4_5', 'hunyuan-dense': 'hunyuan_v1_dense', 'internlm2': 'internlm2',
    'baichuan': 'baichuan', 'phi3': 'phi3', 'starcoder2': 'starcoder2', 'phi2': 'phi', 'gptneox': 'gpt_neox',
    'stablelm': 'stablelm', 'command-r': 'cohere', 'cohere2': 'cohere2', 'qwen3moe': 'qwen3_moe',
    'qwen2moe': 'qwen2_moe', 'llama': 'mixtral', 'olmoe': 'olmoe', 'granitemoe': 'granitemoe', 'deepseek': 'deepseek',
    'glm4moe': 'glm4_moe', 'ernie4_5-moe': 'ernie4_5_moe', 'phimoe': 'phimoe', 'gpt-oss': 'gpt_oss'}
BACK = {
    'block_count': 'num_hidden_layers', 'context_length': 'max_position_embeddings', 'embedding_length': 'hidden_size',
    'feed_forward_length': 'intermediate_size', 'attention.head_count': 'num_attention_heads',
    'attention.head_count_kv': 'num_key_value_heads', 'attention.key_length': 'head_dim',
    'rope.freq_base': 'rope_theta', 'rope.freq_base_swa': 'rope_local_base_freq',
    'attention.layer_norm_rms_epsilon': 'rms_norm_eps',
    'attention.layer_norm_epsilon': 'layer_norm_eps', 'attention.sliding_window': 'sliding_window',
    'attn_logit_softcapping': 'attn_logit_softcapping', 'final_logit_softcapping': 'final_logit_softcapping',
    'attention.scale': 'attention_multiplier', 'embedding_scale': 'embedding_multiplier',
    'residual_scale': 'residual_multiplier', 'expert_used_count': 'num_experts_per_tok',
    'expert_feed_forward_length': 'moe_intermediate_size', 'expert_weights_scale': 'routed_scaling_factor',
    'expert_weights_norm': 'norm_topk_prob', 'leading_dense_block_count': 'first_k_dense_replace',
    'use_parallel_residual': 'use_parallel_residual'}
BACK_SCALING = {'type': 'rope_type', 'factor': 'factor', 'original_context_length': 'original_max_position_embeddings',
                'attn_factor': 'attention_factor', 'yarn_attn_factor': 'attention_factor',
                'yarn_beta_fast': 'beta_fast', 'yarn_beta_slow': 'beta_slow'}
IMPLIED = {
    'gemma2': lambda c: {'query_pre_attn_scalar': c['head_dim']},
    'gemma3_text': lambda c: {'query_pre_attn_scalar': c['head_dim']},
    'qwen3_moe': lambda c: {'norm_topk_prob': True}, 'qwen2_moe': lambda c: {'norm_topk_prob': False},
    'olmoe': lambda c: {'norm_topk_prob': False}, 'deepseek': lambda c: {'norm_topk_prob': False},
    'glm4_moe': lambda c: {'n_group': 1}, 'starcoder2': lambda c: {'hidden_act': 'gelu_pytorch_tanh'},
    'phi': lambda c: {'hidden_act': 'gelu_new'}, 'gpt_neox': lambda c: {'hidden_act': 'gelu_new'},
    'minicpm': lambda c: {'scale_emb': c['embedding_multiplier'],
                          'dim_model_base': c['hidden_size'] / c['logits_scaling'],
                          'scale_depth': c['residual_multiplier'] * c['num_hidden_layers'] ** 0.5},
    'ernie4_5_moe': lambda c: {'moe_layer_start_index': c['first_k_dense_replace']},
}


def decimal(value):
    """The number that a config said, if it was a short decimal: a float32 near 0.22 is 0.22."""
    if not isinstance(value, float):
        return value
    short = float(f'{value:.6g}')
    return short if np.float32(short) == np.float32(value) else value


def config_of(arch, numbers, tensors):
    """The config that the metadata was made from, as far as logits go. Takes RoPE's divisors out of tensors."""
    numbers = {key: decimal(value) for key, value in numbers.items()}
    config = {name: numbers[key] for key, name in BACK.items() if key in numbers}
    kind = KINDS[arch]
    rope = {name: numbers['rope.scaling.' + key] for key, name in BACK_SCALING.items()
            if 'rope.scaling.' + key in numbers}
    for which in ('long', 'short'):
        divisors = tensors.pop(f'rope_factors_{which}.weight', None)
        if divisors is not None:
            rope |= {'rope_type': 'longrope', which + '_factor': list(divisors)}
    config['rope_divisors'] = tensors.pop('rope_freqs.weight', None)
    if kind == 'gpt_oss':
        rope['truncate'] = False
    if 'attention.temperature_scale' in numbers:
        scale = numbers['rope.scaling.yarn_log_multiplier']
        rope |= {'llama_4_scaling_beta': numbers['attention.temperature_scale'], 'mscale': 1.0, 'mscale_all_dim': scale}
    config |= {'model_type': kind, 'vocab_size': len(tensors['token_embd.weight']), 'rope_scaling': rope or None}
    config['logit_scale' if kind.startswith('cohere') else 'logits_scaling'] = numbers.get('logit_scale')
    if 'rope.dimension_count' in numbers:
        config['partial_rotary_factor'] = numbers['rope.dimension_count'] / rope_width(config)
    pattern = numbers.get('attention.sliding_window_pattern')
    if pattern:
        config['layer_types'] = ['sliding_attention' if slides else 'full_attention' for slides in pattern]
    config['use_qk_norm'] = config['qk_layernorm'] = 'blk.0.attn_q_norm.weight' in tensors
    return config | IMPLIED.get(kind, lambda c: {})(config)

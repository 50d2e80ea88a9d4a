"""Writes one tiny random model per family, as Hugging Face folders; always the same files.

usage: make_tiny.py OUT [--gguf]        OUT/NAME/config.json and model.safetensors; --gguf: OUT/NAME.gguf too

The configs have the keys of real models of each family. The logits' standard deviation is 1 to 3, so the best ids are
clear of rounding, and no two positions or channels are alike.
"""
import argparse
import json
import os
import sys
import zlib

import numpy as np

import to_gguf
from model_files import write_safetensors

CTX, VOCAB = 400, 307
LLAMA3 = {'factor': 8.0, 'low_freq_factor': 1.0, 'high_freq_factor': 4.0, 'original_max_position_embeddings': 256,
          'rope_type': 'llama3'}     # with 16 channels a head some waves are kept, one is blended, some are slowed


def llama_config(kind, architecture, hidden, heads, groups, **more):
    return {
        'architectures': [architecture], 'model_type': kind, 'hidden_size': hidden, 'num_hidden_layers': 3,
        'num_attention_heads': heads, 'num_key_value_heads': groups, 'intermediate_size': 2 * hidden + 20,
        'max_position_embeddings': CTX, 'vocab_size': VOCAB, 'hidden_act': 'silu', 'initializer_range': 0.02,
        'rms_norm_eps': 1e-5, 'rope_theta': 10000.0, 'tie_word_embeddings': False, 'torch_dtype': 'float32',
        'bos_token_id': 1, 'eos_token_id': 2, 'use_cache': True} | more


def meta_llama(hidden, heads, groups, **more):
    more = {'attention_bias': False, 'attention_dropout': 0.0, 'mlp_bias': False, 'pretraining_tp': 1,
            'rope_scaling': None} | more
    return llama_config('llama', 'LlamaForCausalLM', hidden, heads, groups, **more)


def llama_v5():
    config = meta_llama(64, 4, 1, head_dim=16, dtype='bfloat16', eos_token_id=[301, 7, 19],
                        rope_parameters=LLAMA3 | {'rope_theta': 500000.0})
    return without(config, 'rope_theta', 'rope_scaling', 'torch_dtype')


def text_config():
    text = meta_llama(48, 6, 2, head_dim=12, rope_parameters={'rope_theta': 20000.0, 'rope_type': 'default'})
    return {'architectures': ['LlavaForConditionalGeneration'], 'model_type': 'llava', 'dtype': 'float32',
            'image_token_index': 300, 'text_config': without(text, 'rope_theta', 'rope_scaling', 'torch_dtype'),
            'tie_word_embeddings': False, 'transformers_version': '5.0.0'}


def qwen2(**more):
    more = {'use_sliding_window': False, 'max_window_layers': 3} | more
    return llama_config('qwen2', 'Qwen2ForCausalLM', 56, 7, 1, rms_norm_eps=1e-6, rope_theta=1000000.0,
                        attention_dropout=0.0, sliding_window=32, tie_word_embeddings=True, **more)


def qwen3(**more):
    more = {'sliding_window': None, 'use_sliding_window': False, 'max_window_layers': 3} | more
    return llama_config('qwen3', 'Qwen3ForCausalLM', 48, 4, 2, head_dim=20, rms_norm_eps=1e-6, rope_theta=1000000,
                        attention_bias=False, attention_dropout=0.0, rope_scaling=None, eos_token_id=3,
                        tie_word_embeddings=True, **more)


def phi3(window):
    return llama_config('phi3', 'Phi3ForCausalLM', 64, 4, 2, torch_dtype='float16', attention_bias=False,
                        attention_dropout=0.0, embd_pdrop=0.0, resid_pdrop=0.0, rope_scaling=None,
                        sliding_window=window, original_max_position_embeddings=CTX, pad_token_id=300, eos_token_id=300)


def mistral(window):
    return llama_config('mistral', 'MistralForCausalLM', 60, 6, 2, rope_theta=1000000.0, sliding_window=window)


def gpt2():
    return {
        'activation_function': 'gelu_new', 'architectures': ['GPT2LMHeadModel'], 'attn_pdrop': 0.1, 'bos_token_id': 306,
        'embd_pdrop': 0.1, 'eos_token_id': 306, 'initializer_range': 0.02, 'layer_norm_epsilon': 1e-5,
        'model_type': 'gpt2', 'n_ctx': CTX, 'n_embd': 60, 'n_head': 5, 'n_inner': None, 'n_layer': 3,
        'n_positions': CTX, 'resid_pdrop': 0.1, 'tie_word_embeddings': False, 'torch_dtype': 'float32',
        'vocab_size': VOCAB}


def without(config, *keys):
    return {key: value for key, value in config.items() if key not in keys}


MODELS = {
    'llama3-scaled': meta_llama(64, 4, 2, head_dim=16, rope_theta=500000.0, rope_scaling=LLAMA3),
    'llama-linear': meta_llama(48, 6, 3, rope_scaling={'type': 'linear', 'factor': 2.5}, tie_word_embeddings=True),
    'llama-v5': llama_v5(),
    'llama-text-config': text_config(),
    'llama-biased': meta_llama(48, 4, 4, attention_bias=True, mlp_bias=True, tie_word_embeddings=True),
    'mistral': mistral(None),
    'mistral-window': mistral(20),
    'qwen2': qwen2(),     # its window is switched off
    'qwen2-alternating': qwen2(num_hidden_layers=4, use_sliding_window=True,
                               layer_types=['sliding_attention', 'full_attention'] * 2),
    'qwen3': qwen3(),
    'qwen3-upper-window': qwen3(num_hidden_layers=4, sliding_window=13, use_sliding_window=True, max_window_layers=2),
    'phi3': phi3(512),
    'phi3-window': phi3(27),
    'gpt2': gpt2(),
}
GENERATION = {'qwen3': {'bos_token_id': 1, 'do_sample': True, 'eos_token_id': [5, 9], 'pad_token_id': 1,
                        'temperature': 0.6, 'top_k': 20, 'top_p': 0.95}}
KINDS = {'float32': 'F32', 'float16': 'F16', 'bfloat16': 'BF16'}


def draws(name):
    """Returns (matrix(rows, cols, gain), vector(size, middle, spread)) of one random stream."""
    rng = np.random.RandomState(zlib.crc32(name.encode()))

    def matrix(rows, cols, gain):
        return rng.randn(rows, cols) * gain / np.sqrt(cols)

    def vector(size, middle, spread):
        return middle + spread * rng.randn(size)

    return matrix, vector


def llama_tensors(name, c):
    matrix, vector = draws(name)
    hidden, ffn, kind = c['hidden_size'], c['intermediate_size'], c['model_type']
    width = c.get('head_dim') or hidden // c['num_attention_heads']
    q, kv = c['num_attention_heads'] * width, c['num_key_value_heads'] * width
    tensors = {'model.embed_tokens.weight': matrix(VOCAB, hidden, 2.5), 'model.norm.weight': vector(hidden, 1, 0.2)}
    if not c['tie_word_embeddings']:
        tensors['lm_head.weight'] = matrix(VOCAB, hidden, 2)
    for layer in range(c['num_hidden_layers']):
        at = f'model.layers.{layer}.'
        for norm in ('input_layernorm', 'post_attention_layernorm'):
            tensors[f'{at}{norm}.weight'] = vector(hidden, 1, 0.2)
        for part, rows, cols, gain in (('q', q, hidden, 1.4), ('k', kv, hidden, 1.4), ('v', kv, hidden, 1),
                                       ('o', hidden, q, 2)):
            tensors[f'{at}self_attn.{part}_proj.weight'] = matrix(rows, cols, gain)
            if c.get('attention_bias') or kind == 'qwen2' and part != 'o':
                tensors[f'{at}self_attn.{part}_proj.bias'] = vector(rows, 0, 0.5)
        for part, rows, cols, gain in (('gate', ffn, hidden, 1.5), ('up', ffn, hidden, 1.5), ('down', hidden, ffn, 1)):
            tensors[f'{at}mlp.{part}_proj.weight'] = matrix(rows, cols, gain)
            if c.get('mlp_bias'):
                tensors[f'{at}mlp.{part}_proj.bias'] = vector(rows, 0, 0.3)
        if kind == 'qwen3':
            for part in 'qk':
                tensors[f'{at}self_attn.{part}_norm.weight'] = vector(width, 1.2, 0.4)
        if kind == 'phi3':
            for fused, parts in (('self_attn.qkv', ('self_attn.q', 'self_attn.k', 'self_attn.v')),
                                 ('mlp.gate_up', ('mlp.gate', 'mlp.up'))):
                rows = [tensors.pop(f'{at}{part}_proj.weight') for part in parts]
                tensors[f'{at}{fused}_proj.weight'] = np.concatenate(rows)
    return tensors


def gpt2_tensors(name, c):
    matrix, vector = draws(name)
    hidden = c['n_embd']
    tensors = {'transformer.wte.weight': matrix(VOCAB, hidden, 2), 'transformer.wpe.weight': matrix(CTX, hidden, 2),
               'lm_head.weight': matrix(VOCAB, hidden, 2)}
    for norm in ['ln_f'] + [f'h.{layer}.ln_{i}' for layer in range(c['n_layer']) for i in (1, 2)]:
        tensors[f'transformer.{norm}.weight'] = vector(hidden, 1, 0.2)
        tensors[f'transformer.{norm}.bias'] = vector(hidden, 0, 0.2)
    for layer in range(c['n_layer']):
        for part, rows, cols in (('attn.c_attn', 3, 1), ('attn.c_proj', 1, 1),
                                 ('mlp.c_fc', 4, 1), ('mlp.c_proj', 1, 4)):
            at = f'transformer.h.{layer}.{part}'
            tensors[at + '.weight'] = matrix(rows * hidden, cols * hidden, 1.4).T     # Conv1D, [in][out]
            tensors[at + '.bias'] = vector(rows * hidden, 0, 0.2)
    return tensors


def tiny_tensors(name, config):
    """Returns the tensors, under the names of the folder."""
    if config['model_type'] == 'gpt2':
        return gpt2_tensors(name, config)
    if 'text_config' not in config:
        return llama_tensors(name, config)
    return {name.replace('model.', 'model.language_model.', 1): tensor
            for name, tensor in llama_tensors(name, config['text_config']).items()}


def write_json(path, value):
    with open(path, 'w', encoding='utf-8') as file:
        json.dump(value, file, indent=2)


def write_model(name, folder):
    config = MODELS[name]
    os.makedirs(folder, exist_ok=True)
    write_json(os.path.join(folder, 'config.json'), config)
    if name in GENERATION:
        write_json(os.path.join(folder, 'generation_config.json'), GENERATION[name])
    kind = KINDS[config.get('dtype') or config['torch_dtype']]
    write_safetensors(os.path.join(folder, 'model.safetensors'), tiny_tensors(name, config), kind)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('out')
    parser.add_argument('--gguf', action='store_true')
    args = parser.parse_args()
    for name in MODELS:
        folder = os.path.join(args.out, name)
        write_model(name, folder)
        if args.gguf:
            to_gguf.convert(folder, folder + '.gguf')
    return 0


if __name__ == '__main__':
    sys.exit(main())

"""Writes a Hugging Face folder as GGUF, as llama.cpp's converter does, but keeps every matrix in its type.

usage: to_gguf.py MODEL_FOLDER OUT.gguf [--split N] [--version 2|3] [--alignment 32|64] [--tokenizer-pre NAME]

After the specification, https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. --split N writes
OUT-00001-of-0000N.gguf and so on. --tokenizer-pre adds the folder's tokenizer.json (byte-level BPE) to the file, under
that pre-tokeniser's name. No code is shared with the engine's GGUF reader, which this file tests.
"""
import argparse
import math
import os
import re
import struct
import sys

import numpy as np

from model_files import layer_windows, read_folder, read_json, refuse, widen

ARCHITECTURES = {'llama': 'llama', 'mistral': 'llama', 'qwen2': 'qwen2', 'qwen3': 'qwen3', 'phi3': 'phi3',
                 'gpt2': 'gpt2'}
TENSOR_TYPES = {'F32': 0, 'F16': 1, 'BF16': 30, 'MXFP4': 39}
BLOCK = {'MXFP4': 32}     # elements per block, for arrays that store blocks as elements
FILE_TYPES = {'F32': 0, 'F16': 1, 'BF16': 32}     # general.file_type: ALL_F32, MOSTLY_F16, MOSTLY_BF16
U16, U32, I32, F32, BOOL, STRING, ARRAY = 2, 4, 5, 6, 7, 8, 9
FORMATS = {U16: 'H', U32: 'I', I32: 'i', F32: 'f', BOOL: '?'}
NORMAL, CONTROL, USER_DEFINED, UNUSED = 1, 3, 4, 5     # tokenizer.ggml.token_type

OUTER_NAMES = {'model.embed_tokens': 'token_embd', 'model.norm': 'output_norm', 'lm_head': 'output',
               'wte': 'token_embd', 'wpe': 'position_embd', 'ln_f': 'output_norm'}
LAYER_NAMES = {
    'input_layernorm': 'attn_norm', 'self_attn.q_proj': 'attn_q', 'self_attn.k_proj': 'attn_k',
    'self_attn.v_proj': 'attn_v', 'self_attn.o_proj': 'attn_output', 'self_attn.q_norm': 'attn_q_norm',
    'self_attn.k_norm': 'attn_k_norm', 'self_attn.qkv_proj': 'attn_qkv', 'post_attention_layernorm': 'ffn_norm',
    'mlp.gate_proj': 'ffn_gate', 'mlp.up_proj': 'ffn_up', 'mlp.down_proj': 'ffn_down',
    'mlp.gate_up_proj': 'ffn_up',     # phi3 has no ffn_gate: the fused rows are ffn_up
    'ln_1': 'attn_norm', 'attn.c_attn': 'attn_qkv', 'attn.c_proj': 'attn_output', 'ln_2': 'ffn_norm',
    'mlp.c_fc': 'ffn_up', 'mlp.c_proj': 'ffn_down'}


def gguf_name(name):
    stem, _, suffix = name.removeprefix('transformer.').rpartition('.')
    layer = re.fullmatch(r'(?:model\.layers|h)\.(\d+)\.(.+)', stem)
    if layer:
        return f'blk.{layer[1]}.{LAYER_NAMES[layer[2]]}.{suffix}'
    return f'{OUTER_NAMES[stem]}.{suffix}'


def pairs_together(rows, heads):
    """Returns rows of Q or K (weight or bias) in an order that puts the channels of a rotation pair, (i, i + D / 2),
    side by side."""
    return rows.reshape(heads, 2, len(rows) // heads // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def rope_divisors(config):
    """Returns Llama 3.1's base frequency / scaled frequency for each pair, or None."""
    rope = config.get('rope_parameters') or config.get('rope_scaling') or {}
    if rope.get('rope_type') != 'llama3':
        return None
    width = config.get('head_dim') or config['hidden_size'] // config['num_attention_heads']
    theta, factor = rope.get('rope_theta') or config['rope_theta'], rope['factor']
    low, high, old = (rope[key] for key in ('low_freq_factor', 'high_freq_factor', 'original_max_position_embeddings'))
    divisors = []
    for i in range(0, width, 2):
        wave = 2 * math.pi * theta ** (i / width)
        smooth = (old / wave - low) / (high - low)
        between = 1 / ((1 - smooth) / factor + smooth)
        divisors.append(1.0 if wave < old / high else factor if wave > old / low else between)
    return np.array(divisors)


def tensors_of(config, arch, stored):
    """Returns [(name, type, array)] in the order of the file; one-dimensional tensors are float32."""
    out = []
    divisors = rope_divisors(config)
    if divisors is not None:
        out.append(('rope_freqs.weight', 'F32', divisors.astype('<f4')))
    for name, (kind, array) in stored.items():
        if name.endswith(('.attn.bias', '.attn.masked_bias')):     # GPT-2's causal mask
            continue
        part = name.rsplit('.', 2)[-2]
        if arch == 'llama' and part in ('q_proj', 'k_proj'):
            heads = config['num_attention_heads']
            array = pairs_together(array, heads if part == 'q_proj' else config.get('num_key_value_heads') or heads)
        if arch == 'gpt2' and part.startswith('c_') and name.endswith('.weight'):
            array = array.T
        if array.ndim == 1:
            kind, array = 'F32', widen(kind, array).astype('<f4')
        if kind not in TENSOR_TYPES:
            refuse(name, f'type {kind} has no place in these files')
        out.append((gguf_name(name), kind, array))
    return out


def gpt2_entries(config):
    return [
        ('gpt2.block_count', U32, config['n_layer']), ('gpt2.context_length', U32, config['n_positions']),
        ('gpt2.embedding_length', U32, config['n_embd']),
        ('gpt2.feed_forward_length', U32, config.get('n_inner') or 4 * config['n_embd']),
        ('gpt2.attention.head_count', U32, config['n_head']),
        ('gpt2.attention.layer_norm_epsilon', F32, config['layer_norm_epsilon'])]


def llama_entries(config, arch):
    """As the converter writes them: only llama has a vocab_size, only llama and phi3 a rope.dimension_count."""
    heads = config['num_attention_heads']
    width = config.get('head_dim') or config['hidden_size'] // heads
    rope = config.get('rope_parameters') or config.get('rope_scaling') or {}
    entries = [
        ('block_count', U32, config['num_hidden_layers']), ('context_length', U32, config['max_position_embeddings']),
        ('embedding_length', U32, config['hidden_size']), ('feed_forward_length', U32, config['intermediate_size']),
        ('attention.head_count', U32, heads),
        ('attention.head_count_kv', U32, config.get('num_key_value_heads') or heads),
        ('rope.freq_base', F32, rope.get('rope_theta') or config.get('rope_theta') or 10000.0),
        ('attention.layer_norm_rms_epsilon', F32, config['rms_norm_eps'])]
    if config.get('head_dim'):
        entries += [('attention.key_length', U32, width), ('attention.value_length', U32, width)]
    if arch in ('llama', 'phi3'):
        entries.append(('rope.dimension_count', U32, width))
    if arch == 'llama':
        entries.append(('vocab_size', U32, config['vocab_size']))
    if arch == 'phi3':
        entries += [('rope.scaling.original_context_length', U32, config['original_max_position_embeddings']),
                    ('attention.sliding_window', U32, config.get('sliding_window') or 0)]
    elif any(layer_windows(config)):
        windows = layer_windows(config)
        entries += [('attention.sliding_window', U32, max(windows)),
                    ('attention.sliding_window_pattern', ARRAY, (I32, [int(window > 0) for window in windows]))]
    kind = rope.get('rope_type') or rope.get('type') or 'default'
    if kind == 'linear':
        entries += [('rope.scaling.type', STRING, 'linear'), ('rope.scaling.factor', F32, rope['factor'])]
    elif kind not in ('default', 'llama3'):
        refuse('config.json', f'RoPE scaling "{kind}" is not written here')
    return [(f'{arch}.{key}', kind, value) for key, kind, value in entries]


def special_entries(folder, config):
    """generation_config.json goes over config.json."""
    config = config | read_json(folder, 'generation_config.json', default={})
    ends = config.get('eos_token_id')
    ends = ends if isinstance(ends, list) else [] if ends is None else [ends]
    starts = [] if config.get('bos_token_id') is None else [config['bos_token_id']]
    named = [*zip(['bos'], starts), *zip(('eos', 'eot'), ends)]
    return [(f'tokenizer.ggml.{key}_token_id', U32, value) for key, value in named]


def tokenizer_entries(folder, vocab, pre):
    tokenizer = read_json(folder, 'tokenizer.json')
    model = tokenizer['model']
    if model['type'] != 'BPE' or (tokenizer.get('decoder') or {}).get('type') != 'ByteLevel':
        refuse(folder, 'its tokenizer.json is not byte-level BPE')
    tokens, types = [f'[PAD{i}]' for i in range(vocab)], [UNUSED] * vocab
    for text, i in model['vocab'].items():
        tokens[i], types[i] = text, NORMAL
    for added in tokenizer['added_tokens']:
        tokens[added['id']] = added['content']
        types[added['id']] = CONTROL if added['special'] else USER_DEFINED
    merges = [merge if isinstance(merge, str) else ' '.join(merge) for merge in model['merges']]
    bos = read_json(folder, 'tokenizer_config.json', default={}).get('add_bos_token', False)
    return [
        ('tokenizer.ggml.model', STRING, 'gpt2'), ('tokenizer.ggml.pre', STRING, pre),
        ('tokenizer.ggml.tokens', ARRAY, (STRING, tokens)), ('tokenizer.ggml.token_type', ARRAY, (I32, types)),
        ('tokenizer.ggml.merges', ARRAY, (STRING, merges)), ('tokenizer.ggml.add_bos_token', BOOL, bos)]


def packed_string(text):
    return struct.pack('<Q', len(text.encode())) + text.encode()


def packed(kind, value):
    if kind == STRING:
        return packed_string(value)
    if kind == ARRAY:
        kind, items = value
        return struct.pack('<IQ', kind, len(items)) + b''.join(packed(kind, item) for item in items)
    return struct.pack('<' + FORMATS[kind], value)


def write_file(path, entries, tensors, version, alignment):
    head = [b'GGUF', struct.pack('<IQQ', version, len(tensors), len(entries))]
    head += [packed_string(key) + struct.pack('<I', kind) + packed(kind, value) for key, kind, value in entries]
    blobs, offset = [], 0
    for name, kind, array in tensors:
        dims = array.shape[::-1]     # the fastest first
        dims = (dims[0] * BLOCK.get(kind, 1), *dims[1:])
        place = struct.pack(f'<I{len(dims)}QIQ', len(dims), *dims, TENSOR_TYPES[kind], offset)
        head.append(packed_string(name) + place)
        blob = np.ascontiguousarray(array).tobytes()
        blobs.append(blob + bytes(-len(blob) % alignment))
        offset += len(blobs[-1])
    head = b''.join(head)
    with open(path, 'wb') as file:
        file.write(head + bytes(-len(head) % alignment) + b''.join(blobs))


def contents(folder, pre=None):
    """([(key, type, value)], [(name, type, array)]): what the file holds."""
    config, stored = read_folder(folder)
    arch = ARCHITECTURES.get(config['model_type'])
    if arch is None:
        refuse(folder, f'model_type "{config["model_type"]}" has no GGUF here')
    tensors = tensors_of(config, arch, stored)
    name = os.path.basename(os.path.abspath(folder))
    entries = [('general.architecture', STRING, arch), ('general.name', STRING, name)]
    entries += gpt2_entries(config) if arch == 'gpt2' else llama_entries(config, arch)
    main_kind = next(kind for name, kind, _ in tensors if name == 'token_embd.weight')
    entries.append(('general.file_type', U32, FILE_TYPES[main_kind]))
    if pre:
        entries += tokenizer_entries(folder, config['vocab_size'], pre)
    return entries + special_entries(folder, config), tensors


def convert(folder, out, split=1, version=3, alignment=None, pre=None):
    """The path of the file, of the first where there are many. Without an alignment none is named, which means 32."""
    entries, tensors = contents(folder, pre)
    aligned = [] if alignment is None else [('general.alignment', U32, alignment)]
    alignment = alignment or 32
    entries = aligned + entries
    if split == 1:
        write_file(out, entries, tensors, version, alignment)
        return out
    paths = [f'{out.removesuffix(".gguf")}-{i + 1:05}-of-{split:05}.gguf' for i in range(split)]
    for i, part in enumerate(np.array_split(np.arange(len(tensors)), split)):
        parted = [('split.no', U16, i), ('split.count', U16, split), ('split.tensors.count', I32, len(tensors))]
        shared = aligned if i else entries     # only the first has the model's own metadata
        write_file(paths[i], shared + parted, [tensors[at] for at in part], version, alignment)
    return paths[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder')
    parser.add_argument('out')
    parser.add_argument('--split', type=int, default=1)
    parser.add_argument('--version', type=int, choices=(2, 3), default=3)
    parser.add_argument('--alignment', type=int, choices=(32, 64))
    parser.add_argument('--tokenizer-pre')
    args = parser.parse_args()
    print(convert(args.folder, args.out, args.split, args.version, args.alignment, args.tokenizer_pre))
    return 0


if __name__ == '__main__':
    sys.exit(main())

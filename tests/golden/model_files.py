"""Reads model files into NumPy (Hugging Face folders, GGUF, llama2.c) and writes safetensors.

All readers return Hugging Face names and config keys. No arithmetic of models lives here (see oracle.py), and no code
is shared with the engine. GGUF: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""
import json
import os
import struct

import numpy as np

SAFETENSORS_TYPES = {'F16': '<f2', 'F32': '<f4', 'F64': '<f8', 'BF16': '<u2', 'U8': '|u1'}
GGUF_FLOATS = {0: 'F32', 1: 'F16', 30: 'BF16'}
GGUF_SCALARS = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), 'BbHhIif?Qqd'))
GGUF_STRING, GGUF_ARRAY = 8, 9
NESTED_PREFIXES = ('model.language_model.', 'language_model.model.')

# GGUF's names, without "blk.N." and ".weight"/".bias", as llama.cpp's converter writes them. to_gguf.py has its own
# reverse table on purpose: a wrong name in either one is detected.
LLAMA_NAMES = {
    'token_embd': 'model.embed_tokens', 'output_norm': 'model.norm', 'output': 'lm_head',
    'attn_norm': 'input_layernorm', 'ffn_norm': 'post_attention_layernorm',
    'attn_q': 'self_attn.q_proj', 'attn_k': 'self_attn.k_proj', 'attn_v': 'self_attn.v_proj',
    'attn_qkv': 'self_attn.qkv_proj', 'attn_output': 'self_attn.o_proj',
    'attn_q_norm': 'self_attn.q_norm', 'attn_k_norm': 'self_attn.k_norm',
    'ffn_gate': 'mlp.gate_proj', 'ffn_up': 'mlp.up_proj', 'ffn_down': 'mlp.down_proj'}
GPT2_NAMES = {
    'token_embd': 'wte', 'position_embd': 'wpe', 'output_norm': 'ln_f', 'output': 'lm_head',
    'attn_norm': 'ln_1', 'ffn_norm': 'ln_2', 'attn_qkv': 'attn.c_attn', 'attn_output': 'attn.c_proj',
    'ffn_up': 'mlp.c_fc', 'ffn_down': 'mlp.c_proj'}


def refuse(path, why):
    raise SystemExit(f'{path}: {why}')


def widen(kind, values):
    """Returns float64 of values as they are stored (BF16 as its 16 bits); exact for every kind."""
    if kind == 'BF16':
        values = (values.astype('<u4') << 16).view('<f4')
    return values.astype(np.float64)


def narrow(kind, values):
    """The reverse, rounded to nearest, ties to even."""
    if kind != 'BF16':
        return values.astype(SAFETENSORS_TYPES[kind])
    bits = values.astype('<f4').view('<u4')
    return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype('<u2')


def read_stored(path):
    """Returns {name: (kind, array as stored)} of a safetensors file."""
    with open(path, 'rb') as file:
        raw = file.read()
    length, = struct.unpack_from('<Q', raw)
    tensors = {}
    for name, entry in json.loads(raw[8:8 + length]).items():
        if name == '__metadata__':
            continue
        begin, end = entry['data_offsets']
        values = np.frombuffer(raw[8 + length + begin:8 + length + end], SAFETENSORS_TYPES[entry['dtype']])
        tensors[name] = entry['dtype'], values.reshape(entry['shape'])
    return tensors


def read_safetensors(path):
    return {name: widen(*stored) for name, stored in read_stored(path).items()}


def write_safetensors(path, tensors, kind='F32'):
    """Writes all in one kind, except bytes, in name order; the header is padded with spaces to 8 bytes, as the format
    requires."""
    head, blobs, offset = {}, [], 0
    for name in sorted(tensors):
        own = 'U8' if tensors[name].dtype == np.uint8 else kind
        blob = narrow(own, np.ascontiguousarray(tensors[name])).tobytes()
        head[name] = {'dtype': own, 'shape': list(tensors[name].shape), 'data_offsets': [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(head).encode()
    text += b' ' * (-len(text) % 8)
    with open(path, 'wb') as file:
        file.write(struct.pack('<Q', len(text)) + text + b''.join(blobs))


def read_json(*parts, default=None):
    """Returns the parsed file, or `default` if it is absent."""
    path = os.path.join(*parts)
    if default is not None and not os.path.exists(path):
        return default
    with open(path, encoding='utf-8') as file:
        return json.load(file)


def plain_name(name):
    """Returns a text model's own name of a tensor, also if the model has a nested text_config and another prefix."""
    for prefix in NESTED_PREFIXES:
        if name.startswith(prefix):
            return 'model.' + name[len(prefix):]
    return name.removeprefix('language_model.')


def read_folder(path):
    """Returns (config of the text model, {name: (kind, array as stored)}); a nested text_config overrides the outer
    keys."""
    config = read_json(path, 'config.json')
    config = config | (config.get('text_config') or {})
    tensors = {}
    for name in sorted(os.listdir(path)):
        if name.endswith('.safetensors'):
            tensors.update(read_stored(os.path.join(path, name)))
    return config, {plain_name(name): stored for name, stored in tensors.items()}


def layer_windows(config):
    """Returns how many positions a query of each layer sees, itself included; 0: all. A list of layer_types overrides
    Qwen's max_window_layers, below which layers see all."""
    layers, window, first = config['num_hidden_layers'], config.get('sliding_window') or 0, 0
    if config.get('model_type') in ('qwen2', 'qwen3'):
        window, first = window if config.get('use_sliding_window') else 0, config.get('max_window_layers', 28)
    types = config.get('layer_types') or ['full_attention'] * first + ['sliding_attention'] * layers
    return [window if kind == 'sliding_attention' else 0 for kind in types[:layers]]


def read_llama2c(path):
    """Returns (weights under Hugging Face names, config) of a llama2.c float file; its RoPE pairs are interleaved."""
    with open(path, 'rb') as file:
        raw = file.read()
    modern = raw[:4] == b'24ka'
    if modern and struct.unpack_from('<i', raw, 4)[0] != 1:
        refuse(path, 'llama2.c version 1 is the only numbered one known here')
    dim, hidden, layers, heads, groups, vocab, context = struct.unpack_from('<7i', raw, 8 if modern else 0)
    tied = raw[36] != 0 if modern else vocab > 0
    vocab, kv_dim = abs(vocab), dim // heads * groups
    data, at = np.frombuffer(raw, '<f4', offset=256 if modern else 28), 0

    def take(*shape):
        nonlocal at
        count = int(np.prod(shape))
        at += count
        return data[at - count:at].astype(np.float64).reshape(shape)

    part = {}
    if modern:
        part['input_layernorm'], part['post_attention_layernorm'] = take(layers, dim), take(layers, dim)
        final = take(dim)
    embedding = take(vocab, dim)
    if not modern:
        part['input_layernorm'] = take(layers, dim)
    for name, rows in (('q', dim), ('k', kv_dim), ('v', kv_dim), ('o', dim)):
        part[f'self_attn.{name}_proj'] = take(layers, rows, dim)
    if not modern:
        part['post_attention_layernorm'] = take(layers, dim)
    for name, rows, cols in (('gate', hidden, dim), ('down', dim, hidden), ('up', hidden, dim)):     # w1, w2, w3
        part[f'mlp.{name}_proj'] = take(layers, rows, cols)
    if not modern:
        final = take(dim)
        at += context * (dim // heads)     # stored cosines and sines, which no reader uses
    weights = {'model.embed_tokens.weight': embedding, 'model.norm.weight': final}
    if not tied:
        weights['lm_head.weight'] = take(vocab, dim)
    if at != len(data):
        refuse(path, f'the header describes {at} floats, the file has {len(data)}')
    for name, stack in part.items():
        weights.update({f'model.layers.{i}.{name}.weight': stack[i] for i in range(layers)})
    return weights, {'hidden_size': dim, 'num_hidden_layers': layers, 'num_attention_heads': heads, 'vocab_size': vocab,
                     'max_position_embeddings': context, 'rms_norm_eps': 1e-5, 'rope_theta': 10000.0}


def gguf_head(raw, path):
    """Returns (metadata, [(name, shape, type, offset)], offset of the tensors' data); versions 2 and 3 are alike."""
    at = 4

    def number(code):
        nonlocal at
        at += struct.calcsize('<' + code)
        return struct.unpack_from('<' + code, raw, at - struct.calcsize('<' + code))[0]

    def string():
        nonlocal at
        length = number('Q')
        at += length
        return raw[at - length:at].decode()

    def value(kind):
        if kind == GGUF_STRING:
            return string()
        if kind == GGUF_ARRAY:
            kind, length = number('I'), number('Q')
            return [value(kind) for _ in range(length)]
        return number(GGUF_SCALARS[kind])

    version = number('I')
    if raw[:4] != b'GGUF' or version not in (2, 3):
        refuse(path, f'begins with {raw[:4]} and version {version}; GGUF 2 and 3 are known here')
    tensors, pairs = number('Q'), number('Q')
    metadata, infos = {}, []
    for _ in range(pairs):
        key = string()
        metadata[key] = value(number('I'))
    for _ in range(tensors):
        name = string()
        dims = [number('Q') for _ in range(number('I'))]
        infos.append((name, dims[::-1], number('I'), number('Q')))     # the fastest dimension is written first
    return metadata, infos, at + -at % metadata.get('general.alignment', 32)


def halves(packed):
    """Returns the low four bits of every byte of the last axis, then the high ones."""
    return np.concatenate([packed & 15, packed >> 4], -1).astype(np.int64)


def float16(two_bytes):
    return np.ascontiguousarray(two_bytes).view('<f2').astype(np.float64)     # [blocks, 1]


def decode_q8_0(raw):
    return float16(raw[:, :2]) * raw[:, 2:].view(np.int8)


def decode_q4_0(raw):
    return float16(raw[:, :2]) * (halves(raw[:, 2:]) - 8)


def decode_q5_0(raw):
    """The fifth bit of element i is bit i of bytes 2 to 5."""
    fifth = np.unpackbits(raw[:, 2:6], axis=1, bitorder='little').astype(np.int64)
    return float16(raw[:, :2]) * (halves(raw[:, 6:]) + 16 * fifth - 16)


def decode_q4_k(raw):
    """12 bytes hold eight scales and eight minima of 6 bits: bytes 0 to 7 the first four of each; for the last four,
    bytes 8 to 11 the low four bits, and the top two bits of bytes 0 to 7 the high ones."""
    packed = raw[:, 4:16].astype(np.int64)
    first, top, low = packed[:, :8] & 63, packed[:, :8] >> 6 << 4, packed[:, 8:]
    scales = np.concatenate([first[:, :4], low & 15 | top[:, :4]], 1)
    minima = np.concatenate([first[:, 4:], low >> 4 | top[:, 4:]], 1)
    values = halves(raw[:, 16:].reshape(-1, 4, 32)).reshape(-1, 8, 32)
    scales, minima = float16(raw[:, :2]) * scales, float16(raw[:, 2:4]) * minima
    return (scales[:, :, None] * values - minima[:, :, None]).reshape(-1, 256)


def decode_q6_k(raw):
    """Per 128 elements, 64 bytes have the low four bits; bits 2i, 2i + 1 of byte j of 32 others belong to 32i + j."""
    low = halves(raw[:, :128].reshape(-1, 2, 64))
    high = raw[:, 128:192].reshape(-1, 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8)[:, None] & 3
    values = low.reshape(-1, 16, 16) + 16 * high.reshape(-1, 16, 16).astype(np.int64) - 32
    scales = float16(raw[:, 208:]) * raw[:, 192:208].view(np.int8)     # one per 16 elements
    return (scales[:, :, None] * values).reshape(-1, 256)


def by_pairs(packed):
    """Per 128 elements, bits 2i, 2i + 1 of byte j of 32 belong to 32i + j. [blocks, 64] -> [blocks, 16 groups, 16]."""
    values = packed.reshape(-1, 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8)[:, None] & 3
    return values.reshape(-1, 16, 16).astype(np.int64)


def decode_q2_k(raw):
    """Each of 16 bytes has a group's scale in the low four bits and its minimum in the high ones."""
    scales = float16(raw[:, 80:82]) * (raw[:, :16] & 15)
    minima = float16(raw[:, 82:84]) * (raw[:, :16] >> 4)
    return (scales[:, :, None] * by_pairs(raw[:, 16:80]) - minima[:, :, None]).reshape(-1, 256)


def decode_q3_k(raw):
    """Bit i of byte j of 32 is the third of element 32i + j. 8 bytes have the low four bits of 16 scales, the low
    nibbles first; bits 2i, 2i + 1 of byte j of 4 others are the high ones of scale 4i + j."""
    third = raw[:, None, :32] >> np.arange(8, dtype=np.uint8)[:, None] & 1
    values = by_pairs(raw[:, 32:96]) + 4 * third.reshape(-1, 16, 16).astype(np.int64) - 4
    high = raw[:, None, 104:108] >> np.array([0, 2, 4, 6], np.uint8)[:, None] & 3
    scales = halves(raw[:, 96:104]) + 16 * high.reshape(-1, 16).astype(np.int64) - 32
    return ((float16(raw[:, 108:110]) * scales)[:, :, None] * values).reshape(-1, 256)


IQ4 = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113])


def decode_iq4_nl(raw):
    return float16(raw[:, :2]) * IQ4[halves(raw[:, 2:])]


def decode_iq4_xs(raw):
    """Nibble i of 4 bytes and bits 2i, 2i + 1 of 16 make the scale of part i; a part has 16 bytes."""
    low = np.stack([raw[:, 4:8] & 15, raw[:, 4:8] >> 4], -1).reshape(-1, 8).astype(np.int64)
    high = np.ascontiguousarray(raw[:, 2:4]).view('<u2').astype(np.int64) >> np.arange(0, 16, 2) & 3
    scales = float16(raw[:, :2]) * (low + 16 * high - 32)
    return (scales[:, :, None] * IQ4[halves(raw[:, 8:].reshape(-1, 8, 16))]).reshape(-1, 256)


def decode_q5_k(raw):
    """As q4_k, with bit i of byte j of 32 as the fifth of element 32i + j."""
    fifth = (raw[:, None, 16:48] >> np.arange(8, dtype=np.uint8)[:, None] & 1).astype(np.float64)
    ones = np.concatenate([raw[:, :16], np.full((len(raw), 128), 0x11, np.uint8)], 1)
    none = np.concatenate([raw[:, :16], np.zeros((len(raw), 128), np.uint8)], 1)
    scale = decode_q4_k(ones) - decode_q4_k(none)
    return decode_q4_k(np.concatenate([raw[:, :16], raw[:, 48:]], 1)) + 16 * scale * fifth.reshape(-1, 256)


def decode_mxfp4(raw):
    """Four bits are a sign and one of eight numbers; a block's power of two has the exponent of a byte minus 127."""
    values = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])
    return values[halves(raw[:, 1:])] * 2.0 ** (raw[:, :1].astype(np.int64) - 127)


# By GGUF's number of a packed type: elements and bytes of a block, and the decoder of [blocks, bytes].
GGUF_INTEGERS = {2: (32, 18, decode_q4_0), 6: (32, 22, decode_q5_0), 8: (32, 34, decode_q8_0),
                 10: (256, 84, decode_q2_k), 11: (256, 110, decode_q3_k), 12: (256, 144, decode_q4_k),
                 13: (256, 176, decode_q5_k), 14: (256, 210, decode_q6_k), 20: (32, 18, decode_iq4_nl),
                 23: (256, 136, decode_iq4_xs), 39: (32, 17, decode_mxfp4)}


def gguf_values(raw, at, kind, count):
    """Returns a flat float64 array; exact for every kind."""
    if kind in GGUF_FLOATS:
        stored = GGUF_FLOATS[kind]
        return widen(stored, np.frombuffer(raw, SAFETENSORS_TYPES[stored], count, at))
    elements, size, decode = GGUF_INTEGERS[kind]
    blocks = count // elements
    return decode(np.frombuffer(raw, np.uint8, blocks * size, at).reshape(blocks, size)).reshape(-1)


def gguf_tensors(path):
    """Returns (metadata, {name: float64 array})."""
    with open(path, 'rb') as file:
        raw = file.read()
    metadata, infos, data = gguf_head(raw, path)
    if metadata.get('split.count', 1) > 1:
        refuse(path, 'one part of a split model; the oracle reads whole files')
    tensors = {}
    for name, shape, kind, offset in infos:
        if kind not in GGUF_FLOATS and kind not in GGUF_INTEGERS:
            refuse(path, f'{name}: tensor type {kind} is not known here')
        tensors[name] = gguf_values(raw, data + offset, kind, int(np.prod(shape))).reshape(shape)
    return metadata, tensors


def llama_config(arch, get, tensors):
    width = get('attention.key_length') or get('embedding_length') // get('attention.head_count')
    kind = get('rope.scaling.type') or 'none'
    divisors = tensors.pop('rope_freqs.weight', None)
    slides = get('attention.sliding_window_pattern') or []
    return {
        'model_type': arch, 'hidden_size': get('embedding_length'), 'num_hidden_layers': get('block_count'),
        'num_attention_heads': get('attention.head_count'), 'head_dim': width,
        'num_key_value_heads': get('attention.head_count_kv') or get('attention.head_count'),
        'intermediate_size': get('feed_forward_length'),
        'max_position_embeddings': get('context_length'), 'vocab_size': len(tensors['token_embd.weight']),
        'rms_norm_eps': get('attention.layer_norm_rms_epsilon'), 'rope_theta': get('rope.freq_base') or 10000.0,
        'rope_scaling': None if kind == 'none' else {'type': kind, 'factor': get('rope.scaling.factor')},
        'rope_divisors': divisors, 'sliding_window': get('attention.sliding_window'),
        'use_sliding_window': bool(slides),
        'layer_types': ['sliding_attention' if slide else 'full_attention' for slide in slides]}


def gpt2_config(arch, get, tensors):
    return {
        'model_type': arch, 'n_embd': get('embedding_length'), 'n_layer': get('block_count'),
        'n_head': get('attention.head_count'), 'n_positions': get('context_length'),
        'layer_norm_epsilon': get('attention.layer_norm_epsilon'), 'vocab_size': len(tensors['token_embd.weight'])}


def half_split(rows, heads):
    """Returns rows of Q or K in Hugging Face's order, where (i, i + D / 2) is a pair; arch "llama" stores (2i, 2i +
    1)."""
    pairs = rows.reshape(heads, -1, 2, *rows.shape[1:])
    return pairs.swapaxes(1, 2).reshape(rows.shape)


def read_gguf(path):
    """Returns (weights under Hugging Face names, config); arrays as Hugging Face stores them, so GPT-2's are
    [in][out]."""
    metadata, tensors = gguf_tensors(path)
    arch = metadata['general.architecture']
    if arch not in ('llama', 'qwen2', 'qwen3', 'phi3', 'gpt2'):
        refuse(path, f'architecture "{arch}" is not known here')
    names, block = (GPT2_NAMES, 'h') if arch == 'gpt2' else (LLAMA_NAMES, 'model.layers')
    if arch == 'phi3':
        names = names | {'ffn_up': 'mlp.gate_up_proj'}     # rows gate | up
    config = (gpt2_config if arch == 'gpt2' else llama_config)(arch, lambda key: metadata.get(f'{arch}.{key}'), tensors)
    weights = {}
    for name, array in tensors.items():
        *parts, last, suffix = name.split('.')
        if last not in names or suffix not in ('weight', 'bias'):
            refuse(path, f'tensor "{name}" is not known here')
        if arch == 'llama' and last in ('attn_q', 'attn_k'):
            array = half_split(array, config['num_attention_heads' if last == 'attn_q' else 'num_key_value_heads'])
        if arch == 'gpt2' and parts and array.ndim == 2:
            array = array.T     # Conv1D
        layer = f'{block}.{parts[1]}.' if parts else ''
        weights[f'{layer}{names[last]}.{suffix}'] = array
    return weights, config

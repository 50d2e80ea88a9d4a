"""The oracle: logits of a small model in float64 NumPy, straight from the papers' formulas, with no cache and no tricks.

usage: oracle.py MODEL --ids 1,2,3 --out F.npy        logits of every position, float64 [tokens, vocab]
       oracle.py MODEL --ids 1,2,3 --greedy N         the ids, continued greedily (ties go to the lowest id)
       oracle.py --nano WEIGHTS.json PARTIALS.json --out FOLDER
                                                      gpt-nano as a Hugging Face GPT-2 folder; its stored intermediate
                                                      tensors go to FOLDER/partials/NAME.npy

MODEL is a Hugging Face folder (llama or gpt2; F64, F32, F16 or BF16 safetensors) or a llama2.c file (version 0 or 1).
It shares no code with the engine; models/train/reference.py, which reads the same folders, was written separately and
check_oracle.py compares the two.
"""
import argparse
import base64
import json
import os
import struct
import sys

import numpy as np

SAFETENSORS_TYPES = {'F16': '<f2', 'F32': '<f4', 'F64': '<f8'}


def read_safetensors(path):
    """All tensors as float64; each of the four types converts exactly."""
    with open(path, 'rb') as file:
        raw = file.read()
    length, = struct.unpack_from('<Q', raw)
    tensors = {}
    for name, entry in json.loads(raw[8:8 + length]).items():
        if name == '__metadata__':
            continue
        begin, end = entry['data_offsets']
        data = raw[8 + length + begin:8 + length + end]
        if entry['dtype'] == 'BF16':
            values = (np.frombuffer(data, '<u2').astype('<u4') << 16).view('<f4')
        else:
            values = np.frombuffer(data, SAFETENSORS_TYPES[entry['dtype']])
        tensors[name] = values.astype(np.float64).reshape(entry['shape'])
    return tensors


def write_safetensors(path, tensors):
    """float32 tensors, in name order; the header is padded with spaces to 8 bytes as the format wants."""
    head, blobs, offset = {}, [], 0
    for name in sorted(tensors):
        blob = np.ascontiguousarray(tensors[name], '<f4').tobytes()
        head[name] = {'dtype': 'F32', 'shape': list(tensors[name].shape), 'data_offsets': [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(head).encode()
    text += b' ' * (-len(text) % 8)
    with open(path, 'wb') as file:
        file.write(struct.pack('<Q', len(text)) + text + b''.join(blobs))


def no_tap(name, value):
    """A tap sees every intermediate value by name; this one ignores them."""


def softmax(scores):
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def attention(q, k, v, tap=no_tap):
    """Causal. q [T, H, D], k and v [T, G, D]; query head h reads group h // (H / G). Returns [T, H * D]."""
    tokens, heads, width = q.shape
    repeat = heads // k.shape[1]
    k, v = np.repeat(k, repeat, axis=1), np.repeat(v, repeat, axis=1)
    scores = np.einsum('thd,shd->hts', q, k) / np.sqrt(width)
    scores = np.where(np.tril(np.ones((tokens, tokens), bool)), scores, -np.inf)
    weights = softmax(scores)
    tap('att', scores)
    tap('attSm', weights)
    return np.einsum('hts,shd->thd', weights, v).reshape(tokens, heads * width)


def rope_frequencies(config, width):
    """Radians a position for each pair of channels, [width / 2]."""
    theta = float(config.get('rope_theta') or 10000.0)
    frequency = theta ** (-np.arange(0, width, 2) / width)
    scaling = config.get('rope_scaling') or {}
    kind = scaling.get('rope_type') or scaling.get('type') or 'default'
    if kind == 'linear':
        return frequency / scaling['factor']
    if kind == 'llama3':     # Llama 3.1: long waves are slowed by `factor`, short ones kept, the rest blended
        low, high = scaling['low_freq_factor'], scaling['high_freq_factor']
        turns = scaling['original_max_position_embeddings'] * frequency / (2 * np.pi)
        kept = np.clip((turns - low) / (high - low), 0, 1)
        return frequency * (kept + (1 - kept) / scaling['factor'])
    if kind != 'default':
        raise SystemExit(f'oracle.py: rope_scaling "{kind}" is not known here')
    return frequency


def rotate(x, frequency, interleaved):
    """RoPE on x [T, H, D]. The pairs are channels (2i, 2i + 1), or (i, i + D / 2) in Hugging Face's order."""
    angle = np.arange(len(x))[:, None, None] * frequency
    turn = np.exp(1j * angle)
    half = x.shape[-1] // 2
    pairs = x[..., 0::2] + 1j * x[..., 1::2] if interleaved else x[..., :half] + 1j * x[..., half:]
    pairs = pairs * turn
    out = np.empty_like(x)
    if interleaved:
        out[..., 0::2], out[..., 1::2] = pairs.real, pairs.imag
    else:
        out[..., :half], out[..., half:] = pairs.real, pairs.imag
    return out


def llama(weights, config, ids, interleaved=False):
    heads = config['num_attention_heads']
    width = config.get('head_dim') or config['hidden_size'] // heads
    frequency = rope_frequencies(config, width)
    embedding = weights['model.embed_tokens.weight']
    tokens = len(ids)

    def norm(x, name):
        return x / np.sqrt(np.mean(x ** 2, -1, keepdims=True) + config['rms_norm_eps']) * weights[name + '.weight']

    def linear(x, name):
        return x @ weights[name + '.weight'].T + weights.get(name + '.bias', 0.0)

    x = embedding[ids]
    for layer in range(config['num_hidden_layers']):
        at = f'model.layers.{layer}.'
        h = norm(x, at + 'input_layernorm')
        q = linear(h, at + 'self_attn.q_proj').reshape(tokens, -1, width)
        k = linear(h, at + 'self_attn.k_proj').reshape(tokens, -1, width)
        v = linear(h, at + 'self_attn.v_proj').reshape(tokens, -1, width)
        y = attention(rotate(q, frequency, interleaved), rotate(k, frequency, interleaved), v)
        x = x + linear(y, at + 'self_attn.o_proj')
        h = norm(x, at + 'post_attention_layernorm')
        gate = linear(h, at + 'mlp.gate_proj')
        x = x + linear(gate / (1 + np.exp(-gate)) * linear(h, at + 'mlp.up_proj'), at + 'mlp.down_proj')
    return norm(x, 'model.norm') @ weights.get('lm_head.weight', embedding).T


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))


def gpt2(weights, config, ids, tap=no_tap):
    """The tap gets layer 0's values under gpt-nano's names, each block's output and the final norm."""
    weights = {name.removeprefix('transformer.'): tensor for name, tensor in weights.items()}
    heads, tokens = config['n_head'], len(ids)

    def norm(x, name):
        x = x - x.mean(-1, keepdims=True)
        scale = np.sqrt(np.mean(x ** 2, -1, keepdims=True) + config['layer_norm_epsilon'])
        return x / scale * weights[name + '.weight'] + weights[name + '.bias']

    def conv1d(x, name):
        return x @ weights[name + '.weight'] + weights[name + '.bias']

    x = weights['wte.weight'][ids] + weights['wpe.weight'][:tokens]
    tap('x', x)
    for layer in range(config['n_layer']):
        at, see = f'h.{layer}.', tap if layer == 0 else no_tap

        def named(name, value):
            see(name, value)
            return value

        qkv = named('qkv', conv1d(named('ln1', norm(x, at + 'ln_1')), at + 'attn.c_attn'))
        q, k, v = (part.reshape(tokens, heads, -1) for part in np.split(qkv, 3, -1))
        for name, part in zip('qkv', (q, k, v)):
            see(name, part.transpose(1, 0, 2))
        y = named('y', attention(q, k, v, see))
        x = named('attnResid', x + named('yProj', conv1d(y, at + 'attn.c_proj')))
        fc = named('fc', conv1d(named('ln2', norm(x, at + 'ln_2')), at + 'mlp.c_fc'))
        x = named('mlpResid', x + named('mlp', conv1d(named('gelu', gelu_tanh(fc)), at + 'mlp.c_proj')))
        tap(f'block{layer}', x)
    x = norm(x, 'ln_f')
    tap('ln_f', x)
    return x @ weights.get('lm_head.weight', weights['wte.weight']).T


def read_llama2c(path):
    """(weights under Hugging Face names, config) of a llama2.c float file; its RoPE pairs are interleaved."""
    with open(path, 'rb') as file:
        raw = file.read()
    modern = raw[:4] == b'24ka'
    if modern and struct.unpack_from('<i', raw, 4)[0] != 1:
        raise SystemExit(f'oracle.py: {path}: llama2.c version 1 is the only numbered one known here')
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
        raise SystemExit(f'oracle.py: {path}: the header describes {at} floats, the file has {len(data)}')
    for name, stack in part.items():
        weights.update({f'model.layers.{i}.{name}.weight': stack[i] for i in range(layers)})
    return weights, {'hidden_size': dim, 'num_hidden_layers': layers, 'num_attention_heads': heads, 'vocab_size': vocab,
                     'max_position_embeddings': context, 'rms_norm_eps': 1e-5, 'rope_theta': 10000.0}


def load(path):
    """(function from ids to logits [tokens, vocab], vocabulary size, context length)."""
    if not os.path.isdir(path):
        weights, config = read_llama2c(path)
        return (lambda ids: llama(weights, config, ids, interleaved=True)), config['vocab_size'], \
            config['max_position_embeddings']
    with open(os.path.join(path, 'config.json')) as file:
        config = json.load(file)
    weights = {}
    for name in sorted(os.listdir(path)):
        if name.endswith('.safetensors'):
            weights.update(read_safetensors(os.path.join(path, name)))
    family = {'llama': llama, 'gpt2': gpt2}[config['model_type']]
    context = config.get('max_position_embeddings') or config['n_positions']
    return (lambda ids: family(weights, config, ids)), config['vocab_size'], context


def parse_ids(text, vocab, context):
    ids = [int(item) for item in text.split(',')]
    if not all(0 <= item < vocab for item in ids):
        raise SystemExit(f'oracle.py: an id is outside the vocabulary, 0 to {vocab - 1}')
    if len(ids) > context:
        raise SystemExit(f'oracle.py: {len(ids)} ids are more than the context of {context}')
    return ids


def nano_tensors(path):
    """(config, {name: float32 array}) of one of llm-viz's JSON files, whose tensors are base64."""
    with open(path) as file:
        tree = json.load(file)
    config = tree.pop('config')
    return config, {name: np.frombuffer(base64.b64decode(entry['data']), '<f4').reshape(entry['shape'])
                    for name, entry in tree.items()}


def convert_nano(weights_path, partials_path, out):
    """Writes FOLDER/config.json, model.safetensors (GPT2LMHeadModel names, untied head) and partials/*.npy."""
    config, tensors = nano_tensors(weights_path)
    os.makedirs(os.path.join(out, 'partials'), exist_ok=True)
    renamed = {}
    for name, tensor in tensors.items():
        if name.endswith('.attn.bias'):     # the causal mask
            continue
        conv1d = any(part in name for part in ('attn.c_', 'mlp.c_')) and name.endswith('.weight')
        renamed[name] = tensor.T if conv1d else tensor
    write_safetensors(os.path.join(out, 'model.safetensors'), renamed)
    gpt2_config = {
        'architectures': ['GPT2LMHeadModel'], 'model_type': 'gpt2', 'n_embd': config['n_embd'],
        'n_layer': config['n_layer'], 'n_head': config['n_head'], 'n_positions': config['block_size'],
        'n_ctx': config['block_size'], 'n_inner': None, 'vocab_size': config['vocab_size'],
        'layer_norm_epsilon': 1e-5, 'activation_function': 'gelu_new', 'tie_word_embeddings': False,
        'torch_dtype': 'float32'}
    with open(os.path.join(out, 'config.json'), 'w') as file:
        json.dump(gpt2_config, file, indent=2)
    for name, tensor in nano_tensors(partials_path)[1].items():
        np.save(os.path.join(out, 'partials', name + '.npy'), tensor)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('model', nargs='?')
    parser.add_argument('--ids')
    parser.add_argument('--out')
    parser.add_argument('--greedy', type=int, default=0)
    parser.add_argument('--nano', nargs=2, metavar=('WEIGHTS', 'PARTIALS'))
    args = parser.parse_args()
    if args.nano and args.out:
        convert_nano(*args.nano, args.out)
        return 0
    if not args.model or not args.ids:
        parser.error('give MODEL and --ids, or --nano WEIGHTS PARTIALS --out FOLDER')
    forward, vocab, context = load(args.model)
    ids = parse_ids(args.ids, vocab, context)
    if args.out:
        np.save(args.out, forward(ids))
    for _ in range(min(args.greedy, context - len(ids))):
        ids.append(int(forward(ids)[-1].argmax()))
    if args.greedy:
        print(','.join(map(str, ids)))
    return 0


if __name__ == '__main__':
    sys.exit(main())

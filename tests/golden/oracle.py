"""The oracle: logits of a small model in float64 NumPy, straight from the papers' formulas, with no cache and no tricks.

usage: oracle.py MODEL --ids 1,2,3 --out F.npy        logits of every position, float64 [tokens, vocab]
       oracle.py ... --window W --sinks S             where a query sees the last W positions and the first S
       oracle.py MODEL --ids 1,2,3 --greedy N         the ids, continued greedily (ties go to the lowest id)
       oracle.py --nano WEIGHTS.json PARTIALS.json --out FOLDER
                                                      gpt-nano as a Hugging Face GPT-2 folder; its stored intermediate
                                                      tensors go to FOLDER/partials/NAME.npy

MODEL is a Hugging Face folder (llama, mistral, qwen2, qwen3, phi3 or gpt2), a .gguf of one of these, or a llama2.c
file; model_files.py reads them. It shares no code with the engine. models/train/reference.py, which reads llama and
gpt2 folders, was written separately; check_oracle.py compares the two.
"""
import argparse
import base64
import functools
import json
import os
import sys
import typing

import numpy as np

from model_files import layer_windows, read_folder, read_gguf, read_llama2c, widen, write_safetensors


def no_tap(name, value):
    """A tap sees every intermediate value by name; this one ignores them."""


def unchanged(heads, positions=None):
    """Returns the heads as they are: no RoPE, or a KV type that loses nothing."""
    return heads


class Memory(typing.NamedTuple):
    """The past that a query sees: the last `window` positions, itself included (0: all), and the first `sinks`.

    keep_k and keep_v say what is left of heads [T, G, D] after they were stored (kv_types.py). The engine's sinks always
    move; bench/windows_by_position shows why.
    """
    window: int = 0
    sinks: int = 0
    keep_k: typing.Callable = unchanged
    keep_v: typing.Callable = unchanged
    sinks_move: bool = True


ALL = Memory()


def softmax(scores):
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def attention(q, k, v, memory, turn=unchanged, tap=no_tap):
    """Causal. q [T, H, D], k and v [T, G, D]; query head h reads group h // (H / G). Returns [T, H * D].

    turn(heads, positions) is RoPE. A sink's key is kept before it, and turned for each query to a place right before
    that query's window, or to its own position where the window has not yet gone past it (arXiv:2309.17453).
    """
    tokens, heads, width = q.shape
    repeat, at = heads // k.shape[1], np.arange(tokens)
    q, v = turn(q, at), np.repeat(memory.keep_v(v), repeat, axis=1)
    scores = np.einsum('thd,shd->hts', q, np.repeat(memory.keep_k(turn(k, at)), repeat, axis=1))
    unseen = at > at[:, None]
    sinks = min(memory.sinks, tokens)
    if sinks:
        first = np.maximum(0, at + 1 - memory.window - memory.sinks) * memory.sinks_move
        moved = turn(np.repeat(memory.keep_k(k[:sinks])[None], tokens, axis=0), first[:, None] + at[:sinks])
        scores[:, :, :sinks] = np.einsum('thd,tshd->hts', q, np.repeat(moved, repeat, axis=2))
    if memory.window:
        unseen = unseen | (at <= at[:, None] - memory.window) & (at >= sinks)
    scores = np.where(unseen, -np.inf, scores / np.sqrt(width))
    weights = softmax(scores)
    tap('att', scores)
    tap('attSm', weights)
    return np.einsum('hts,shd->thd', weights, v).reshape(tokens, heads * width)


def rope_frequencies(config, width):
    """Radians a position for each pair of channels, [width / 2]. Newer files keep theta and scaling in one object."""
    rope = config.get('rope_parameters') or config.get('rope_scaling') or {}
    theta = float(rope.get('rope_theta') or config.get('rope_theta') or 10000.0)
    frequency = theta ** (-np.arange(0, width, 2) / width)
    if (rope.get('partial_rotary_factor') or config.get('partial_rotary_factor') or 1.0) != 1.0:
        raise SystemExit('oracle.py: partial_rotary_factor other than 1 is not known here')
    if config.get('rope_divisors') is not None:     # GGUF's rope_freqs.weight
        frequency = frequency / config['rope_divisors']
    kind = rope.get('rope_type') or rope.get('type') or 'default'
    if kind == 'linear':
        return frequency / rope['factor']
    if kind == 'llama3':     # Llama 3.1: long waves are slowed by `factor`, short ones kept, the rest blended
        low, high = rope['low_freq_factor'], rope['high_freq_factor']
        turns = rope['original_max_position_embeddings'] * frequency / (2 * np.pi)
        kept = np.clip((turns - low) / (high - low), 0, 1)
        return frequency * (kept + (1 - kept) / rope['factor'])
    if kind != 'default' or any(isinstance(value, dict) for value in rope.values()):     # per kind of layer
        raise SystemExit(f'oracle.py: RoPE scaling {rope} is not known here')
    return frequency


def rotate(x, positions, frequency, interleaved):
    """RoPE on x [..., H, D]. The pairs are channels (2i, 2i + 1), or (i, i + D / 2) in Hugging Face's order."""
    angle = positions[..., None, None] * frequency
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


def head_width(config):
    return config.get('head_dim') or config['hidden_size'] // config['num_attention_heads']


def llama(weights, config, ids, memory=ALL, interleaved=False, head_norms=False):
    """Also mistral, which is the same, and qwen2, whose q, k and v have a bias. A bias that is absent is zero."""
    width, windows = head_width(config), layer_windows(config)
    turn = functools.partial(rotate, frequency=rope_frequencies(config, width), interleaved=interleaved)
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
        q, k, v = (linear(h, f'{at}self_attn.{name}_proj').reshape(tokens, -1, width) for name in 'qkv')
        if head_norms:
            q, k = norm(q, at + 'self_attn.q_norm'), norm(k, at + 'self_attn.k_norm')
        y = attention(q, k, v, memory._replace(window=windows[layer]) if any(windows) else memory, turn)
        x = x + linear(y, at + 'self_attn.o_proj')
        h = norm(x, at + 'post_attention_layernorm')
        gate = linear(h, at + 'mlp.gate_proj')
        x = x + linear(gate / (1 + np.exp(-gate)) * linear(h, at + 'mlp.up_proj'), at + 'mlp.down_proj')
    return norm(x, 'model.norm') @ weights.get('lm_head.weight', embedding).T


def qwen3(weights, config, ids, memory=ALL):
    """Every head of q and k is normalised, with one gain [head_dim] for all heads, before it is rotated."""
    return llama(weights, config, ids, memory, head_norms=True)


def phi3(weights, config, ids, memory=ALL):
    """Two fused matrices: rows q | k | v, and gate | up."""
    width, heads = head_width(config), config['num_attention_heads']
    groups, ffn = config.get('num_key_value_heads') or heads, config['intermediate_size']
    split = dict(weights)
    for layer in range(config['num_hidden_layers']):
        at = f'model.layers.{layer}.'
        q, k, v = np.split(split.pop(at + 'self_attn.qkv_proj.weight'), np.cumsum((heads, groups)) * width)
        gate, up = np.split(split.pop(at + 'mlp.gate_up_proj.weight'), [ffn])
        for name, rows in (('q', q), ('k', k), ('v', v)):
            split[f'{at}self_attn.{name}_proj.weight'] = rows
        split[at + 'mlp.gate_proj.weight'], split[at + 'mlp.up_proj.weight'] = gate, up
    return llama(split, config, ids, memory)


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))


def gpt2(weights, config, ids, memory=ALL, tap=no_tap):
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
        y = named('y', attention(q, k, v, memory, tap=see))
        x = named('attnResid', x + named('yProj', conv1d(y, at + 'attn.c_proj')))
        fc = named('fc', conv1d(named('ln2', norm(x, at + 'ln_2')), at + 'mlp.c_fc'))
        x = named('mlpResid', x + named('mlp', conv1d(named('gelu', gelu_tanh(fc)), at + 'mlp.c_proj')))
        tap(f'block{layer}', x)
    x = norm(x, 'ln_f')
    tap('ln_f', x)
    return x @ weights.get('lm_head.weight', weights['wte.weight']).T


FAMILIES = {'llama': llama, 'mistral': llama, 'qwen2': llama, 'qwen3': qwen3, 'phi3': phi3, 'gpt2': gpt2}


def language_model(weights, config):
    """The function from ids, and a Memory where it is not all, to logits [tokens, vocab]."""
    kind = config.get('model_type')
    if kind not in FAMILIES:
        raise SystemExit(f'oracle.py: model_type "{kind}" is not known here')
    return functools.partial(FAMILIES[kind], weights, config)


def load(path):
    """(function from ids, and a Memory, to logits [tokens, vocab], vocabulary size, context length)."""
    if os.path.isdir(path):
        config, stored = read_folder(path)
        weights = {name: widen(*tensor) for name, tensor in stored.items()}
        forward = language_model(weights, config)
    elif path.endswith('.gguf'):
        weights, config = read_gguf(path)
        forward = language_model(weights, config)
    else:
        weights, config = read_llama2c(path)
        forward = functools.partial(llama, weights, config, interleaved=True)
    return forward, config['vocab_size'], config.get('max_position_embeddings') or config['n_positions']


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
    parser.add_argument('--window', type=int, default=0)
    parser.add_argument('--sinks', type=int, default=0)
    parser.add_argument('--nano', nargs=2, metavar=('WEIGHTS', 'PARTIALS'))
    args = parser.parse_args()
    if args.nano and args.out:
        convert_nano(*args.nano, args.out)
        return 0
    if not args.model or not args.ids:
        parser.error('give MODEL and --ids, or --nano WEIGHTS PARTIALS --out FOLDER')
    forward, vocab, context = load(args.model)
    ids, memory = parse_ids(args.ids, vocab, context), Memory(args.window, args.sinks)
    if args.out:
        np.save(args.out, forward(ids, memory))
    for _ in range(min(args.greedy, context - len(ids))):
        ids.append(int(forward(ids, memory)[-1].argmax()))
    if args.greedy:
        print(','.join(map(str, ids)))
    return 0


if __name__ == '__main__':
    sys.exit(main())

"""The blocks of model families, in float64 NumPy: norms, RoPE, attention, activations, experts.

It names no family (family_forward.py puts the blocks together) and shares no code with the engine. x is [T, channels],
heads are [T, H, D]. Weights carry Hugging Face's names and conventions.
"""
import math
import typing

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def gelu_erf(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def softmax(scores):
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def soft_cap(x, cap):
    """Limits x smoothly to (-cap, cap); without a cap returns x."""
    return cap * np.tanh(x / cap) if cap else x


ACTIVATIONS = {'silu': silu, 'gelu': gelu_erf, 'gelu_new': gelu_tanh, 'gelu_fast': gelu_tanh,
               'gelu_pytorch_tanh': gelu_tanh}


class Rope(typing.NamedTuple):
    """Rotates the first 2 * len(frequency) channels of a head by position * frequency, and scales them by magnitude."""
    frequency: np.ndarray
    magnitude: float = 1.0
    pairs: bool = False     # channels (2i, 2i + 1) rotate together, else (i, i + half)

    def turn(self, heads):
        half = len(self.frequency)
        angle = np.arange(len(heads))[:, None, None] * self.frequency
        cosine, sine = self.magnitude * np.cos(angle), self.magnitude * np.sin(angle)
        first, second = (slice(0, 2 * half, 2), slice(1, 2 * half, 2)) if self.pairs else (slice(half),
                                                                                           slice(half, 2 * half))
        a, b = heads[..., first], heads[..., second]
        out = heads.copy()
        out[..., first], out[..., second] = a * cosine - b * sine, a * sine + b * cosine
        return out


def yarn(plain, channels, theta, rope):
    """Returns (frequencies, magnitude). Long waves are slowed by `factor`, short ones kept, with a ramp over the pairs
    between."""
    factor, original = rope['factor'], rope['original_max_position_embeddings']

    def pair_of(turns):     # the pair that makes `turns` rotations within the original context
        return channels * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(theta))

    low, high = pair_of(rope.get('beta_fast') or 32), pair_of(rope.get('beta_slow') or 1)
    if rope.get('truncate', True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, channels - 1)
    slowed = np.clip((np.arange(channels // 2) - low) / max(high - low, 0.001), 0, 1)
    return plain * (1 - slowed) + plain / factor * slowed, yarn_magnitude(rope, factor)


def yarn_magnitude(rope, factor):
    def grown(mscale):
        return 0.1 * mscale * math.log(factor) + 1 if factor > 1 else 1.0

    if rope.get('attention_factor') is not None:
        return rope['attention_factor']
    if rope.get('mscale') and rope.get('mscale_all_dim'):
        return grown(rope['mscale']) / grown(rope['mscale_all_dim'])
    return grown(1)


def llama3(plain, rope):
    low, high = rope['low_freq_factor'], rope['high_freq_factor']
    kept = np.clip((rope['original_max_position_embeddings'] * plain / (2 * np.pi) - low) / (high - low), 0, 1)
    return plain * (kept + (1 - kept) / rope['factor'])


def longrope(plain, rope, config):
    """There is one list of divisors for contexts up to the original one and another for longer ones; here a model's
    context is its max_position_embeddings. The magnitude grows with the ratio of the two contexts."""
    original = rope.get('original_max_position_embeddings') or config['original_max_position_embeddings']
    longer = config['max_position_embeddings'] / original
    which = 'long' if longer > 1 else 'short'
    magnitude = rope.get(which + '_mscale') or rope.get('attention_factor')
    if magnitude is None:
        magnitude = math.sqrt(1 + math.log(longer) / math.log(original)) if longer > 1 else 1.0
    return plain / np.array(rope[which + '_factor']), magnitude


def rope_settings(config, kind='full_attention'):
    """Returns one flat object for layers of this kind, whichever of the three places of a config has the numbers."""
    rope = config.get('rope_parameters') or config.get('rope_scaling') or {}
    rope = dict(rope.get(kind, rope))
    for key, places in (('rope_theta', ('rope_theta', 'rotary_emb_base')),
                        ('partial_rotary_factor', ('partial_rotary_factor', 'rotary_pct'))):
        found = [config[place] for place in places if config.get(place) is not None]
        if rope.get(key) is None:
            rope[key] = found[0] if found else None
    return rope


def rope_of(config, width, pairs=False, kind='full_attention', theta=None, scaled=True):
    """Returns the Rope of a kind of layer. `theta` overrides the config's; without `scaled` the scaling is left out."""
    rope = rope_settings(config, kind)
    theta = float(theta or rope['rope_theta'] or 10000.0)
    channels = int(width * (rope['partial_rotary_factor'] or 1.0))
    plain = theta ** (-np.arange(0, channels, 2) / channels)
    if config.get('rope_divisors') is not None:     # GGUF's
        plain = plain / config['rope_divisors']
    name = (rope.get('rope_type') or rope.get('type') or 'default') if scaled else 'default'
    if name in ('default', 'none'):
        return Rope(plain, 1.0, pairs)
    if name == 'linear':
        return Rope(plain / rope['factor'], 1.0, pairs)
    if name == 'llama3':
        return Rope(llama3(plain, rope), 1.0, pairs)
    if name == 'yarn':
        return Rope(*yarn(plain, channels, theta, rope), pairs)
    if name in ('longrope', 'su'):
        return Rope(*longrope(plain, rope, config), pairs)
    if name == 'dynamic' and rope.get('alpha'):     # Hunyuan: a constant larger theta
        return Rope(plain * rope['alpha'] ** (-np.arange(0, channels, 2) / (channels - 2)), 1.0, pairs)
    if name == 'dynamic':     # grows beyond the trained context, where these models are not run
        return Rope(plain, 1.0, pairs)
    raise SystemExit(f'family_blocks.py: RoPE scaling "{name}" is not known here')


def attention(q, k, v, scale, window=0, cap=0, sinks=None):
    """Causal, over the last `window` positions (0: all). q [T, H, D], k and v [T, G, D]; returns [T, H * D].

    sinks [H]: one more score per head in the softmax, whose weight is discarded.
    """
    tokens, heads, _ = q.shape
    k, v = (np.repeat(part, heads // part.shape[1], axis=1) for part in (k, v))
    scores = soft_cap(np.einsum('thd,shd->hts', q, k) * scale, cap)
    ago = np.arange(tokens)[:, None] - np.arange(tokens)
    scores = np.where((ago < 0) | (ago >= (window or tokens)), -np.inf, scores)
    if sinks is not None:
        scores = np.concatenate([scores, np.broadcast_to(sinks[:, None, None], (heads, tokens, 1))], -1)
    return np.einsum('hts,shd->thd', softmax(scores)[..., :tokens], v).reshape(tokens, -1)


def best(scores, count):
    """Returns the indices [T, count] of the largest scores, largest first; ties go to the lower index."""
    return np.argsort(-scores, axis=-1, kind='stable')[:, :count]


def at_chosen(values, chosen):
    return np.take_along_axis(values, chosen, -1)


def mixture(h, chosen, shares, expert):
    """Returns the sum of shares[t, r] * expert(chosen[t, r], h[t]) over the ranks r, in their order."""
    out = np.zeros_like(h)
    for rank in range(chosen.shape[1]):
        for e in np.unique(chosen[:, rank]):
            rows = chosen[:, rank] == e
            out[rows] += shares[rows, rank, None] * expert(int(e), h[rows])
    return out


class Net:
    """A model's weights, config and ids, and the steps that most layers share."""

    def __init__(self, weights, config, ids):
        self.weights, self.config, self.ids = weights, config, ids
        self.hidden, self.heads = config['hidden_size'], config['num_attention_heads']
        self.width = config.get('head_dim') or self.hidden // self.heads
        self.eps = config.get('rms_norm_eps') or 1e-6
        self.layer_eps = config.get('layer_norm_eps') or config.get('norm_epsilon') or self.eps

    def layers(self, prefix='model.layers.'):
        return [(layer, f'{prefix}{layer}.') for layer in range(self.config['num_hidden_layers'])]

    def embed(self, name='model.embed_tokens'):
        return self.weights[name + '.weight'][self.ids]

    def rms(self, x, name, offset=0):
        """Over the last axis; the gain is offset + weight."""
        return x / np.sqrt(np.mean(x ** 2, -1, keepdims=True) + self.eps) * (offset + self.weights[name + '.weight'])

    def layer_norm(self, x, name):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt(np.mean(x ** 2, -1, keepdims=True) + self.layer_eps)
        return x * self.weights[name + '.weight'] + self.weights.get(name + '.bias', 0.0)

    def linear(self, x, name):
        """An absent bias is zero."""
        return x @ self.weights[name + '.weight'].T + self.weights.get(name + '.bias', 0.0)

    def split_heads(self, x):
        return x.reshape(len(x), -1, self.width)

    def qkv(self, h, at):
        return [self.split_heads(self.linear(h, f'{at}self_attn.{part}_proj')) for part in 'qkv']

    def gated(self, h, at, act=silu, names=('gate_proj', 'up_proj', 'down_proj')):
        gate, up, down = (at + name for name in names)
        return self.linear(act(self.linear(h, gate)) * self.linear(h, up), down)

    def gated_mlp(self, h, at, act=silu):
        return self.gated(h, at + 'mlp.', act)

    def fused_gated(self, h, name, down, act=silu):
        gate, up = np.split(self.linear(h, name), 2, -1)
        return self.linear(act(gate) * up, down)

    def head(self, x, name='lm_head', tied='model.embed_tokens'):
        return self.linear(x, name if name + '.weight' in self.weights else tied)

    def slides(self, layer, default=lambda layer: False):
        """True if this layer has a window: by layer_types, else by the family's own rule."""
        types = self.config.get('layer_types')
        return types[layer] == 'sliding_attention' if types else default(layer)

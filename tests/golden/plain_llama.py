"""Llama and similar models, a second time, for check_oracle.py: one token and one head at a time, with a KV cache.

Written from the formulas, without code of oracle.py: biases, norms of q and k, and fused matrices are used if the
weights have them, and scaled RoPE is computed from wavelengths. Keys are cached before RoPE and rotated whenever they
are read. Slow; for a few ids of a tiny model.
"""
import numpy as np


def frequency(rope, theta, i, width):
    """Returns radians per position of pair i."""
    plain = 1 / theta ** (2 * i / width)
    kind = rope.get('rope_type', rope.get('type', 'default'))
    if kind == 'linear':
        return plain / rope['factor']
    if kind == 'default':
        return plain
    wave, old = 2 * np.pi / plain, rope['original_max_position_embeddings']
    low, high = rope['low_freq_factor'], rope['high_freq_factor']
    if wave < old / high:
        return plain
    if wave > old / low:
        return plain / rope['factor']
    smooth = (old / wave - low) / (high - low)
    return (1 - smooth) * plain / rope['factor'] + smooth * plain


def own_window(config, layer):
    """Returns how many positions this layer of the model sees; 0: all."""
    kinds = config.get('layer_types')
    slides = kinds[layer].startswith('sliding') if kinds else layer >= config.get('max_window_layers', 0)
    return config.get('sliding_window') or 0 if slides and config.get('use_sliding_window', True) else 0


class Plain:
    """A model, and the keys and values of the tokens so far."""

    def __init__(self, weights, config, window=0, sinks=0):
        self.weights, self.config, self.sinks = weights, config, sinks
        self.windows = [window or own_window(config, layer) for layer in range(config['num_hidden_layers'])]
        self.heads, self.groups = config['num_attention_heads'], config['num_key_value_heads']
        self.width = config.get('head_dim', config['hidden_size'] // self.heads)
        rope = config.get('rope_parameters') or config.get('rope_scaling') or {}
        theta = rope.get('rope_theta', config.get('rope_theta'))
        self.frequencies = [frequency(rope, theta, i, self.width) for i in range(self.width // 2)]
        self.cache = [[] for _ in range(config['num_hidden_layers'])]

    def norm(self, x, name):
        mean = sum(a * a for a in x) / len(x)
        return np.array([a * g / (mean + self.config['rms_norm_eps']) ** 0.5 for a, g in zip(x, self.weights[name])])

    def product(self, at, name, x):
        """Multiplies with a matrix of its own, or with its rows of a fused one, and adds the bias."""
        q, kv = self.heads * self.width, self.groups * self.width
        rows = {'q': slice(0, q), 'k': slice(q, q + kv), 'v': slice(q + kv, q + 2 * kv),
                'gate': slice(0, self.config['intermediate_size']), 'up': slice(self.config['intermediate_size'], None)}
        for fused in ('qkv', 'gate_up'):
            if f'{at}{fused}_proj.weight' in self.weights and name in fused:
                return self.weights[f'{at}{fused}_proj.weight'][rows[name]] @ x
        out = self.weights[f'{at}{name}_proj.weight'] @ x
        return out + self.weights.get(f'{at}{name}_proj.bias', 0)

    def turned(self, head, position):
        out, half = np.array(head), self.width // 2
        for i in range(half):
            cos, sin = np.cos(position * self.frequencies[i]), np.sin(position * self.frequencies[i])
            out[i], out[i + half] = head[i] * cos - head[i + half] * sin, head[i + half] * cos + head[i] * sin
        return out

    def split(self, at, name, x):
        parts = np.split(self.product(at, name, x), self.heads if name == 'q' else self.groups)
        gain = f'{at}{name}_norm.weight'
        return [self.norm(part, gain) for part in parts] if gain in self.weights else parts

    def places(self, window, position):
        """Returns {index in the cache: position of its key for this query} for all that the query sees."""
        if window == 0 or position < window + self.sinks:
            return {i: i for i in range(position + 1)}
        begin = position - window + 1
        return {i: begin - self.sinks + i for i in range(self.sinks)} | {i: i for i in range(begin, position + 1)}

    def attention(self, layer, at, x, position):
        q, k, v = (self.split(at, name, x) for name in 'qkv')
        self.cache[layer].append((k, v))
        out, places = [], self.places(self.windows[layer], position)
        seen = [([self.turned(key, place) for key in self.cache[layer][i][0]], self.cache[layer][i][1])
                for i, place in places.items()]
        for head in range(self.heads):
            group, query = head * self.groups // self.heads, self.turned(q[head], position)
            scores = np.exp([keys[group] @ query / self.width ** 0.5 for keys, _ in seen])
            out.append(sum(s * values[group] for s, (_, values) in zip(scores / scores.sum(), seen)))
        return self.product(at, 'o', np.concatenate(out))

    def mlp(self, at, x):
        gate, up = self.product(at, 'gate', x), self.product(at, 'up', x)
        return self.product(at, 'down', gate / (1 + np.exp(-gate)) * up)

    def step(self, token, position):
        x = self.weights['model.embed_tokens.weight'][token]
        for layer in range(len(self.cache)):
            at = f'model.layers.{layer}.'
            x = x + self.attention(layer, at + 'self_attn.', self.norm(x, at + 'input_layernorm.weight'), position)
            x = x + self.mlp(at + 'mlp.', self.norm(x, at + 'post_attention_layernorm.weight'))
        head = 'model.embed_tokens.weight' if self.config['tie_word_embeddings'] else 'lm_head.weight'
        return self.weights[head] @ self.norm(x, 'model.norm.weight')


def logits(weights, config, ids, window=0, sinks=0):
    model = Plain(weights, config, window, sinks)
    return [model.step(token, position) for position, token in enumerate(ids)]

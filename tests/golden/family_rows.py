"""Tensors that GGUF stores in another form than Hugging Face's folders: stacked, split, reordered, raised by 1.

Each class changes the tensors of one layer and undoes it. Names are Hugging Face's without the layer's prefix.
"""
import typing

import numpy as np

from model_files import half_split
from to_gguf import pairs_together

GATED = ('gate_proj', 'up_proj', 'down_proj')


def head_width(config):
    return config.get('head_dim') or config['hidden_size'] // config['num_attention_heads']


def groups_of(config):
    return config.get('num_key_value_heads') or config['num_attention_heads']


class Paired(typing.NamedTuple):
    """Rows of q and k, and their biases: GGUF has the channels of a pair side by side, folders half a head apart."""
    stem: str = 'self_attn.{}_proj'

    def each(self, layer, config, reorder):
        for letter, heads in (('q', config['num_attention_heads']), ('k', groups_of(config))):
            for suffix in ('.weight', '.bias'):
                name = self.stem.format(letter) + suffix
                if name in layer:
                    layer[name] = reorder(layer[name], heads)

    def apply(self, layer, config):
        self.each(layer, config, pairs_together)

    def undo(self, layer, config):
        self.each(layer, config, half_split)


class Stacked(typing.NamedTuple):
    """Matrices that folders store one per expert: [experts][rows][cols]."""
    part: str = 'mlp.experts.'
    names: tuple = GATED

    def apply(self, layer, _):
        for name in self.names:
            found = sum(key.startswith(self.part) and key.endswith(f'.{name}.weight') for key in layer)
            if found:
                layer[f'{self.part}{name}.weight'] = np.stack(
                    [layer.pop(f'{self.part}{e}.{name}.weight') for e in range(found)])

    def undo(self, layer, _):
        for name in self.names:
            for e, matrix in enumerate(layer.pop(f'{self.part}{name}.weight', ())):
                layer[f'{self.part}{e}.{name}.weight'] = matrix


class Split(typing.NamedTuple):
    """Rows of one matrix that GGUF stores as several: sizes(config) rows each, or else equal parts."""
    whole: str
    parts: tuple
    sizes: typing.Callable = None

    def apply(self, layer, config):
        if self.whole + '.weight' in layer:
            rows = layer.pop(self.whole + '.weight')
            cuts = np.cumsum(self.sizes(config))[:-1] if self.sizes else len(self.parts)
            for part, matrix in zip(self.parts, np.split(rows, cuts, -2)):
                layer[part + '.weight'] = matrix

    def undo(self, layer, _):
        if self.parts[0] + '.weight' in layer:
            layer[self.whole + '.weight'] = np.concatenate([layer.pop(part + '.weight') for part in self.parts], -2)


class Grouped(typing.NamedTuple):
    """InternLM 2's wqkv (per KV group its q heads, its k head, its v head) as q, k and v, the first two paired."""
    whole: str = 'attention.wqkv.weight'
    parts: tuple = ('self_attn.q_proj.weight', 'self_attn.k_proj.weight', 'self_attn.v_proj.weight')

    def apply(self, layer, config):
        rows = layer.pop(self.whole)
        groups, cols = groups_of(config), rows.shape[-1]
        rows = rows.reshape(groups, -1, head_width(config), cols)
        for name, part in zip(self.parts, (rows[:, :-2], rows[:, -2], rows[:, -1])):
            layer[name] = part.reshape(-1, cols)

    def undo(self, layer, config):
        groups, cols = groups_of(config), config['hidden_size']
        parts = [layer.pop(name).reshape(groups, -1, head_width(config), cols) for name in self.parts]
        layer[self.whole] = np.concatenate(parts, 1).reshape(-1, cols)


class ByHead(typing.NamedTuple):
    """GPT-NeoX: per head its q, k, v in folders; all q, all k, all v in GGUF."""
    stem: str = 'attention.query_key_value'

    def each(self, layer, shape):
        for name in (self.stem + '.weight', self.stem + '.bias'):
            rows = layer[name]
            layer[name] = rows.reshape(*shape, -1, *rows.shape[1:]).swapaxes(0, 1).reshape(rows.shape)

    def apply(self, layer, config):
        self.each(layer, (config['num_attention_heads'], 3))

    def undo(self, layer, config):
        self.each(layer, (3, config['num_attention_heads']))


class HeadGains(typing.NamedTuple):
    """StableLM's gains, one tensor per head in folders: one [heads][head_dim] in GGUF."""
    stems: tuple = ('self_attn.q_layernorm', 'self_attn.k_layernorm')

    def apply(self, layer, _):
        for stem in self.stems:
            count = sum(name.startswith(stem + '.norms.') for name in layer)
            if count:
                layer[stem + '.weight'] = np.stack([layer.pop(f'{stem}.norms.{i}.weight') for i in range(count)])

    def undo(self, layer, _):
        for stem in self.stems:
            for i, gain in enumerate(layer.pop(stem + '.weight', ())):
                layer[f'{stem}.norms.{i}.weight'] = gain


class Flat(typing.NamedTuple):
    """A tensor [1][n] that is [n] in GGUF."""
    name: str

    def apply(self, layer, _):
        layer[self.name] = layer[self.name].reshape(-1)

    def undo(self, layer, _):
        layer[self.name] = layer[self.name].reshape(1, -1)


class Renamed(typing.NamedTuple):
    """A tensor of which the suffix too has another name."""
    name: str
    other: str

    def apply(self, layer, _):
        if self.name in layer:
            layer[self.other] = layer.pop(self.name)

    def undo(self, layer, _):
        if self.other in layer:
            layer[self.name] = layer.pop(self.other)


class Turned(typing.NamedTuple):
    """gpt-oss: experts [in][out] with alternating columns gate, up; GGUF has gate and up [out][in]."""
    part: str = 'mlp.experts.'

    def apply(self, layer, _):
        both, bias = layer.pop(self.part + 'gate_up_proj'), layer.pop(self.part + 'gate_up_proj_bias')
        for name, first in (('gate', 0), ('up', 1)):
            layer[f'{self.part}{name}_proj.weight'] = both[:, :, first::2].swapaxes(1, 2)
            layer[f'{self.part}{name}_proj.bias'] = bias[:, first::2]
        layer[self.part + 'down_proj.weight'] = layer.pop(self.part + 'down_proj').swapaxes(1, 2)
        layer[self.part + 'down_proj.bias'] = layer.pop(self.part + 'down_proj_bias')

    def undo(self, layer, _):
        gate, up = (layer.pop(f'{self.part}{name}_proj.weight').swapaxes(1, 2) for name in ('gate', 'up'))
        layer[self.part + 'gate_up_proj'] = np.stack([gate, up], -1).reshape(*gate.shape[:2], -1)
        gate, up = (layer.pop(f'{self.part}{name}_proj.bias') for name in ('gate', 'up'))
        layer[self.part + 'gate_up_proj_bias'] = np.stack([gate, up], -1).reshape(len(gate), -1)
        layer[self.part + 'down_proj'] = layer.pop(self.part + 'down_proj.weight').swapaxes(1, 2)
        layer[self.part + 'down_proj_bias'] = layer.pop(self.part + 'down_proj.bias')

"""No part of a model file is silently dropped: every tensor and every key is removed, renamed and changed, and unknown
ones are added. Each time the receipt changes, or the model is refused in one line, or `inspect` lists the key or tensor
as not used. Exits 0 or 1.

usage: mutate_models.py --program build/kvasir --models TINY      TINY: the folder that golden/make_tiny.py wrote

Tensors are mutated in one model of each family; in all models with KVASIR_TEST_ALL=1.
Removing a key that repeats a default gives the same model; the defaults below follow transformers and llama.cpp.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'golden'))
import to_gguf
from make_tiny import MODELS
from model_files import read_json, read_stored, write_safetensors

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
IDS = '7,3,11,2,5,19,23,4'

# The meaning of an absent key.
SHARED_DEFAULTS = {'rope_theta': 10000.0, 'hidden_act': 'silu', 'attention_bias': False, 'mlp_bias': False,
                   'rope_scaling': None, 'use_sliding_window': False, 'tie_word_embeddings': False}
DEFAULTS = {
    'llama': SHARED_DEFAULTS | {'rms_norm_eps': 1e-6},
    'mistral': SHARED_DEFAULTS | {'rms_norm_eps': 1e-6},
    'qwen2': SHARED_DEFAULTS | {'rms_norm_eps': 1e-6},
    'qwen3': SHARED_DEFAULTS | {'rms_norm_eps': 1e-6},
    'phi3': SHARED_DEFAULTS | {'rms_norm_eps': 1e-5, 'sliding_window': None},
    'gpt2': {'layer_norm_epsilon': 1e-5, 'activation_function': 'gelu_new', 'n_positions': 1024,
             'tie_word_embeddings': True},
}
# Keys that llama.cpp's converters write for these architectures, with values that change nothing. Source:
# conversion/base.py, llama.py, qwen.py, phi.py, gpt2.py and gguf-py/gguf/gguf_writer.py of ggml-org/llama.cpp.
U32, I32, F32, BOOL, STRING, ARRAY = (getattr(to_gguf, name) for name in ('U32', 'I32', 'F32', 'BOOL', 'STRING', 'ARRAY'))
CONVERTED_BY_ALL = {
    'expert_count': (U32, 0), 'expert_used_count': (U32, 0), 'expert_group_count': (U32, 0),
    'expert_group_used_count': (U32, 0), 'expert_gating_func': (U32, 0), 'attention.causal': (BOOL, True),
    'attention.layer_norm_epsilon': (F32, 1e-5), 'attention.layer_norm_rms_epsilon': (F32, 1e-5)}
CONVERTED_WITH_ROPE = CONVERTED_BY_ALL | {
    'rope.scaling.type': (STRING, 'none'), 'rope.scaling.factor': (F32, 1.0),
    'rope.scaling.original_context_length': (U32, 400), 'rope.scaling.yarn_attn_factor': (F32, 1.0),
    'rope.dimension_sections': (ARRAY, (I32, [0, 0, 0, 0])), 'attention.sliding_window': (U32, 0)}
CONVERTED = {
    'llama': CONVERTED_WITH_ROPE | {'tensor_data_layout': (STRING, 'Meta AI original pth')}, 'gpt2': CONVERTED_BY_ALL,
    'qwen2': CONVERTED_WITH_ROPE | {'pooling_type': (U32, 3)},
    'qwen3': CONVERTED_WITH_ROPE | {'pooling_type': (U32, 3)},
    'phi3': CONVERTED_WITH_ROPE | {'rope.scaling.attn_factor': (F32, 1.0)}}
# Keys of the same converters that no model of these architectures has; Kvasir refuses them for their meaning.
NEVER = {'rope.scaling.yarn_ext_factor': (F32, 1.0), 'rope.scaling.yarn_beta_fast': (F32, 32.0),
         'rope.scaling.yarn_beta_slow': (F32, 1.0), 'rope.freq_base_swa': (F32, 10000.0),
         'classifier.output_labels': (ARRAY, (STRING, ['yes', 'no']))}
GENERAL = {'general.type': (STRING, 'model'), 'general.quantization_version': (U32, 2), 'general.size_label': (STRING, '1K'),
           'general.license': (STRING, 'mit'), 'general.tags': (ARRAY, (STRING, ['a'])),
           'general.base_model.0.name': (STRING, 'b'), 'general.sampling.sequence': (STRING, 'k;p')}
LIMITS = ('max_position_embeddings', 'context_length')     # change the number of positions, not the logits
STOPS = ('eos_token_id', 'eot_token_id')                                   # change where an answer ends, not the logits
STARTS = ('bos_token_id',)                                  # begins texts; the prompts here are ids


class Kvasir:
    def __init__(self, program, scratch):
        self.program = program
        self.environment = os.environ | {'XDG_CACHE_HOME': os.path.join(scratch, 'cache')}

    def call(self, *arguments):
        return subprocess.run([self.program, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False, timeout=60, env=self.environment)

    def run(self, model):
        return self.call('run', model, '--ids', IDS, '-n', '4', '--greedy', '--json', '--threads', '1')

    def receipt(self, model):
        done = self.run(model)
        if done.returncode != 0:
            sys.exit(f'{model}: {done.stderr}')
        answer = json.loads(done.stdout)
        return answer['receipt'], answer['tokens']

    def listed(self, model):
        """Returns {name: reason} of unused parts; keys without the name of their file."""
        done = self.call('inspect', model, '--json')
        if done.returncode != 0:
            return {}
        return {one['name'].split(': ')[-1]: one['why'] for one in json.loads(done.stdout)['ignored']}

    def context(self, model):
        done = self.call('plan', model, '--json')
        return json.loads(done.stdout)['ctx'] if done.returncode == 0 else None


def changed(value):
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1 if isinstance(value, int) else value * 1.5
    if isinstance(value, str):
        return value + 'x'
    if isinstance(value, (list, tuple)):
        return [*value[:-1], 1 - value[-1] if value[-1] in (0, 1) else changed(value[-1])]
    return 1 if value is None else 'not an object'


def paths_of(value, before=()):
    """Yields the path of every key, inner objects included."""
    for key, inner in value.items():
        yield before + (key,)
        if isinstance(inner, dict):
            yield from paths_of(inner, before + (key,))


def edited(config, path, edit):
    """Returns a copy after edit(the object that holds the last key, that key)."""
    copy = json.loads(json.dumps(config))
    holder = copy
    for key in path[:-1]:
        holder = holder[key]
    edit(holder, path[-1])
    return copy


def rename(holder, key):
    holder[key + '_x'] = holder.pop(key)


def change(holder, key):
    holder[key] = changed(holder[key])


def at(value, path):
    for key in path:
        value = value[key]
    return value


class Folder:
    """A model as a Hugging Face folder."""

    def __init__(self, folder):
        self.folder = folder
        self.config = read_json(folder, 'config.json')
        self.text = self.config.get('text_config') or self.config
        self.tensors = {}
        for name in os.listdir(folder):
            if name.endswith('.safetensors'):
                self.tensors |= read_stored(os.path.join(folder, name))

    def family(self):
        return self.text['model_type']

    def write(self, out, config=None, tensors=None):
        os.makedirs(out, exist_ok=True)
        with open(os.path.join(out, 'config.json'), 'w', encoding='utf-8') as file:
            json.dump(config or self.config, file)
        if tensors is None:
            os.symlink(os.path.abspath(os.path.join(self.folder, 'model.safetensors')), os.path.join(out, 'model.safetensors'))
        else:
            kinds = {kind for kind, _ in tensors.values()}
            write_safetensors(os.path.join(out, 'model.safetensors'),
                              {name: to_gguf.widen(*stored) for name, stored in tensors.items()}, kinds.pop())
        return out

    def is_default(self, path):
        key, value = path[-1], at(self.config, path)
        if key in ('num_key_value_heads', 'head_dim'):
            heads = self.text['num_attention_heads']
            plain = {'num_key_value_heads': heads, 'head_dim': self.text['hidden_size'] // heads}
            return self.text['model_type'] in ('llama', 'phi3') + ('mistral',) * (key == 'head_dim') and value == plain[key]
        if key == 'n_inner':
            return value in (None, 4 * self.text['n_embd'])
        if key in ('rope_type', 'type'):
            return value == 'default'
        defaults = DEFAULTS[self.text['model_type']]
        return key in defaults and value == defaults[key] or value is None

    def may_have_windows(self):
        get = self.text.get
        return get('sliding_window') is not None and (
            'layer_types' in self.text or get('max_window_layers') < get('num_hidden_layers'))

    def mutations(self, first_token, with_tensors):
        """Yields (name, kind, write)."""
        for path in paths_of(self.config):
            key = '.'.join(path)
            if path[-1] in STOPS:     # the changed stop must end the answer at its first token
                yield key, 'change', lambda out, p=path: self.write(
                    out, edited(self.config, p, lambda holder, k: holder.__setitem__(k, first_token)))
                continue
            edits = {'remove': lambda holder, k: holder.pop(k), 'rename': rename, 'change': change}
            if at(self.config, path) is None:     # null means the same as a missing key
                edits.pop('rename')
            for kind, edit in edits.items():
                yield key, kind, lambda out, p=path, e=edit: self.write(out, edited(self.config, p, e))
        yield 'stranger', 'add', lambda out: self.write(out, self.config | {'stranger': 3})
        for name in self.tensors if with_tensors else ():
            for kind, edit in TENSOR_EDITS.items():
                yield name, kind, lambda out, n=name, e=edit: self.write(out, tensors=e(self.tensors, n))
        last = next(name for name in self.tensors if '.0.' in name)
        for name in ('stranger.weight', last.replace('.0.', '.0.stranger.'), last.replace('.0.', '.9.')):
            yield name, 'add', lambda out, n=name: self.write(out, tensors=self.tensors | {n: self.tensors[last]})


def renamed(tensors, name):
    stem, _, ending = name.rpartition('.')
    return {(f'{stem}_x.{ending}' if key == name else key): value for key, value in tensors.items()}


def nudged(tensors, name):
    kind, array = tensors[name]
    other = np.array(array, order='C')
    flat = other.reshape(-1).view(f'u{array.itemsize}')
    flat[len(flat) // 2] ^= 1     # the last bit of one number
    return tensors | {name: (kind, other)}


TENSOR_EDITS = {'remove': lambda tensors, name: {key: value for key, value in tensors.items() if key != name},
                'rename': renamed, 'change': nudged}


class Gguf:
    """The same model as a GGUF file."""

    def __init__(self, folder):
        self.entries, tensors = to_gguf.contents(folder)
        self.tensors = {name: (kind, array) for name, kind, array in tensors}
        self.arch = self.entries[0][2]
        self.values = {key.removeprefix(self.arch + '.'): value for key, _, value in self.entries}

    def family(self):
        return self.arch

    def write(self, out, entries=None, tensors=None):
        tensors = self.tensors if tensors is None else tensors
        to_gguf.write_file(out + '.gguf', self.entries if entries is None else entries,
                           [(name, *stored) for name, stored in tensors.items()], 3, 32)
        return out + '.gguf'

    def is_default(self, path):
        key = path[-1].removeprefix(self.arch + '.')
        get = self.values.get
        width = get('embedding_length') // get('attention.head_count')
        defaults = {'attention.key_length': width, 'attention.value_length': get('attention.key_length'),
                    'rope.dimension_count': get('attention.key_length') or width, 'vocab_size': get('vocab_size'),
                    'rope.freq_base': 10000.0, 'attention.head_count_kv': get('attention.head_count'),
                    'rope.scaling.type': 'linear', 'attention.sliding_window': 0}
        if key == 'attention.sliding_window_pattern':     # absent: all layers
            return all(get(key)[1])
        return key in defaults and get(key) == defaults[key]

    def mutations(self, first_token, with_tensors):
        for i, (key, kind, value) in enumerate(self.entries):
            def write(out, entry, i=i):
                return self.write(out, [*self.entries[:i], *entry, *self.entries[i + 1:]])
            if key.endswith(STOPS):
                yield key, 'change', lambda out, w=write, k=key: w(out, [(k, to_gguf.U32, first_token)])
                yield key, 'rename', lambda out, w=write, e=(key + '_x', kind, value): w(out, [e])
                continue
            other = (value[0], changed(value[1])) if kind == to_gguf.ARRAY else changed(value)
            yield key, 'remove', lambda out, w=write: w(out, [])
            yield key, 'rename', lambda out, w=write, e=(key + '_x', kind, value): w(out, [e])
            yield key, 'change', lambda out, w=write, e=(key, kind, other): w(out, [e])
        for key in (f'{self.arch}.stranger', f'{self.arch}.attention.stranger', 'general.stranger', 'stranger.key'):
            yield key, 'add', lambda out, k=key: self.write(out, [*self.entries, (k, to_gguf.U32, 3)])
        for name in self.tensors if with_tensors else ():
            for kind, edit in TENSOR_EDITS.items():
                yield name, kind, lambda out, n=name, e=edit: self.write(out, tensors=e(self.tensors, n))
        norm = self.tensors['output_norm.weight']
        for name in ('stranger.weight', 'blk.0.stranger.weight', 'blk.9.attn_norm.weight', 'output.bias',
                     'rope_factors_short.weight', 'blk.0.attn_output.scale'):
            yield name, 'add', lambda out, n=name: self.write(out, tensors=self.tensors | {n: norm})


def converters_keys(kvasir, model, base, scratch):
    """Returns a message for each converter key that Kvasir treats wrongly."""
    keys = {f'{model.arch}.{key}': value for key, value in (CONVERTED[model.arch] | NEVER).items()} | GENERAL
    there = {key for key, _, _ in model.entries}
    wrong = []
    for key, (kind, value) in keys.items():
        if key in there:
            continue
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            done = kvasir.run(model.write(os.path.join(folder, 'm'), [*model.entries, (key, kind, value)]))
        if key.removeprefix(model.arch + '.') in NEVER:
            good = done.returncode == 2 and key in done.stderr and 'not known' not in done.stderr
        else:
            good = done.returncode == 0 and json.loads(done.stdout)['receipt'] == base['receipt']
        if not good:
            wrong.append(f'{key}: {done.stderr.strip() or "another receipt"}')
    return wrong


def outcome(kvasir, model, base, mutation, scratch):
    """Returns changed, refused, listed, default, limit or start; or a text that begins with FAIL."""
    name, kind, write = mutation
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        path = write(os.path.join(folder, 'm'))
        done = kvasir.run(path)
        if done.returncode == 2:
            lines = done.stderr.strip().split('\n')
            good = len(lines) == 1 and lines[0].startswith('kvasir: ')
            return 'refused' if good and (kind != 'add' or name in lines[0]) else f'FAIL: refused by {done.stderr!r}'
        if done.returncode != 0:
            return f'FAIL: exit code {done.returncode}: {done.stderr}'
        if json.loads(done.stdout)['receipt'] != base['receipt']:
            return 'changed'
        if name in base['listed'] or kvasir.listed(path).get(name + ('_x' if kind == 'rename' else '')):
            return 'listed'
        last = name.split('.')[-1]
        if name.endswith(LIMITS) and kvasir.context(path) != base['context']:
            return 'limit'
        if kind != 'add' and last in STARTS:
            return 'start'
        keys = tuple(name.split('.')) if isinstance(model, Folder) else (name,)
        if kind == 'remove' and name not in model.tensors and model.is_default(keys):
            return 'default'
        if last == 'use_sliding_window' and not model.may_have_windows():
            return 'default'     # no layer has one, switched on or off
        return 'FAIL: the same receipt, and not a word'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', required=True)
    parser.add_argument('--models', required=True)
    args = parser.parse_args()
    folders = [os.path.join(args.models, name) for name in MODELS]
    folders += [os.path.join(ROOT, 'models', name) for name in ('tales', 'tales-gpt2')]
    failures = 0
    mutated = set()     # families whose tensors were
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(2) as pool:
        kvasir = Kvasir(os.path.abspath(args.program), scratch)
        for folder in folders:
            for model in (Folder(folder), Gguf(folder)):
                name = f'{os.path.basename(folder)} {type(model).__name__.lower()}'
                path = model.write(os.path.join(scratch, name.replace(' ', '-')))
                receipt, tokens = kvasir.receipt(path)
                base = {'receipt': receipt, 'context': kvasir.context(path), 'listed': kvasir.listed(path)}
                family = (type(model), model.family())
                with_tensors = family not in mutated or os.environ.get('KVASIR_TEST_ALL') == '1'
                mutated.add(family)
                mutations = list(model.mutations(tokens[0], with_tensors))
                found = list(pool.map(lambda m: outcome(kvasir, model, base, m, scratch), mutations))
                counts = collections.Counter(one.split(':')[0] for one in found)
                print(f'{name:<28}', ', '.join(f'{count} {word}' for word, count in sorted(counts.items())), flush=True)
                for (key, kind, _), one in zip(mutations, found):
                    if one.startswith('FAIL'):
                        failures += 1
                        print(f'  {kind} {key}: {one}', flush=True)
                if isinstance(model, Gguf):
                    wrong = converters_keys(kvasir, model, base, scratch)
                    failures += len(wrong)
                    print(''.join(f'  converters write {line}\n' for line in wrong), end='', flush=True)
                shutil.rmtree(path, ignore_errors=True)
    print('PASS' if failures == 0 else f'FAIL: {failures} mutations')
    return failures > 0


if __name__ == '__main__':
    sys.exit(main())

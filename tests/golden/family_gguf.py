"""Writes tiny models of many families as GGUF, as llama.cpp's converter does, and reads such files back.

to_gguf(config, weights, path) writes; from_gguf(path) returns (weights, config) with Hugging Face's names, layout and
keys. family_keys.py has the metadata, family_rows.py the changes to tensors, to_gguf.py and model_files.py the
container. Tensors are float32, except MXFP4 experts. The files contain no tokenizer.
"""
import re
import typing

import numpy as np

import family_keys
import family_mxfp4
from family_rows import ByHead, Flat, Grouped, HeadGains, Paired, Renamed, Split, Stacked, Turned, groups_of, head_width
from model_files import gguf_tensors, refuse
from to_gguf import ARRAY, BOOL, F32, I32, STRING, U32, write_file

MOSTLY_F32, MOSTLY_MXFP4 = 0, 38     # general.file_type
OUTSIDE = {'model.embed_tokens': 'token_embd', 'model.norm': 'output_norm', 'lm_head': 'output'}
LAYER = {
    'input_layernorm': 'attn_norm', 'post_attention_layernorm': 'ffn_norm', 'self_attn.q_proj': 'attn_q',
    'self_attn.k_proj': 'attn_k', 'self_attn.v_proj': 'attn_v', 'self_attn.o_proj': 'attn_output',
    'self_attn.qkv_proj': 'attn_qkv', 'self_attn.q_norm': 'attn_q_norm', 'self_attn.k_norm': 'attn_k_norm',
    'mlp.gate_proj': 'ffn_gate', 'mlp.up_proj': 'ffn_up', 'mlp.down_proj': 'ffn_down',
    'mlp.gate': 'ffn_gate_inp', 'mlp.experts.gate_proj': 'ffn_gate_exps', 'mlp.experts.up_proj': 'ffn_up_exps',
    'mlp.experts.down_proj': 'ffn_down_exps'}
AROUND = {'post_attention_layernorm': 'post_attention_norm', 'pre_feedforward_layernorm': 'ffn_norm',
          'post_feedforward_layernorm': 'post_ffw_norm'}
SHARED = {f'mlp.shared_experts.{part}_proj': f'ffn_{part}_shexp' for part in ('gate', 'up', 'down')}
BLOCK_SPARSE = {'block_sparse_moe.gate': 'ffn_gate_inp', 'block_sparse_moe.experts.w1': 'ffn_gate_exps',
                'block_sparse_moe.experts.w2': 'ffn_down_exps', 'block_sparse_moe.experts.w3': 'ffn_up_exps'}
GRANITE_MOE = {'block_sparse_moe.router.layer': 'ffn_gate_inp', 'block_sparse_moe.gate': 'ffn_gate_exps',
               'block_sparse_moe.up': 'ffn_up_exps', 'block_sparse_moe.output_linear': 'ffn_down_exps',
               'shared_mlp.gate': 'ffn_gate_shexp', 'shared_mlp.up': 'ffn_up_shexp',
               'shared_mlp.output_linear': 'ffn_down_shexp'}
MIXTRAL = ('w1', 'w3', 'w2')
QKV = ('self_attn.q_proj', 'self_attn.k_proj', 'self_attn.v_proj')
CORRECTION = Renamed('mlp.gate.e_score_correction_bias', 'mlp.correction.bias')


class Layout(typing.NamedTuple):
    """Names and changes of a family's tensors. `names` overrides those of LAYER and OUTSIDE."""
    arch: str
    names: dict = {}
    outside: dict = OUTSIDE
    changes: tuple = ()     # in order; undone in reverse order
    prefix: str = 'model.layers.'
    raised: bool = False     # GGUF's gains are 1 + the folder's


def packed_sizes(config):
    width, groups = head_width(config), groups_of(config)
    return config['num_attention_heads'] * width, groups * width, groups * width


LAYOUTS = {
    'gemma': Layout('gemma', raised=True),
    'gemma2': Layout('gemma2', AROUND, raised=True),
    'gemma3_text': Layout('gemma3', AROUND, raised=True),
    'smollm3': Layout('smollm3', changes=(Paired(),)),
    'granite': Layout('granite', changes=(Paired(),)),
    'minicpm': Layout('minicpm', changes=(Paired(),)),
    'ministral3': Layout('mistral3', changes=(Paired(),)),
    'olmo2': Layout('olmo2', AROUND),
    'olmo3': Layout('olmo2', AROUND),
    'exaone4': Layout('exaone4', AROUND),
    'glm4': Layout('glm4', {'post_self_attn_layernorm': 'post_attention_norm', 'post_mlp_layernorm': 'post_ffw_norm',
                            'mlp.gate_up_proj': 'ffn_up'}),
    'seed_oss': Layout('seed_oss', {'post_attention_layernorm': 'post_attention_norm'}),
    'ernie4_5': Layout('ernie4_5'),
    'hunyuan_v1_dense': Layout('hunyuan-dense', {'self_attn.query_layernorm': 'attn_q_norm',
                                                 'self_attn.key_layernorm': 'attn_k_norm'}),
    'internlm2': Layout('internlm2', {
        'attention_norm': 'attn_norm', 'ffn_norm': 'ffn_norm', 'attention.wo': 'attn_output',
        'feed_forward.w1': 'ffn_gate', 'feed_forward.w3': 'ffn_up', 'feed_forward.w2': 'ffn_down'},
        {'model.tok_embeddings': 'token_embd', 'model.norm': 'output_norm', 'output': 'output'}, (Grouped(), Paired())),
    'baichuan': Layout('baichuan', changes=(Split('self_attn.W_pack', QKV, packed_sizes), Paired())),
    'phi3': Layout('phi3', {'mlp.gate_up_proj': 'ffn_up'}),
    'starcoder2': Layout('starcoder2', {'mlp.c_fc': 'ffn_up', 'mlp.c_proj': 'ffn_down'}),
    'phi': Layout('phi2', {'self_attn.dense': 'attn_output', 'mlp.fc1': 'ffn_up', 'mlp.fc2': 'ffn_down'},
                  OUTSIDE | {'model.final_layernorm': 'output_norm'}),
    'gpt_neox': Layout('gptneox', {
        'attention.query_key_value': 'attn_qkv', 'attention.dense': 'attn_output', 'mlp.dense_h_to_4h': 'ffn_up',
        'mlp.dense_4h_to_h': 'ffn_down'},
        {'gpt_neox.embed_in': 'token_embd', 'gpt_neox.final_layer_norm': 'output_norm', 'embed_out': 'output'},
        (ByHead(),), 'gpt_neox.layers.'),
    'stablelm': Layout('stablelm', {'self_attn.q_layernorm': 'attn_q_norm', 'self_attn.k_layernorm': 'attn_k_norm'},
                       changes=(HeadGains(),)),
    'cohere': Layout('command-r'),
    'cohere2': Layout('cohere2'),
    'qwen3_moe': Layout('qwen3moe', changes=(Stacked(),)),
    'qwen2_moe': Layout('qwen2moe', {
        f'mlp.shared_expert.{part}_proj': f'ffn_{part}_shexp' for part in ('gate', 'up', 'down')} | {
            'mlp.shared_expert_gate': 'ffn_gate_inp_shexp'},
        changes=(Stacked(), Flat('mlp.shared_expert_gate.weight'))),
    'mixtral': Layout('llama', BLOCK_SPARSE, changes=(Stacked('block_sparse_moe.experts.', MIXTRAL), Paired())),
    'olmoe': Layout('olmoe', changes=(Stacked(),)),
    'granitemoe': Layout('granitemoe', GRANITE_MOE, changes=(
        Split('block_sparse_moe.input_linear', ('block_sparse_moe.gate', 'block_sparse_moe.up')),
        Split('shared_mlp.input_linear', ('shared_mlp.gate', 'shared_mlp.up')), Paired())),
    'deepseek': Layout('deepseek', SHARED, changes=(Stacked(), Paired())),
    'glm4_moe': Layout('glm4moe', SHARED | {'post_attention_layernorm': 'post_attention_norm',
                                            'mlp.correction': 'exp_probs_b'}, changes=(Stacked(), CORRECTION)),
    'ernie4_5_moe': Layout('ernie4_5-moe', SHARED | {'mlp.correction': 'exp_probs_b'}, changes=(
        Stacked(), Renamed('mlp.moe_statics.e_score_correction_bias', 'mlp.correction.bias'))),     # stays [1][n]
    'phimoe': Layout('phimoe', BLOCK_SPARSE, changes=(Stacked('block_sparse_moe.experts.', MIXTRAL),)),
    'gpt_oss': Layout('gpt-oss', {
        'post_attention_layernorm': 'post_attention_norm', 'mlp.router': 'ffn_gate_inp',
        'self_attn.sinks': 'attn_sinks'}, changes=(Turned(), Renamed('self_attn.sinks', 'self_attn.sinks.weight'))),
}
LAYOUTS['granitemoeshared'] = LAYOUTS['granitemoe']


def by_layer(weights, prefix):
    """Returns ({name outside the layers: array}, {layer: {name inside: array}})."""
    outside, layers = {}, {}
    for name, array in weights.items():
        inside = re.fullmatch(re.escape(prefix) + r'(\d+)\.(.+)', name)
        if inside:
            layers.setdefault(int(inside[1]), {})[inside[2]] = array
        else:
            outside[name] = array
    return outside, layers


def renamed(tensors, names):
    out = {}
    for name, array in tensors.items():
        stem, suffix = name.rsplit('.', 1)
        if stem not in names or f'{names[stem]}.{suffix}' in out:
            raise SystemExit(f'family_gguf.py: no place for tensor "{name}"')
        out[f'{names[stem]}.{suffix}'] = array
    return out


def gguf_weights(config, weights):
    layout = LAYOUTS[config['model_type']]
    outside, layers = by_layer(weights, layout.prefix)
    out = renamed(outside, layout.outside)
    for index, layer in sorted(layers.items()):
        for change in layout.changes:
            change.apply(layer, config)
        out.update({f'blk.{index}.{name}': array for name, array in renamed(layer, LAYER | layout.names).items()})
    if layout.raised:
        out = {name: array + 1 if 'norm' in name else array for name, array in out.items()}
    return out | family_keys.extra_tensors(config)


def folder_weights(config, tensors):
    layout = LAYOUTS[config['model_type']]
    names = {other: name for name, other in (LAYER | layout.names).items()}     # of two names the family's own one wins
    outside, layers = by_layer(tensors, 'blk.')
    if layout.raised:
        outside, *raised = ({name: array - 1 if 'norm' in name else array for name, array in part.items()}
                            for part in (outside, *layers.values()))
        layers = dict(zip(layers, raised))
    weights = renamed(outside, {other: name for name, other in layout.outside.items()})
    for index, layer in layers.items():
        layer = renamed(layer, names)
        for change in reversed(layout.changes):
            change.undo(layer, config)
        weights.update({f'{layout.prefix}{index}.{name}': array for name, array in layer.items()})
    return weights


def typed(value):
    for python, kind in ((bool, BOOL), (int, U32), (float, F32), (str, STRING)):
        if isinstance(value, python):
            return kind, value
    return ARRAY, (BOOL if isinstance(value[0], bool) else I32, value)


def to_gguf(config, weights, path):
    arch = LAYOUTS[config['model_type']].arch
    keys = {'general.architecture': arch, 'general.type': 'model', 'general.name': 'tiny', 'general.file_type': MOSTLY_MXFP4 if 'quantization_config' in config else MOSTLY_F32}
    keys |= {f'{arch}.{key}': value for key, value in family_keys.metadata(config).items()}
    keys |= {'tokenizer.ggml.model': 'none', 'tokenizer.ggml.bos_token_id': config['bos_token_id'],
             'tokenizer.ggml.eos_token_id': config['eos_token_id']}
    tensors = gguf_weights(config, weights)
    packed = '_exps.weight' if 'quantization_config' in config else ()
    write_file(path, [(key, *typed(value)) for key, value in keys.items()],
               [(name, 'MXFP4', family_mxfp4.gguf_blocks(array)) if name.endswith(packed) else
                (name, 'F32', np.ascontiguousarray(array, '<f4')) for name, array in tensors.items()], 3, 32)


def from_gguf(path):
    metadata, tensors = gguf_tensors(path)
    arch = metadata['general.architecture']
    numbers = {key.removeprefix(arch + '.'): value for key, value in metadata.items() if key.startswith(arch + '.')}
    if arch not in family_keys.KINDS:
        refuse(path, f'architecture "{arch}" is not known here')
    config = family_keys.config_of(arch, numbers, tensors)
    if metadata.get('general.file_type') == MOSTLY_MXFP4:
        config['quantization_config'] = {'quant_method': 'mxfp4'}
    return folder_weights(config, tensors), config

"""The oracle of many families: logits of a model in float64 from weights under Hugging Face's names and its config.

usage: family_forward.py MODEL --ids 1,2,3 [--out F.npy] [--want F.npy]

MODEL is a Hugging Face folder, or a .gguf of one of these families. --want says how far other logits are from these.

One function a family, from a Net to logits [T, vocab]. No cache and no tricks, and no code of the engine; the blocks
are in family_blocks.py, GGUF's conventions in family_gguf.py. oracle.py has the oldest families, apart from this.
"""
import argparse
import functools
import os
import sys

import numpy as np

from family_blocks import (ACTIVATIONS, Net, at_chosen, attention, best, gelu_tanh, mixture, rope_of, rope_settings,
                           sigmoid, silu, soft_cap, softmax)
from family_gguf import from_gguf
from family_mxfp4 import from_folder
from model_files import read_folder, widen


def attend(net, h, at, rope, scale=None, window=0, cap=0, normed=None, normed_after=None, sinks=None, out='o_proj'):
    """Attention with three matrices. normed(x, letter) comes between them and RoPE, normed_after behind it."""
    q, k, v = net.qkv(h, at)
    if normed:
        q, k = normed(q, 'q'), normed(k, 'k')
    if rope:
        q, k = rope.turn(q), rope.turn(k)
    if normed_after:
        q, k = normed_after(q, 'q'), normed_after(k, 'k')
    y = attention(q, k, v, net.width ** -0.5 if scale is None else scale, window, cap, sinks)
    return net.linear(y, f'{at}self_attn.{out}')


def llama_like(net, rope, mlp=None, norm=None, residual=1.0, scale=None, normed=None, normed_after=None, x=None):
    """The final rows of a Llama: x += attend(norm x), x += mlp(norm x). mlp(h, at) is a gated one if not given."""
    norm, mlp, x = norm or net.rms, mlp or net.gated_mlp, net.embed() if x is None else x
    for _, at in net.layers():
        between = normed and functools.partial(normed, at)
        behind = normed_after and functools.partial(normed_after, at)
        x = x + residual * attend(net, norm(x, at + 'input_layernorm'), at, rope, scale, normed=between,
                                  normed_after=behind)
        x = x + residual * mlp(norm(x, at + 'post_attention_layernorm'), at)
    return norm(x, 'model.norm')


def head_norms(net, at, x, letter):
    """Every head of q or k by one gain [head_dim]."""
    return net.rms(x, f'{at}self_attn.{letter}_norm')


def row_norms(net, at, x, letter):
    """The whole row of q or k by a gain [heads * head_dim]."""
    return net.rms(x.reshape(len(x), -1), f'{at}self_attn.{letter}_norm').reshape(x.shape)


# ---- Gemma: gains are 1 + weight, the embedding is scaled, gates are gelu.

def gemma_embedding(net):
    return net.embed() * float(np.float32(np.sqrt(net.hidden)))


def gemma(net):
    rope, x = rope_of(net.config, net.width), gemma_embedding(net)
    for _, at in net.layers():
        x = x + attend(net, net.rms(x, at + 'input_layernorm', 1), at, rope)
        x = x + net.gated_mlp(net.rms(x, at + 'post_attention_layernorm', 1), at, gelu_tanh)
    return net.head(net.rms(x, 'model.norm', 1))


def gemma_blocks(net, window_of, rope_for, cap=0, normed=None):
    """Gemma 2 and 3: norms before and after both halves of a layer."""
    x, scale = gemma_embedding(net), net.config['query_pre_attn_scalar'] ** -0.5
    for layer, at in net.layers():
        window = window_of(layer)
        y = attend(net, net.rms(x, at + 'input_layernorm', 1), at, rope_for(window), scale, window, cap,
                   normed and functools.partial(normed, at))
        x = x + net.rms(y, at + 'post_attention_layernorm', 1)
        y = net.gated_mlp(net.rms(x, at + 'pre_feedforward_layernorm', 1), at, gelu_tanh)
        x = x + net.rms(y, at + 'post_feedforward_layernorm', 1)
    return soft_cap(net.head(net.rms(x, 'model.norm', 1)), net.config.get('final_logit_softcapping'))


def gemma2(net):
    rope, window = rope_of(net.config, net.width), net.config['sliding_window']
    return gemma_blocks(net, lambda layer: window if net.slides(layer, lambda layer: layer % 2 == 0) else 0,
                        lambda window: rope, net.config['attn_logit_softcapping'])


def gemma3(net):
    """Layers with a window have a theta of their own, and no scaling."""
    config, step = net.config, net.config.get('sliding_window_pattern') or 6
    local = rope_settings(config, 'sliding_attention') if 'rope_parameters' in config else {}
    near = rope_of(config, net.width, theta=local.get('rope_theta') or config.get('rope_local_base_freq'), scaled=False)
    far = rope_of(config, net.width)

    def window_of(layer):
        return config['sliding_window'] if net.slides(layer, lambda layer: (layer + 1) % step != 0) else 0

    return gemma_blocks(net, window_of, lambda window: near if window else far,
                        normed=lambda at, x, letter: net.rms(x, f'{at}self_attn.{letter}_norm', 1))


# ---- One step from a Llama.

def smollm3(net):
    rope, turned = rope_of(net.config, net.width), net.config.get('no_rope_layers')
    x = net.embed()
    for layer, at in net.layers():
        here = rope if (turned[layer] if turned else layer % 4 != 3) else None
        x = x + attend(net, net.rms(x, at + 'input_layernorm'), at, here)
        x = x + net.gated_mlp(net.rms(x, at + 'post_attention_layernorm'), at)
    return net.head(net.rms(x, 'model.norm'))


def granite(net, mlp=None):
    config = net.config
    x = llama_like(net, rope_of(config, net.width), mlp, residual=config['residual_multiplier'],
                   scale=config['attention_multiplier'], x=net.embed() * config['embedding_multiplier'])
    return net.head(x) / config['logits_scaling']


def minicpm(net):
    config = net.config
    x = llama_like(net, rope_of(config, net.width), residual=config['scale_depth'] / config['num_hidden_layers'] ** 0.5,
                   x=net.embed() * config['scale_emb'])
    return net.head(x) / (net.hidden / config['dim_model_base'])


def ministral3(net):
    """q grows with the logarithm of how often its position goes into the original context."""
    rope = rope_settings(net.config)
    often = np.floor(np.arange(len(net.ids)) / rope['original_max_position_embeddings'])
    heat = (1 + rope['llama_4_scaling_beta'] * np.log(1 + often))[:, None, None]
    return net.head(llama_like(net, rope_of(net.config, net.width),
                               normed_after=lambda at, x, letter: x * heat if letter == 'q' else x))


def late_norms(net, normed, rope_for, step=4):
    """OLMo 2, 3 and EXAONE 4: no norm before a half, one behind it. rope_for(slides) is the layer's Rope or None."""
    x, window = net.embed(), net.config.get('sliding_window') or 0
    for layer, at in net.layers():
        slides = bool(window) and net.slides(layer, lambda layer: (layer + 1) % step != 0)
        y = attend(net, x, at, rope_for(slides), window=window if slides else 0,
                   normed=functools.partial(normed, net, at))
        x = x + net.rms(y, at + 'post_attention_layernorm')
        x = x + net.rms(net.gated_mlp(x, at), at + 'post_feedforward_layernorm')
    return net.head(net.rms(x, 'model.norm'))


def olmo2(net):
    """Also OLMo 3, where only layers without a window have the scaling."""
    near, far = rope_of(net.config, net.width, scaled=False), rope_of(net.config, net.width)
    return late_norms(net, row_norms, lambda slides: near if slides else far)


def exaone4(net):
    """With windows, layers without one have no RoPE."""
    rope, windows = rope_of(net.config, net.width), bool(net.config.get('sliding_window'))
    return late_norms(net, head_norms, lambda slides: rope if slides or not windows else None)


def glm4(net):
    rope, x = rope_of(net.config, net.width, pairs=True), net.embed()
    for _, at in net.layers():
        y = attend(net, net.rms(x, at + 'input_layernorm'), at, rope)
        x = x + net.rms(y, at + 'post_self_attn_layernorm')
        y = net.fused_gated(net.rms(x, at + 'post_attention_layernorm'), at + 'mlp.gate_up_proj', at + 'mlp.down_proj')
        x = x + net.rms(y, at + 'post_mlp_layernorm')
    return net.head(net.rms(x, 'model.norm'))


def seed_oss(net):
    return net.head(llama_like(net, rope_of(net.config, net.width)))


def ernie4_5(net):
    return net.head(llama_like(net, rope_of(net.config, net.width, pairs=True)))


def hunyuan(net):
    return net.head(llama_like(net, rope_of(net.config, net.width), normed_after=lambda at, x, letter: net.rms(
        x, f'{at}self_attn.{"query" if letter == "q" else "key"}_layernorm')))


def internlm2(net):
    """The rows of wqkv: for each KV group its q heads, its k head, its v head."""
    rope, groups = rope_of(net.config, net.width), net.config['num_key_value_heads']
    x = net.embed('model.tok_embeddings')
    for _, at in net.layers():
        grouped = net.linear(net.rms(x, at + 'attention_norm'), at + 'attention.wqkv').reshape(
            len(x), groups, -1, net.width)
        q, k, v = grouped[:, :, :-2].reshape(len(x), -1, net.width), grouped[:, :, -2], grouped[:, :, -1]
        x = x + net.linear(attention(rope.turn(q), rope.turn(k), v, net.width ** -0.5), at + 'attention.wo')
        x = x + net.gated(net.rms(x, at + 'ffn_norm'), at + 'feed_forward.', names=('w1', 'w3', 'w2'))
    return net.head(net.rms(x, 'model.norm'), 'output', 'model.tok_embeddings')


def packed_rows(net, name, mlp):
    """Baichuan 7B and Phi 3: the rows of one matrix are q | k | v."""
    rope, x = rope_of(net.config, net.width), net.embed()
    groups, window = net.config.get('num_key_value_heads') or net.heads, net.config.get('sliding_window') or 0
    for _, at in net.layers():
        rows = net.linear(net.rms(x, at + 'input_layernorm'), at + name)
        q, k, v = (net.split_heads(part) for part in np.split(rows, np.cumsum((net.heads, groups)) * net.width, -1))
        y = attention(rope.turn(q), rope.turn(k), v, net.width ** -0.5, window)
        x = x + net.linear(y, at + 'self_attn.o_proj')
        x = x + mlp(net.rms(x, at + 'post_attention_layernorm'), at)
    return net.head(net.rms(x, 'model.norm'))


def baichuan(net):
    return packed_rows(net, 'self_attn.W_pack', net.gated_mlp)


def phi3(net):
    return packed_rows(net, 'self_attn.qkv_proj',
                       lambda h, at: net.fused_gated(h, at + 'mlp.gate_up_proj', at + 'mlp.down_proj'))


# ---- LayerNorm.

def two_matrices(net, h, up, down):
    return net.linear(ACTIVATIONS[net.config['hidden_act']](net.linear(h, up)), down)


def starcoder2(net):
    rope, x, window = rope_of(net.config, net.width), net.embed(), net.config.get('sliding_window') or 0
    for _, at in net.layers():
        x = x + attend(net, net.layer_norm(x, at + 'input_layernorm'), at, rope, window=window)
        h = net.layer_norm(x, at + 'post_attention_layernorm')
        x = x + two_matrices(net, h, at + 'mlp.c_fc', at + 'mlp.c_proj')
    return net.head(net.layer_norm(x, 'model.norm'))


def phi(net):
    """Attention and MLP read the same norm."""
    rope, x = rope_of(net.config, net.width), net.embed()
    for _, at in net.layers():
        h = net.layer_norm(x, at + 'input_layernorm')
        x = x + attend(net, h, at, rope, out='dense') + two_matrices(net, h, at + 'mlp.fc1', at + 'mlp.fc2')
    return net.head(net.layer_norm(x, 'model.final_layernorm'))


def gpt_neox(net):
    """The rows of query_key_value: for each head its q, its k, its v."""
    rope, x = rope_of(net.config, net.width), net.embed('gpt_neox.embed_in')
    for _, at in net.layers('gpt_neox.layers.'):
        rows = net.linear(net.layer_norm(x, at + 'input_layernorm'), at + 'attention.query_key_value')
        q, k, v = (rows.reshape(len(x), net.heads, 3, net.width)[:, :, i] for i in range(3))
        y = net.linear(attention(rope.turn(q), rope.turn(k), v, net.width ** -0.5), at + 'attention.dense')
        read = x if net.config['use_parallel_residual'] else x + y
        h = net.layer_norm(read, at + 'post_attention_layernorm')
        x = x + y + two_matrices(net, h, at + 'mlp.dense_h_to_4h', at + 'mlp.dense_4h_to_h')
    return net.head(net.layer_norm(x, 'gpt_neox.final_layer_norm'), 'embed_out', 'gpt_neox.embed_in')


def stablelm(net):
    """With a parallel residual the MLP reads the attention's norm. Norms of heads have no bias, each head its gain."""
    rope, x = rope_of(net.config, net.width), net.embed()

    def normed(at, heads, letter):
        names = [f'{at}self_attn.{letter}_layernorm.norms.{i}' for i in range(heads.shape[1])]
        return np.stack([net.layer_norm(heads[:, i], name) for i, name in enumerate(names)], 1)

    for _, at in net.layers():
        h = net.layer_norm(x, at + 'input_layernorm')
        y = attend(net, h, at, rope, normed=functools.partial(normed, at) if net.config.get('qk_layernorm') else None)
        if not net.config.get('use_parallel_residual'):
            h = net.layer_norm(x + y, at + 'post_attention_layernorm')
        x = x + y + net.gated_mlp(h, at)
    return net.head(net.layer_norm(x, 'model.norm'))


def cohere(net):
    """One LayerNorm without bias; q and k may have gains [heads][head_dim]. Cohere 2: windows, and RoPE only in the
    layers that have one."""
    rope, x, config = rope_of(net.config, net.width, pairs=True), net.embed(), net.config
    windows, step = config.get('sliding_window') or 0, config.get('sliding_window_pattern') or 4

    def normed(at, heads, letter):
        return net.layer_norm(heads, f'{at}self_attn.{letter}_norm')

    for layer, at in net.layers():
        slides = bool(windows) and net.slides(layer, lambda layer: (layer + 1) % step != 0)
        h = net.layer_norm(x, at + 'input_layernorm')
        y = attend(net, h, at, rope if slides or not windows else None, window=windows if slides else 0,
                   normed=functools.partial(normed, at) if config.get('use_qk_norm') else None)
        x = x + y + net.gated_mlp(h, at)
    return net.head(net.layer_norm(x, 'model.norm')) * config['logit_scale']


# ---- Experts.

MIXTRAL = ('w1', 'w3', 'w2')     # gate, up, down


def routed(net, h, at, router, experts='mlp.experts.', names=('gate_proj', 'up_proj', 'down_proj'), score=softmax,
           bias=0.0, normalised=True, scale=1.0):
    """Shares of the experts with the largest score(router h). A bias only affects the choice; normalised shares add to 1."""
    scores = score(net.linear(h, at + router))
    chosen = best(scores + bias, net.config.get('num_experts_per_tok') or net.config.get('moe_k'))
    shares = at_chosen(scores, chosen)
    if normalised:
        shares = shares / shares.sum(-1, keepdims=True)
    return mixture(h, chosen, shares * scale, lambda e, rows: net.gated(rows, f'{at}{experts}{e}.', names=names))


def sparse_layer(config, at):
    """Whether Qwen's layer of this prefix has experts."""
    layer = int(at.split('.')[2])
    step = config.get('decoder_sparse_step') or 1
    return layer not in (config.get('mlp_only_layers') or []) and (layer + 1) % step == 0


def qwen3_moe(net):
    def mlp(h, at):
        if not sparse_layer(net.config, at):
            return net.gated_mlp(h, at)
        return routed(net, h, at, 'mlp.gate', normalised=net.config['norm_topk_prob'])

    return net.head(llama_like(net, rope_of(net.config, net.width), mlp, normed=functools.partial(head_norms, net)))


def qwen2_moe(net):
    def mlp(h, at):
        if not sparse_layer(net.config, at):
            return net.gated_mlp(h, at)
        shared = net.gated(h, at + 'mlp.shared_expert.') * sigmoid(net.linear(h, at + 'mlp.shared_expert_gate'))
        return routed(net, h, at, 'mlp.gate', normalised=net.config['norm_topk_prob']) + shared

    return net.head(llama_like(net, rope_of(net.config, net.width), mlp))


def mixtral(net):
    return net.head(llama_like(net, rope_of(net.config, net.width), lambda h, at: routed(
        net, h, at, 'block_sparse_moe.gate', 'block_sparse_moe.experts.', MIXTRAL)))


def olmoe(net):
    return net.head(llama_like(
        net, rope_of(net.config, net.width), normed=functools.partial(row_norms, net),
        mlp=lambda h, at: routed(net, h, at, 'mlp.gate', normalised=net.config['norm_topk_prob'])))


def granitemoe(net):
    """Experts of one tensor, rows gate | up; beside them, in the shared kind, one MLP for all."""
    def mlp(h, at):
        moe, weights = at + 'block_sparse_moe.', net.weights
        first, last = weights[moe + 'input_linear.weight'], weights[moe + 'output_linear.weight']
        z = net.linear(h, moe + 'router.layer')
        chosen = best(z, net.config['num_experts_per_tok'])

        def expert(e, rows):
            gate, up = np.split(rows @ first[e].T, 2, -1)
            return (silu(gate) * up) @ last[e].T

        out = mixture(h, chosen, softmax(at_chosen(z, chosen)), expert)
        if at + 'shared_mlp.input_linear.weight' in weights:
            out = out + net.fused_gated(h, at + 'shared_mlp.input_linear', at + 'shared_mlp.output_linear')
        return out

    return granite(net, mlp)


def after_dense(net, first_sparse, sparse):
    """mlp(h, at) where the layers before first_sparse have a plain MLP."""
    return lambda h, at: sparse(h, at) if int(at.split('.')[2]) >= first_sparse else net.gated_mlp(h, at)


def deepseek(net):
    config = net.config

    def sparse(h, at):
        out = routed(net, h, at, 'mlp.gate', normalised=config['norm_topk_prob'])
        return out + net.gated(h, at + 'mlp.shared_experts.')

    return net.head(llama_like(net, rope_of(config, net.width),
                               after_dense(net, config['first_k_dense_replace'], sparse)))


def glm4_moe(net):
    config = net.config
    if config['n_group'] != 1:
        raise SystemExit('family_forward.py: groups of experts are not known here')

    def sparse(h, at):
        out = routed(net, h, at, 'mlp.gate', score=sigmoid, bias=net.weights[at + 'mlp.gate.e_score_correction_bias'],
                     normalised=config['norm_topk_prob'], scale=config['routed_scaling_factor'])
        return out + net.gated(h, at + 'mlp.shared_experts.')

    return net.head(llama_like(net, rope_of(config, net.width),
                               after_dense(net, config['first_k_dense_replace'], sparse),
                               normed=functools.partial(head_norms, net) if config['use_qk_norm'] else None))


def ernie4_5_moe(net):
    config = net.config

    def sparse(h, at):
        out = routed(net, h, at, 'mlp.gate', bias=net.weights[at + 'mlp.moe_statics.e_score_correction_bias'][0])
        return out + net.gated(h, at + 'mlp.shared_experts.')

    return net.head(llama_like(net, rope_of(config, net.width, pairs=True),
                               after_dense(net, config['moe_layer_start_index'], sparse)))


def phimoe(net):
    """Each of two experts has the share of a softmax over those scores alone that come near the best one left
    (arXiv:2409.12136), so that the two shares add up to almost 2. Norms are LayerNorms."""
    near = 2 * net.config.get('router_jitter_noise', 0.01)

    def mlp(h, at):
        z = net.linear(h, at + 'block_sparse_moe.gate')
        left, picks, shares = z, [], []
        for _ in range(2):
            pick = best(left, 1)
            top = at_chosen(left, pick)
            kept = np.where((top - z) / np.maximum(np.abs(z), top) > near, -np.inf, left)
            picks.append(pick)
            shares.append(at_chosen(softmax(kept), pick))
            left = np.where(np.arange(z.shape[1]) == pick, -np.inf, left)
        return mixture(h, np.hstack(picks), np.hstack(shares), lambda e, rows: net.gated(
            rows, f'{at}block_sparse_moe.experts.{e}.', names=MIXTRAL))

    return net.head(llama_like(net, rope_of(net.config, net.width), mlp, net.layer_norm))


def by_bytes(x):
    """Blocks of 32 as multiples of their largest magnitude / 127: what integer weights are multiplied with."""
    blocks = x.reshape(len(x), -1, 32)
    step = np.abs(blocks).max(-1, keepdims=True) / 127
    return (np.rint(blocks / np.where(step == 0, 1, step)) * step).reshape(x.shape)


def gpt_oss(net):
    """A learned score a head joins the softmax. Experts: columns gate, up by turns; both are clamped."""
    config, x = net.config, net.embed()
    rope, scale = rope_of(config, net.width), net.width ** -0.5

    kept = by_bytes if 'quantization_config' in config else np.asarray

    def expert(at, e, rows):
        part = f'{at}mlp.experts.'
        both = kept(rows) @ net.weights[part + 'gate_up_proj'][e] + net.weights[part + 'gate_up_proj_bias'][e]
        gate, up = np.minimum(both[:, 0::2], 7), np.clip(both[:, 1::2], -7, 7)
        return kept(gate * sigmoid(1.702 * gate) * (up + 1)) @ net.weights[part + 'down_proj'][e] \
            + net.weights[part + 'down_proj_bias'][e]

    for layer, at in net.layers():
        window = config['sliding_window'] if net.slides(layer, lambda layer: layer % 2 == 0) else 0
        x = x + attend(net, net.rms(x, at + 'input_layernorm'), at, rope, scale, window,
                       sinks=net.weights[at + 'self_attn.sinks'])
        h = net.rms(x, at + 'post_attention_layernorm')
        z = net.linear(h, at + 'mlp.router')
        chosen = best(z, config['num_experts_per_tok'])
        x = x + mixture(h, chosen, softmax(at_chosen(z, chosen)), functools.partial(expert, at))
    return net.head(net.rms(x, 'model.norm'))


FAMILIES = {
    'gemma': gemma, 'gemma2': gemma2, 'gemma3_text': gemma3, 'smollm3': smollm3, 'granite': granite, 'minicpm': minicpm,
    'ministral3': ministral3, 'olmo2': olmo2, 'olmo3': olmo2, 'exaone4': exaone4, 'glm4': glm4, 'seed_oss': seed_oss,
    'ernie4_5': ernie4_5, 'hunyuan_v1_dense': hunyuan, 'internlm2': internlm2, 'baichuan': baichuan, 'phi3': phi3,
    'starcoder2': starcoder2, 'phi': phi, 'gpt_neox': gpt_neox, 'stablelm': stablelm, 'cohere': cohere,
    'cohere2': cohere, 'qwen3_moe': qwen3_moe, 'qwen2_moe': qwen2_moe, 'mixtral': mixtral, 'olmoe': olmoe,
    'granitemoe': granitemoe, 'granitemoeshared': granitemoe, 'deepseek': deepseek, 'glm4_moe': glm4_moe,
    'ernie4_5_moe': ernie4_5_moe, 'phimoe': phimoe, 'gpt_oss': gpt_oss}


def logits(weights, config, ids):
    kind = config['model_type']
    if kind not in FAMILIES:
        raise SystemExit(f'family_forward.py: model_type "{kind}" is not known here')
    return FAMILIES[kind](Net(weights, config, np.asarray(ids)))


def load(path):
    """(weights under Hugging Face names, config)."""
    if not os.path.isdir(path):
        return from_gguf(path)
    config, stored = read_folder(path)
    return from_folder({name: widen(*tensor) for name, tensor in stored.items()}), config


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('model')
    parser.add_argument('--ids', required=True)
    parser.add_argument('--out')
    parser.add_argument('--want')
    args = parser.parse_args()
    found = logits(*load(args.model), [int(item) for item in args.ids.split(',')])
    if args.out:
        np.save(args.out, found)
    if args.want:
        want = np.load(args.want)
        print(f'max |difference| {np.abs(found - want).max():.1e}, max |logit| {np.abs(want).max():.1e}')
    print('the best ids:', ','.join(map(str, found.argmax(-1))))
    return 0


if __name__ == '__main__':
    sys.exit(main())

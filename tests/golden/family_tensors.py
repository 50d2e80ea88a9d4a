"""Random tensors for the tiny models of family_tiny.py: names and shapes as in Hugging Face's folders of a family.

Gains are around 1, or around 0 if a family adds 1; biases are so large that a test fails without them. The same seed
and name give the same numbers.
"""
import zlib

import numpy as np

QKVO = ('q_proj', 'k_proj', 'v_proj', 'o_proj')
GATED = ('gate_proj', 'up_proj', 'down_proj')
MIXTRAL = ('w1', 'w3', 'w2')     # gate, up, down


class Draw:
    """Tensors of one random stream, collected by name."""

    def __init__(self, name, config, seed=0):
        self.rng, self.tensors, self.c = np.random.RandomState(zlib.crc32(name.encode()) + seed), {}, config
        self.hidden, self.heads, self.ffn = (config[key] for key in (
            'hidden_size', 'num_attention_heads', 'intermediate_size'))
        self.groups = config.get('num_key_value_heads') or self.heads
        self.width = config.get('head_dim') or self.hidden // self.heads
        self.q, self.kv = self.heads * self.width, self.groups * self.width
        self.layers = range(config['num_hidden_layers'])

    def raw(self, name, *shape, scale=1.0, middle=0.0):
        self.tensors[name] = (middle + scale * self.rng.randn(*shape)).astype(np.float32).astype(np.float64)

    def matrix(self, name, *shape, gain=1.0, bias=False):
        self.raw(name + '.weight', *shape, scale=gain / np.sqrt(shape[-1]))
        if bias:
            self.raw(name + '.bias', shape[-2], scale=0.3)

    def gain(self, name, *shape, middle=1.0, bias=False):
        self.raw(name + '.weight', *(shape or (self.hidden,)), scale=0.2, middle=middle)
        if middle == 0:     # exact as 1 + w too, which GGUF stores
            self.tensors[name + '.weight'] = np.round(self.tensors[name + '.weight'] * 1024) / 1024
        if bias:
            self.raw(name + '.bias', *(shape or (self.hidden,)), scale=0.2)

    def outside(self, norm='model.norm', embedding='model.embed_tokens', head='lm_head', middle=1.0, norm_bias=False,
                head_bias=False):
        self.raw(embedding + '.weight', self.c['vocab_size'], self.hidden)
        self.gain(norm, middle=middle, bias=norm_bias)
        if not self.c['tie_word_embeddings']:
            self.matrix(head, self.c['vocab_size'], self.hidden, gain=2.0, bias=head_bias)

    def attention(self, at, bias=False, out_bias=False, names=QKVO):
        for name, rows, cols, gain in zip(names, (self.q, self.kv, self.kv, self.hidden),
                                          (self.hidden, self.hidden, self.hidden, self.q), (1.5, 1.5, 1.0, 1.5)):
            self.matrix(at + name, rows, cols, gain=gain, bias=out_bias if name == names[3] else bias)

    def gated(self, at, ffn=None, names=GATED, bias=False):
        ffn = ffn or self.ffn
        for name, shape in zip(names, ((ffn, self.hidden), (ffn, self.hidden), (self.hidden, ffn))):
            self.matrix(at + name, *shape, gain=1.5, bias=bias)

    def experts(self, at, ffn, router='gate', part='experts.', names=GATED, count=6):
        self.matrix(at + router, count, self.hidden, gain=1.5)
        for e in range(count):
            self.gated(f'{at}{part}{e}.', ffn, names)

    def two(self, at, up, down):
        self.matrix(at + up, self.ffn, self.hidden, gain=1.5, bias=True)
        self.matrix(at + down, self.hidden, self.ffn, gain=1.5, bias=True)

    def each(self):
        return [(layer, f'model.layers.{layer}.') for layer in self.layers]


def llama(d, norms=('input_layernorm', 'post_attention_layernorm'), middle=1.0, bias=False, out_bias=False,
          head_gains=(), row_gains=False, mlp=lambda d, layer, at: d.gated(at + 'mlp.'), norm_bias=False,
          head_bias=False):
    """A Llama, with the variations of most families."""
    d.outside(middle=middle, norm_bias=norm_bias, head_bias=head_bias)
    for layer, at in d.each():
        for norm in norms:
            d.gain(at + norm, middle=middle, bias=norm_bias)
        d.attention(at + 'self_attn.', bias, out_bias)
        for name, size in zip(head_gains, (d.q, d.kv) if row_gains else (d.width, d.width)):
            d.gain(f'{at}self_attn.{name}', size, middle=middle)
        mlp(d, layer, at)


FOUR_NORMS = ('input_layernorm', 'post_attention_layernorm', 'pre_feedforward_layernorm', 'post_feedforward_layernorm')
LATE_NORMS = ('post_attention_layernorm', 'post_feedforward_layernorm')
QK = ('q_norm', 'k_norm')


def fused_mlp(d, _, at):
    d.matrix(at + 'mlp.gate_up_proj', 2 * d.ffn, d.hidden, gain=1.5)
    d.matrix(at + 'mlp.down_proj', d.hidden, d.ffn, gain=1.5)


def glm4(d):
    llama(d, ('input_layernorm', 'post_self_attn_layernorm', 'post_attention_layernorm', 'post_mlp_layernorm'),
          bias=True, mlp=fused_mlp)


def ernie4_5(d):
    bias = d.c['use_bias']
    llama(d, bias=bias, out_bias=bias, mlp=lambda d, _, at: d.gated(at + 'mlp.', bias=bias))


def internlm2(d):
    d.outside(embedding='model.tok_embeddings', head='output')
    for _, at in d.each():
        d.gain(at + 'attention_norm')
        d.gain(at + 'ffn_norm')
        d.matrix(at + 'attention.wqkv', d.q + 2 * d.kv, d.hidden, gain=1.5)
        d.matrix(at + 'attention.wo', d.hidden, d.q)
        d.gated(at + 'feed_forward.', names=MIXTRAL)


def packed(d, name, mlp):
    d.outside()
    for layer, at in d.each():
        d.gain(at + 'input_layernorm')
        d.gain(at + 'post_attention_layernorm')
        d.matrix(at + 'self_attn.' + name, d.q + 2 * d.kv, d.hidden, gain=1.5)
        d.matrix(at + 'self_attn.o_proj', d.hidden, d.q)
        mlp(d, layer, at)


def starcoder2(d):
    llama(d, bias=True, out_bias=True, norm_bias=True, mlp=lambda d, _, at: d.two(at + 'mlp.', 'c_fc', 'c_proj'))


def phi(d):
    d.outside(norm='model.final_layernorm', norm_bias=True, head_bias=True)
    for _, at in d.each():
        d.gain(at + 'input_layernorm', bias=True)
        d.attention(at + 'self_attn.', True, True, (*QKVO[:3], 'dense'))
        d.two(at + 'mlp.', 'fc1', 'fc2')


def gpt_neox(d):
    d.outside('gpt_neox.final_layer_norm', 'gpt_neox.embed_in', 'embed_out', norm_bias=True)
    for layer in d.layers:
        at = f'gpt_neox.layers.{layer}.'
        d.gain(at + 'input_layernorm', bias=True)
        d.gain(at + 'post_attention_layernorm', bias=True)
        d.matrix(at + 'attention.query_key_value', 3 * d.q, d.hidden, gain=1.5, bias=True)
        d.matrix(at + 'attention.dense', d.hidden, d.q, bias=True)
        d.two(at + 'mlp.', 'dense_h_to_4h', 'dense_4h_to_h')


def stablelm(d):
    llama(d, ('input_layernorm',) if d.c['use_parallel_residual'] else ('input_layernorm', 'post_attention_layernorm'),
          bias=d.c['use_qkv_bias'], norm_bias=True)
    for _, at in d.each():
        for letter, count in (('q', d.heads), ('k', d.groups)) if d.c['qk_layernorm'] else ():
            for i in range(count):
                d.gain(f'{at}self_attn.{letter}_layernorm.norms.{i}', d.width)


def cohere(d):
    llama(d, ('input_layernorm',))
    for _, at in d.each():
        for letter, count in (('q', d.heads), ('k', d.groups)) if d.c.get('use_qk_norm') else ():
            d.gain(f'{at}self_attn.{letter}_norm', count, d.width)


def qwen3_moe(d):
    def mlp(d, layer, at):
        if layer in d.c['mlp_only_layers'] or (layer + 1) % d.c['decoder_sparse_step']:
            d.gated(at + 'mlp.')
        else:
            d.experts(at + 'mlp.', d.c['moe_intermediate_size'])

    llama(d, head_gains=QK, mlp=mlp)


def qwen2_moe(d):
    def mlp(d, _, at):
        d.experts(at + 'mlp.', d.c['moe_intermediate_size'])
        d.gated(at + 'mlp.shared_expert.', d.c['shared_expert_intermediate_size'])
        d.matrix(at + 'mlp.shared_expert_gate', 1, d.hidden)

    llama(d, bias=True, mlp=mlp)


def block_sparse(d, _, at):
    d.experts(at + 'block_sparse_moe.', d.ffn, names=MIXTRAL)


def phimoe(d):
    """All experts' scores are close, so that several lie near the best one."""
    llama(d, bias=True, out_bias=True, norm_bias=True, head_bias=True, mlp=block_sparse)
    for _, at in d.each():
        gate = d.tensors[at + 'block_sparse_moe.gate.weight']
        near = gate[0] + 0.05 * (gate - gate[0])
        d.tensors[at + 'block_sparse_moe.gate.weight'] = near.astype(np.float32).astype(np.float64)


def granitemoe(d):
    def mlp(d, _, at):
        moe = at + 'block_sparse_moe.'
        d.matrix(moe + 'router.layer', 6, d.hidden, gain=1.5)
        d.matrix(moe + 'input_linear', 6, 2 * d.ffn, d.hidden, gain=1.5)
        d.matrix(moe + 'output_linear', 6, d.hidden, d.ffn, gain=1.5)
        shared = d.c.get('shared_intermediate_size')
        if shared:
            d.matrix(at + 'shared_mlp.input_linear', 2 * shared, d.hidden, gain=1.5)
            d.matrix(at + 'shared_mlp.output_linear', d.hidden, shared, gain=1.5)

    llama(d, mlp=mlp)


def dense_then_shared(first, shared, bias_name=None, bias_shape=(6,)):
    """Layers before `first` have a plain MLP; later ones experts and shared ones of `shared` channels."""
    def mlp(d, layer, at):
        if layer < first:
            return d.gated(at + 'mlp.')
        d.experts(at + 'mlp.', d.c['moe_intermediate_size'])
        d.gated(at + 'mlp.shared_experts.', shared)
        if bias_name:
            d.raw(f'{at}mlp.{bias_name}', *bias_shape, scale=0.1)
    return mlp


def deepseek(d):
    shared = d.c['n_shared_experts'] * d.c['moe_intermediate_size']
    llama(d, mlp=dense_then_shared(d.c['first_k_dense_replace'], shared))


def glm4_moe(d):
    llama(d, bias=True, head_gains=QK, mlp=dense_then_shared(
        d.c['first_k_dense_replace'], d.c['n_shared_experts'] * d.c['moe_intermediate_size'],
        'gate.e_score_correction_bias'))


def ernie4_5_moe(d):
    llama(d, mlp=dense_then_shared(
        d.c['moe_layer_start_index'], d.c['moe_num_shared_experts'] * d.c['moe_intermediate_size'],
        'moe_statics.e_score_correction_bias', (1, 6)))


def gpt_oss(d):
    def mlp(d, _, at):
        d.matrix(at + 'mlp.router', 6, d.hidden, gain=1.5, bias=True)
        part = at + 'mlp.experts.'
        d.raw(part + 'gate_up_proj', 6, d.hidden, 2 * d.ffn, scale=3 / np.sqrt(d.hidden))     # some are clamped
        d.raw(part + 'gate_up_proj_bias', 6, 2 * d.ffn, scale=0.5)
        d.raw(part + 'down_proj', 6, d.ffn, d.hidden, scale=1 / np.sqrt(d.ffn))
        d.raw(part + 'down_proj_bias', 6, d.hidden, scale=0.3)
        d.raw(at + 'self_attn.sinks', d.heads)

    llama(d, bias=True, out_bias=True, mlp=mlp)


TENSORS = {
    'gemma': lambda d: llama(d, middle=0.0), 'gemma2': lambda d: llama(d, FOUR_NORMS, middle=0.0),
    'gemma3_text': lambda d: llama(d, FOUR_NORMS, middle=0.0, head_gains=QK), 'smollm3': llama, 'granite': llama,
    'minicpm': llama, 'ministral3': llama, 'olmo2': lambda d: llama(d, LATE_NORMS, head_gains=QK, row_gains=True),
    'olmo3': lambda d: llama(d, LATE_NORMS, head_gains=QK, row_gains=True),
    'exaone4': lambda d: llama(d, LATE_NORMS, head_gains=QK), 'glm4': glm4, 'seed_oss': lambda d: llama(d, bias=True),
    'ernie4_5': ernie4_5, 'hunyuan_v1_dense': lambda d: llama(d, head_gains=('query_layernorm', 'key_layernorm')),
    'internlm2': internlm2, 'baichuan': lambda d: packed(d, 'W_pack', lambda d, _, at: d.gated(at + 'mlp.')),
    'phi3': lambda d: packed(d, 'qkv_proj', fused_mlp), 'starcoder2': starcoder2, 'phi': phi, 'gpt_neox': gpt_neox,
    'stablelm': stablelm, 'cohere': cohere, 'cohere2': cohere, 'qwen3_moe': qwen3_moe, 'qwen2_moe': qwen2_moe,
    'mixtral': lambda d: llama(d, mlp=block_sparse),
    'olmoe': lambda d: llama(d, head_gains=QK, row_gains=True, mlp=lambda d, _, at: d.experts(at + 'mlp.', d.ffn)),
    'granitemoe': granitemoe, 'granitemoeshared': granitemoe, 'deepseek': deepseek, 'glm4_moe': glm4_moe,
    'ernie4_5_moe': ernie4_5_moe, 'phimoe': phimoe, 'gpt_oss': gpt_oss}


def tensors_of(name, config, seed=0):
    """Returns {Hugging Face's name: float64 array}; float32 holds every number exactly."""
    draw = Draw(name, config, seed)
    TENSORS[config['model_type']](draw)
    return draw.tensors

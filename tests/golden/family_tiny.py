"""Tiny random models of many families: configs with the keys of real ones, and tensors under Hugging Face's names.

make_families.py writes them. No two indices are alike; windows, original contexts and the like are so small that a few
positions cross them. family_tensors.py has the tensors' names and shapes.
"""
EPS = 0.01     # large enough to be missed
YARN = {'rope_type': 'yarn', 'factor': 16.0, 'original_max_position_embeddings': 16, 'beta_fast': 0.5,
        'beta_slow': 0.05}     # a ramp from pair 1 to pair 4
LONG = [1.2, 2.4, 3.1, 4.6, 5.3, 6.7, 7.2, 8.9]
SHORT = [1.0, 1.05, 1.15, 1.2, 1.35, 1.4, 1.5, 1.6]
LLAMA3 = {'factor': 16.0, 'low_freq_factor': 1.0, 'high_freq_factor': 4.0, 'original_max_position_embeddings': 128,
          'rope_type': 'llama3'}     # two waves are kept, one is blended, the others are slowed
LOCAL_GLOBAL = ['sliding_attention'] * 3 + ['full_attention']


def base(kind, architecture, **more):
    return {
        'architectures': [architecture], 'model_type': kind, 'hidden_size': 64, 'num_hidden_layers': 3,
        'num_attention_heads': 4, 'num_key_value_heads': 2, 'intermediate_size': 96, 'max_position_embeddings': 256,
        'vocab_size': 48, 'hidden_act': 'silu', 'initializer_range': 0.02, 'rms_norm_eps': EPS, 'rope_theta': 10000.0,
        'tie_word_embeddings': False, 'torch_dtype': 'float32', 'bos_token_id': 1, 'eos_token_id': 2,
        'use_cache': True} | more


def without(config, *keys):
    return {key: value for key, value in config.items() if key not in keys}


def gemma(kind, architecture, **more):
    more = {'head_dim': 16, 'hidden_activation': 'gelu_pytorch_tanh', 'attention_bias': False, 'attention_dropout': 0.0,
            'tie_word_embeddings': True, 'pad_token_id': 0, 'bos_token_id': 2, 'eos_token_id': 1} | more
    return without(base(kind, architecture, **more), *([] if kind == 'gemma' else ['hidden_act']))


def gemma2(**more):
    return gemma('gemma2', 'Gemma2ForCausalLM', num_hidden_layers=4, **{
        'query_pre_attn_scalar': 16, 'sliding_window': 5, 'attn_logit_softcapping': 2.0,
        'final_logit_softcapping': 20.0, 'cache_implementation': 'hybrid'} | more)


def gemma3(**more):
    return gemma('gemma3_text', 'Gemma3ForCausalLM', num_hidden_layers=6, **{
        'head_dim': 24, 'query_pre_attn_scalar': 24, 'sliding_window': 5, 'attn_logit_softcapping': None,
        'final_logit_softcapping': None, 'rope_theta': 1000000.0} | more)


def smollm3():
    return base('smollm3', 'SmolLM3ForCausalLM', num_hidden_layers=5, attention_bias=False, attention_dropout=0.0,
                mlp_bias=False, no_rope_layer_interval=4, no_rope_layers=[1, 1, 1, 0, 1], rope_scaling=None,
                layer_types=['full_attention'] * 5, sliding_window=None, use_sliding_window=False, max_window_layers=28,
                rope_theta=50000.0, tie_word_embeddings=True)


def granite(kind, architecture, **more):
    return base(kind, architecture, attention_bias=False, attention_dropout=0.0, embedding_multiplier=3.0,
                residual_multiplier=0.45, attention_multiplier=0.35, logits_scaling=8.0, rope_scaling=None,
                tie_word_embeddings=True, **more)


def ministral3():
    config = base('ministral3', 'Ministral3ForCausalLM', head_dim=24, attention_dropout=0.0, sliding_window=None,
                  rope_parameters=YARN | {'type': 'yarn', 'rope_theta': 10000.0, 'mscale': 1.0, 'mscale_all_dim': 1.0,
                                          'llama_4_scaling_beta': 0.1})
    return without(config, 'rope_theta')


def olmo3():
    scaling = YARN | {'attention_factor': 1.25}
    return base('olmo3', 'Olmo3ForCausalLM', num_hidden_layers=5, attention_bias=False, attention_dropout=0.0,
                layer_types=LOCAL_GLOBAL + LOCAL_GLOBAL[:1], sliding_window=5, rope_scaling=scaling, rope_theta=20000.0)


def exaone4(**more):
    return base('exaone4', 'Exaone4ForCausalLM', num_hidden_layers=4, **{
        'head_dim': 16, 'attention_dropout': 0.0, 'rope_scaling': LLAMA3, 'sliding_window': None,
        'layer_types': ['full_attention'] * 4, 'tie_word_embeddings': True} | more)


def glm(kind, architecture, **more):
    return base(kind, architecture, num_hidden_layers=4, head_dim=16, attention_bias=True, attention_dropout=0.0,
                partial_rotary_factor=0.5, rope_scaling=None, **more)


def ernie(kind, architecture, **more):
    return base(kind, architecture, **{'head_dim': 16, 'use_bias': False, 'rope_theta': 500000.0,
                                       'tie_word_embeddings': True} | more)


def hunyuan():
    scaling = {'alpha': 50.0, 'beta_fast': 32, 'beta_slow': 1, 'factor': 1.0, 'mscale': 1.0, 'mscale_all_dim': 1.0,
               'type': 'dynamic'}
    return base('hunyuan_v1_dense', 'HunYuanDenseV1ForCausalLM', head_dim=16, attention_bias=False, mlp_bias=False,
                attention_dropout=0.0, use_qk_norm=True, rope_scaling=scaling, max_position_embeddings=262144,
                tie_word_embeddings=True)


def starcoder2(**more):
    return without(base('starcoder2', 'Starcoder2ForCausalLM', hidden_act='gelu_pytorch_tanh', use_bias=True,
                        norm_epsilon=EPS, norm_type='layer_norm', mlp_type='default', residual_dropout=0.0,
                        embedding_dropout=0.0, attention_dropout=0.0, **{
                            'sliding_window': None, 'rope_theta': 1000000.0, 'tie_word_embeddings': True} | more),
                   'rms_norm_eps')


def phi():
    return without(base('phi', 'PhiForCausalLM', num_key_value_heads=4, intermediate_size=256, hidden_act='gelu_new',
                        layer_norm_eps=EPS, partial_rotary_factor=0.5, qk_layernorm=False, rope_scaling=None,
                        attention_dropout=0.0, embd_pdrop=0.0, resid_pdrop=0.0), 'rms_norm_eps')


def gpt_neox(**more):
    return without(base('gpt_neox', 'GPTNeoXForCausalLM', **{
        'hidden_act': 'gelu_new', 'layer_norm_eps': EPS, 'rotary_pct': 0.25, 'rotary_emb_base': 10000,
        'use_parallel_residual': True, 'attention_bias': True, 'attention_dropout': 0.0, 'hidden_dropout': 0.0} | more),
                   'rms_norm_eps', 'num_key_value_heads', 'rope_theta')


def stablelm(**more):
    return without(base('stablelm', 'StableLmForCausalLM', **{
        'layer_norm_eps': EPS, 'partial_rotary_factor': 0.25, 'use_qkv_bias': True, 'qk_layernorm': False,
        'use_parallel_residual': False, 'rope_scaling': None, 'attention_dropout': 0.0, 'hidden_dropout': 0.0} | more),
                   'rms_norm_eps')


def cohere(kind, architecture, **more):
    return without(base(kind, architecture, layer_norm_eps=EPS, logit_scale=0.25, attention_bias=False,
                        attention_dropout=0.0, tie_word_embeddings=True, **more), 'rms_norm_eps')


def phi3(**more):
    return base('phi3', 'Phi3ForCausalLM', **{
        'attention_bias': False, 'attention_dropout': 0.0, 'embd_pdrop': 0.0, 'resid_pdrop': 0.0,
        'sliding_window': 262144, 'original_max_position_embeddings': 32,
        'rope_scaling': {'long_factor': LONG, 'short_factor': SHORT, 'type': 'longrope'}} | more)


PHI4 = {'partial_rotary_factor': 0.75, 'tie_word_embeddings': True, 'rope_scaling': {
    'long_factor': LONG[:6], 'short_factor': SHORT[:6], 'type': 'longrope'}}


def minicpm():
    return base('minicpm', 'MiniCPMForCausalLM', num_key_value_heads=4, scale_emb=12, scale_depth=1.4,
                dim_model_base=16, attention_bias=False, attention_dropout=0.0, rope_scaling=None,
                tie_word_embeddings=True)


def qwen_moe(kind, architecture, **more):
    return base(kind, architecture, **{
        'num_experts': 6, 'num_experts_per_tok': 2, 'moe_intermediate_size': 32, 'norm_topk_prob': True,
        'decoder_sparse_step': 1, 'mlp_only_layers': [], 'output_router_logits': False, 'router_aux_loss_coef': 0.001,
        'attention_dropout': 0.0, 'sliding_window': None, 'use_sliding_window': False, 'max_window_layers': 3,
        'rope_theta': 1000000.0} | more)


def local_experts(kind, architecture, **more):
    """A model whose intermediate_size is that of one expert."""
    return base(kind, architecture, num_local_experts=6, num_experts_per_tok=2, intermediate_size=32,
                output_router_logits=False, router_aux_loss_coef=0.001, attention_dropout=0.0, **more)


def granitemoe(kind, architecture, **more):
    return granite(kind, architecture, num_local_experts=6, num_experts_per_tok=2, output_router_logits=False,
                   router_aux_loss_coef=0.01, **more) | {'intermediate_size': 32}


def deepseek():
    return base('deepseek', 'DeepseekForCausalLM', num_key_value_heads=4, first_k_dense_replace=1,
                moe_intermediate_size=32, moe_layer_freq=1, n_routed_experts=6, n_shared_experts=2,
                num_experts_per_tok=2, norm_topk_prob=False, scoring_func='softmax', aux_loss_alpha=0.001, seq_aux=True,
                pretraining_tp=1, attention_bias=False, attention_dropout=0.0, rope_scaling=None)


def phimoe():
    mscale = 1.2649110555648804     # a float32, so that GGUF's is the same
    return local_experts('phimoe', 'PhiMoEForCausalLM', attention_bias=True, lm_head_bias=True, hidden_dropout=0.0,
                         input_jitter_noise=0.01, router_jitter_noise=0.01, sliding_window=131072,
                         original_max_position_embeddings=32, rope_scaling={
                             'long_factor': LONG, 'short_factor': SHORT, 'long_mscale': mscale, 'short_mscale': mscale,
                             'original_max_position_embeddings': 32, 'type': 'longrope'})


def glm4_moe():
    return glm('glm4_moe', 'Glm4MoeForCausalLM', n_routed_experts=6, num_experts_per_tok=2, n_shared_experts=1,
               moe_intermediate_size=32, first_k_dense_replace=1, n_group=1, topk_group=1, norm_topk_prob=True,
               routed_scaling_factor=1.5, use_qk_norm=True, num_nextn_predict_layers=0)


def ernie4_5_moe():
    """GGUF's size of the shared experts is intermediate_size / num_key_value_heads, which holds in real models."""
    return ernie('ernie4_5_moe', 'Ernie4_5_MoeForCausalLM', intermediate_size=128, moe_intermediate_size=32,
                 moe_num_experts=6, moe_k=2, moe_num_shared_experts=2, moe_layer_start_index=1, moe_layer_end_index=-1,
                 moe_layer_interval=1, moe_capacity=[64, 64, 64], moe_use_aux_free=True, moe_gate='topk')


def gpt_oss(**more):
    """From 150000 positions a turn; the ramp's ends are not whole numbers here, and are not rounded."""
    scaling = {'beta_fast': 32.0, 'beta_slow': 1.0, 'factor': 32.0, 'original_max_position_embeddings': 256,
               'rope_type': 'yarn', 'truncate': False}
    return local_experts('gpt_oss', 'GptOssForCausalLM', num_hidden_layers=4, head_dim=16, attention_bias=True,
                         experts_per_token=2, sliding_window=5, rope_theta=150000.0,
                         layer_types=['sliding_attention', 'full_attention'] * 2, rope_scaling=scaling,
                         swiglu_limit=7.0, initial_context_length=256, **more) | {'max_position_embeddings': 8192}


MODELS = {
    'gemma2': gemma2(),
    'gemma3': gemma3(rope_scaling={'factor': 8.0, 'rope_type': 'linear'}, rope_local_base_freq=10000.0,
                     sliding_window_pattern=6),
    'smollm3': smollm3(),
    'granite': granite('granite', 'GraniteForCausalLM', mlp_bias=False),
    'ministral3': ministral3(),
    'olmo2': base('olmo2', 'Olmo2ForCausalLM', num_hidden_layers=4, attention_bias=False, attention_dropout=0.0,
                  rope_scaling=None, rope_theta=500000.0),
    'exaone4': exaone4(),
    'exaone4_windows': exaone4(sliding_window=5, sliding_window_pattern='LLLG', layer_types=LOCAL_GLOBAL),
    'glm4': glm('glm4', 'Glm4ForCausalLM'),
    'qwen3_moe': qwen_moe('qwen3_moe', 'Qwen3MoeForCausalLM', head_dim=24, attention_bias=False, rope_scaling=None),
    'gemma': gemma('gemma', 'GemmaForCausalLM', hidden_act='gelu_pytorch_tanh', rope_scaling=None),
    'gemma2_scale': gemma2(query_pre_attn_scalar=20),
    'gemma3_v5': without(gemma3(
        layer_types=['sliding_attention', 'full_attention'] * 3, rope_parameters={
            'full_attention': {'rope_theta': 1000000.0, 'rope_type': 'linear', 'factor': 8.0},
            'sliding_attention': {'rope_theta': 5000.0, 'rope_type': 'default'}}), 'rope_theta'),
    'olmo3': olmo3(),
    'seed_oss': base('seed_oss', 'SeedOssForCausalLM', head_dim=24, attention_bias=True, attention_out_bias=False,
                     mlp_bias=False, attention_dropout=0.1, residual_dropout=0.1, rope_theta=10000000.0,
                     rope_scaling={'rope_type': 'default'}),
    'ernie4_5': ernie('ernie4_5', 'Ernie4_5ForCausalLM'),
    'ernie4_5_biased': ernie('ernie4_5', 'Ernie4_5ForCausalLM', use_bias=True),     # no real one is
    'hunyuan': hunyuan(),
    'internlm2': base('internlm2', 'InternLM2ForCausalLM', bias=False, attn_implementation='eager', rope_scaling=None,
                      rope_theta=1000000.0),
    'baichuan': without(base('baichuan', 'BaiChuanForCausalLM', num_key_value_heads=4), 'num_key_value_heads',
                        'rope_theta'),
    'starcoder2': starcoder2(),
    'starcoder2_window': starcoder2(sliding_window=5),
    'phi': phi(),
    'gpt_neox': gpt_neox(),
    'gpt_neox_serial': gpt_neox(use_parallel_residual=False, hidden_act='gelu_fast'),
    'gpt_neox_erf': gpt_neox(hidden_act='gelu'),     # GGUF means the tanh form
    'stablelm': stablelm(),
    'stablelm_12b': stablelm(use_qkv_bias=False, qk_layernorm=True, use_parallel_residual=True),
    'cohere': cohere('cohere', 'CohereForCausalLM', use_qk_norm=False),
    'cohere_norms': cohere('cohere', 'CohereForCausalLM', use_qk_norm=True),
    'cohere2': cohere('cohere2', 'Cohere2ForCausalLM', num_hidden_layers=5, head_dim=16, sliding_window=5,
                      sliding_window_pattern=4, rotary_pct=1.0, rope_scaling=None, use_gated_activation=True,
                      use_parallel_block=True, layer_switch=4, position_embedding_type='rope_gptj',
                      order_of_interleaved_layers='local_attn_first'),
    'phi3_long': phi3(),
    'phi3_short': phi3(original_max_position_embeddings=256),
    'phi4_long': phi3(**PHI4),
    'phi4_short': phi3(**PHI4, original_max_position_embeddings=256),
    'minicpm': minicpm(),
    'qwen3_moe_mixed': qwen_moe('qwen3_moe', 'Qwen3MoeForCausalLM', num_hidden_layers=4, head_dim=16,
                                decoder_sparse_step=2, mlp_only_layers=[3], norm_topk_prob=False),
    'qwen2_moe': qwen_moe('qwen2_moe', 'Qwen2MoeForCausalLM', shared_expert_intermediate_size=40, norm_topk_prob=False,
                          num_key_value_heads=4),
    'mixtral': local_experts('mixtral', 'MixtralForCausalLM', sliding_window=None, rope_theta=1000000.0),
    'olmoe': without(qwen_moe('olmoe', 'OlmoeForCausalLM', intermediate_size=32, norm_topk_prob=False,
                              attention_bias=False, clip_qkv=None, rms_norm_eps=1e-5, rope_scaling=None,
                              rope_theta=10000.0),
                     'moe_intermediate_size', 'decoder_sparse_step', 'mlp_only_layers', 'sliding_window',
                     'use_sliding_window', 'max_window_layers'),
    'granitemoe': granitemoe('granitemoe', 'GraniteMoeForCausalLM'),
    'granitemoeshared': granitemoe('granitemoeshared', 'GraniteMoeSharedForCausalLM', shared_intermediate_size=40),
    'deepseek': deepseek(),
    'phimoe': phimoe(),
    'glm4_moe': glm4_moe(),
    'ernie4_5_moe': ernie4_5_moe(),
    'gpt_oss': gpt_oss(),
    'gpt_oss_mxfp4': gpt_oss(quantization_config={'quant_method': 'mxfp4', 'modules_to_not_convert': [
        'model.layers.*.self_attn', 'model.layers.*.mlp.router', 'model.embed_tokens', 'lm_head']}),
}
# GGUF has no place for what these differ in, or the converter writes no such file.
FOLDER_ONLY = ('gemma2_scale', 'gemma3_v5', 'ernie4_5_biased', 'starcoder2_window', 'gpt_neox_erf', 'qwen3_moe_mixed')

"""Writes a model with fixed answers: after the token of a key it generates one text, whatever came before.

Each token's embedding is a distinct vector, the one layer adds nothing, and each row of the head is the embedding of
the token before it, so the next token depends only on the last one. A text is split into pieces that occur once, and
each piece is a token. The chat template ends with one special token per key; the last message's text selects the key.

usage: script_model.py FOLDER
"""
import json
import os
import struct
import sys

HIDDEN = 512
CALL = '<tool_call>\n%s\n</tool_call>'
WEATHER = '{"name": "get_weather", "arguments": {"city": "Reykjav\u00edk", "days": 3, "note": "a \\"<tool_call>\\" b"}}'
# Text of the last message, and the answer. "" is for all other texts; "result" follows the result of a tool.
TEXTS = {
    '': 'It is a plain answer, in two sentences. This is the second.',
    'weather': '<think>\nThe user wants the weather.\n</think>\n\nLet me look.\n' + CALL % WEATHER,
    'two': CALL % '{"name": "get_time", "arguments": {}}' + '\n' + CALL % '{"name": "get_time", "arguments": {"zone": "UTC"}}',
    'think': '<think>\nSome thoughts, then more.\n</think>\n\nThe thought-out reply.',
    'result': 'It has 4 degrees there.',
}
TEMPLATE = """{%- if tools %}<|im_start|>tools
{{ tools | tojson }}<|im_end|>
{% endif %}
{%- for m in messages %}<|im_start|>{{ m.role }}
{% if m.reasoning_content %}<think>
{{ m.reasoning_content }}
</think>

{% endif %}{{ m.content or '' }}
{%- for c in m.tool_calls or [] %}
<tool_call>
{{ c.function | tojson }}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% if messages[-1].role == 'tool' %}<go:result>
{%- elif messages[-1].content == 'weather' %}<go:weather>
{%- elif messages[-1].content == 'two' %}<go:two>
{%- elif messages[-1].content == 'think' %}<go:think>
{%- else %}<go:>{% endif %}{% endif %}"""


def byte_letters():
    """Returns GPT-2's letters for the 256 bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters, more = {}, 0
    for byte in range(256):
        if byte in plain:
            letters[byte] = chr(byte)
        else:
            letters[byte] = chr(256 + more)
            more += 1
    return letters


def pieces_of(text, used):
    """Splits the text into pieces of at least three letters, none of which was used before."""
    pieces = []
    while text:
        length = 3
        while length < len(text) and text[:length] in used:
            length += 1
        if len(text) - length < 3:
            length = len(text)
        if text[:length] in used:
            raise ValueError(f'{text[:length]!r} occurs twice')
        used.add(text[:length])
        pieces.append(text[:length])
        text = text[length:]
    return pieces


def write_safetensors(path, tensors):
    header, at = {}, 0
    for name, (shape, data) in tensors.items():
        header[name] = {'dtype': 'F32', 'shape': shape, 'data_offsets': [at, at + len(data)]}
        at += len(data)
    head = json.dumps(header).encode()
    head += b' ' * (-len(head) % 8)
    with open(path, 'wb') as file:
        file.write(struct.pack('<Q', len(head)) + head)
        for _, data in tensors.values():
            file.write(data)


def rows(count, places):
    """Shape and data of [count, HIDDEN] zeros, except 10 at each (row, column)."""
    data = bytearray(4 * count * HIDDEN)
    for row, column in places:
        struct.pack_into('<f', data, 4 * (row * HIDDEN + column), 10.0)
    return [count, HIDDEN], bytes(data)


def tokens_of_texts():
    """Returns the added tokens, the pairs (token, token before it), and the id of the end token."""
    added, pairs, used = [], [], set()

    def add(text, special=False):
        added.append({'id': 256 + len(added), 'content': text, 'special': special, 'single_word': False,
                      'lstrip': False, 'rstrip': False, 'normalized': False})
        return added[-1]['id']

    add('<|im_start|>', True)
    end = add('<|im_end|>', True)
    for key, text in TEXTS.items():
        last = add(f'<go:{key}>', True)
        for piece in pieces_of(text, used):
            pairs.append((add(piece), last))
            last = added[-1]['id']
        pairs.append((end, last))
    if 256 + len(added) > HIDDEN:
        raise ValueError('too many pieces')
    return added, pairs, end


def tensors_of(pairs):
    ones = [HIDDEN], struct.pack('<f', 1.0) * HIDDEN
    tensors = {'model.embed_tokens.weight': rows(HIDDEN, [(i, i) for i in range(HIDDEN)]), 'model.norm.weight': ones,
               'lm_head.weight': rows(HIDDEN, pairs)}
    layer = 'model.layers.0.'
    for name in ('input_layernorm', 'post_attention_layernorm'):
        tensors[f'{layer}{name}.weight'] = ones
    for name in 'qkvo':
        tensors[f'{layer}self_attn.{name}_proj.weight'] = rows(HIDDEN, [])
    for name in ('gate', 'up'):
        tensors[f'{layer}mlp.{name}_proj.weight'] = rows(64, [])
    tensors[f'{layer}mlp.down_proj.weight'] = [HIDDEN, 64], bytes(4 * HIDDEN * 64)
    return tensors


def write_model(folder, template=None):
    os.makedirs(folder, exist_ok=True)
    added, pairs, end = tokens_of_texts()
    write_safetensors(os.path.join(folder, 'model.safetensors'), tensors_of(pairs))
    files = {
        'config.json': {
            'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'hidden_size': HIDDEN,
            'intermediate_size': 64, 'num_hidden_layers': 1, 'num_attention_heads': 8, 'num_key_value_heads': 8,
            'max_position_embeddings': 8192, 'rms_norm_eps': 1e-5, 'vocab_size': HIDDEN, 'hidden_act': 'silu',
            'tie_word_embeddings': False, 'rope_theta': 10000.0, 'eos_token_id': end},
        'tokenizer.json': {
            'version': '1.0', 'added_tokens': added, 'normalizer': None, 'post_processor': None,
            'pre_tokenizer': {'type': 'ByteLevel', 'add_prefix_space': False, 'trim_offsets': True, 'use_regex': True},
            'decoder': {'type': 'ByteLevel', 'add_prefix_space': True, 'trim_offsets': True, 'use_regex': True},
            'model': {'type': 'BPE', 'dropout': None, 'unk_token': None, 'continuing_subword_prefix': None,
                      'end_of_word_suffix': None, 'fuse_unk': False, 'byte_fallback': False, 'merges': [],
                      'vocab': {letter: byte for byte, letter in byte_letters().items()}}},
        'tokenizer_config.json': {'eos_token': '<|im_end|>', 'chat_template': template or TEMPLATE},
    }
    for name, content in files.items():
        with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
            json.dump(content, file)


if __name__ == '__main__':
    write_model(sys.argv[1])

"""Mixed requests of OpenAI's API, the same for the same seed, and the parts of their answers that must be the same
everywhere."""
import functools
import json
import os
import random

from serve_client import ROOT

VOCABULARY = 4096     # of models/tales; 0 ends a text
STOPS = ['.', '\n', ' the', ' and', ', ', '"', 'said', ' he ', 'qx', '?', 'ing to']
# Members that depend on the moment or on cached text, not on the request.
LEFT_OUT = ('id', 'created', 'timings')
LEFT_OUT_OF_OWN = ('computed_tokens', 'preempted', 'differs_at', 'cache_text', 'request_text')


@functools.cache
def words():
    with open(os.path.join(ROOT, 'models', 'prompts.txt'), encoding='utf-8') as file:
        return file.read().split()


@functools.cache
def shared_text(which):
    return ' '.join(random.Random(f'text {which}').choices(words(), k=400))


@functools.cache
def shared_ids(which):
    return random.Random(f'ids {which}').choices(range(1, VOCABULARY), k=400)


class Ask:
    """A request: its path, its body, and how the client leaves before the end, if it does."""

    def __init__(self, path, body, leaves=None):
        self.path, self.body, self.leaves = path, body, leaves

    @property
    def prompts(self):
        """Number of requests that the scheduler counts."""
        prompt = self.body.get('prompt', self.body.get('input', ''))
        return len(prompt) if isinstance(prompt, list) and not isinstance(prompt[0], int) else 1

    def alone(self, told_seed):
        """Returns the body that gives the same answer without any cache; a drawn seed is replaced by the reported
        one."""
        body = self.body | {'cache_prompt': False}
        if 'seed' not in body and told_seed is not None:
            body['seed'] = told_seed
        return body


def text_prompt(dice):
    shared = shared_text(dice.randrange(12))[:dice.choice([0, 0, 0, 40, 120, 250, 250, 600, 1300])]
    return (shared + ' ' + ' '.join(dice.choices(words(), k=dice.randrange(1, 12)))).strip()


def id_prompt(dice):
    shared = shared_ids(dice.randrange(8))[:dice.choice([0, 0, 16, 63, 64, 65, 130, 300])]
    return shared + dice.choices(range(1, VOCABULARY), k=dice.randrange(1, 24))


def messages(dice):
    turns = [{'role': 'system', 'content': shared_text(dice.randrange(3))[:dice.choice([60, 200, 500])]}]
    for _ in range(dice.choice([0, 0, 1, 2])):
        turns += [{'role': 'user', 'content': ' '.join(dice.choices(words(), k=dice.randrange(1, 10)))},
                  {'role': 'assistant', 'content': ' '.join(dice.choices(words(), k=dice.randrange(1, 14)))}]
    text = ' '.join(dice.choices(words(), k=dice.randrange(1, 14)))
    parts = [{'type': 'text', 'text': text[:9]}, {'type': 'text', 'text': text[9:]}]
    turns.append({'role': 'user', 'content': dice.choice([text, parts])})
    return turns


def add_sampling(dice, body):
    body['temperature'] = dice.choice([0, 0, 0.3, 0.8, 0.8, 1, 1.5, 2])
    if dice.random() < 0.92:
        body['seed'] = dice.choice([dice.randrange(1 << 53), -dice.randrange(1 << 62)])
    for share, name, values in (
            (0.3, 'top_p', [0.5, 0.9, 0.99]), (0.3, 'top_k', [-1, 0, 5, 40]), (0.2, 'min_p', [0.02, 0.1]),
            (0.25, 'repeat_penalty', [1.1, 1.3]), (0.2, 'frequency_penalty', [-0.5, 0.4, 2]),
            (0.2, 'presence_penalty', [-1, 0.6, 2])):
        if dice.random() < share:
            body[name] = dice.choice(values)
    if dice.random() < 0.2:
        body['logit_bias'] = {str(dice.randrange(1, VOCABULARY)): dice.choice([-100, -2.5, 3, 6.25])
                              for _ in range(dice.randrange(1, 8))}


def add_ends(dice, body, is_chat):
    name = 'max_completion_tokens' if is_chat and dice.random() < 0.5 else 'max_tokens'
    body[name] = dice.choice([1, 2, 4, 8, 12, 16, 20, 24, 32, dice.randrange(1, 61), 60])
    if dice.random() < 0.02:
        body[name] = 0
    if dice.random() < 0.3:
        body['stop'] = dice.choice(STOPS) if dice.random() < 0.5 else dice.sample(STOPS, dice.randrange(1, 5))
    if dice.random() < 0.1:
        body['stop_token_ids'] = [dice.randrange(256, 600) for _ in range(4)]
    if dice.random() < 0.1:
        body['ignore_eos'] = True
    if dice.random() < 0.1:
        body['min_tokens'] = dice.randrange(1, 12)


def add_answer(dice, body, is_chat):
    body['n'] = dice.choice([1] * 14 + [2, 2, 2, 3, 3, 4])
    if dice.random() < 0.5:
        body['stream'] = True
        if dice.random() < 0.6:
            body['stream_options'] = {'include_usage': True}
            if dice.random() < 0.2:
                body['stream_options']['continuous_usage_stats'] = True
    if dice.random() < 0.25:
        body['logprobs'] = True if is_chat else dice.randrange(0, 6)
        if is_chat and dice.random() < 0.7:
            body['top_logprobs'] = dice.randrange(0, 8)
    for share, name, value in ((0.3, 'return_token_ids', True), (0.4, 'receipt', True), (0.2, 'lookup', 6),
                               (0.15, 'priority', dice.randrange(-3, 4)), (0.1, 'cache_prompt', False),
                               (0.15, 'cache_salt', dice.choice(['a', 'b'])), (0.1, 'user', 'somebody'),
                               (0.05, 'no_field_of_this_name', [1]), (0.1, 'timeout_ms', 600000)):
        if dice.random() < share:
            body[name] = value
    if dice.random() < 0.04:
        body['timeout_ms'] = dice.randrange(1, 60)
    if dice.random() < 0.1:
        resumes = [dice.choices(range(1, VOCABULARY), k=dice.randrange(1, 12)) for _ in range(body['n'])]
        body['resume_token_ids'] = resumes if body['n'] > 1 or dice.random() < 0.5 else resumes[0]


def embeddings(dice):
    inputs = [text_prompt(dice), [text_prompt(dice), text_prompt(dice)], id_prompt(dice), [id_prompt(dice)]]
    body = {'input': dice.choice(inputs), 'encoding_format': dice.choice(['float', 'base64'])}
    if dice.random() < 0.5:
        body['pooling'] = dice.choice(['mean', 'last'])
    return Ask('/v1/embeddings', body)


def refused(dice):
    """A request that is always refused; its error counts as an answer."""
    wrong = [{'prompt': dice.choices(range(1, VOCABULARY), k=1100)}, {'prompt': 'Well', 'temperature': 9},
             {'prompt': 'Well', 'n': 17}, {'prompt': [VOCABULARY + 5]}, {'prompt': ''}, {'max_tokens': 4},
             {'prompt': 'Well', 'logit_bias': {'x': 1}}, {'prompt': 'Well', 'top_p': 'high', 'stream': True}]
    return Ask('/v1/completions', dice.choice(wrong))


def mixed(seed, index, cancelled=0.0):
    """Request `index` of a run."""
    dice = random.Random(f'{seed} {index}')
    kind = dice.random()
    if kind < 0.02:
        return refused(dice)
    if kind < 0.10:
        ask = embeddings(dice)
    else:
        is_chat = kind < 0.5
        body = {'model': dice.choice(['tales', 'gpt-4o-mini'])} if dice.random() < 0.8 else {}
        prompts = [text_prompt(dice), text_prompt(dice), id_prompt(dice)]
        several = [[text_prompt(dice), text_prompt(dice)], [id_prompt(dice), id_prompt(dice)]]
        body |= {'messages': messages(dice)} if is_chat else {'prompt': dice.choice(prompts)}
        add_sampling(dice, body)
        add_ends(dice, body, is_chat)
        add_answer(dice, body, is_chat)
        if not is_chat and dice.random() < 0.1 and 'resume_token_ids' not in body:
            body['prompt'] = dice.choice(several)
        ask = Ask('/v1/chat/completions' if is_chat else '/v1/completions', body)
    if dice.random() < cancelled:
        ask.leaves = {'reset': dice.random() < 0.3, 'after_s': dice.choice([0, 0.002, 0.02, 0.1, 0.3]) * dice.random(),
                      'events': dice.randrange(1, 12) if dice.random() < 0.6 else None}
    return ask


# ---- what has to be the same --------------------------------------------------------------------------------------

def parsed(text):
    """Parses JSON; numbers with a fraction stay text, so that every digit is compared."""
    return json.loads(text, parse_float=lambda digits: 'number ' + digits)


def without_moment(answer):
    """An answer's object, or a chunk's, without members that may differ."""
    for name in LEFT_OUT:
        answer.pop(name, None)
    for name in LEFT_OUT_OF_OWN:
        answer.get('kvasir', {}).pop(name, None)
    details = (answer.get('usage') or {}).get('prompt_tokens_details', {})
    details.pop('cached_tokens', None)
    return answer


def joined_logprobs(kept, more):
    if more is None:
        return kept
    kept = kept or {}
    for name, values in more.items():
        kept[name] = kept.get(name, []) + values if isinstance(values, list) else values
    return kept


def add_chunk(choices, chunk):
    """Adds a chunk to its choice. The split into chunks depends on how fast they are read, so it is not compared."""
    whole = choices.setdefault(chunk['index'], {'text': '', 'logprobs': None, 'finish_reason': None, 'chunks': 0})
    assert whole['finish_reason'] is None, 'a chunk after the choice\'s end'
    delta = chunk.get('delta', {})
    if 'delta' in chunk:
        assert ('role' in delta) == (whole['chunks'] == 0), 'a role that does not come first, or twice'
    whole['chunks'] += 1
    whole['text'] += chunk.get('text', '') + delta.get('content', '')
    for name in ('token_ids', 'prompt_token_ids'):
        if name in chunk:
            whole[name] = whole.get(name, []) + chunk[name]
    whole['logprobs'] = joined_logprobs(whole['logprobs'], chunk['logprobs'])
    whole['finish_reason'] = chunk['finish_reason']


def joined_stream(events, wants_usage):
    """The chunks of a stream as one object; asserts the order that clients rely on."""
    assert events and events[-1] == b'[DONE]', 'a stream without [DONE]'
    whole, choices = {}, {}
    chunks = [parsed(event) for event in events[:-1]]
    if 'error' in chunks[-1]:
        return chunks[-1]
    assert len({chunk['id'] for chunk in chunks}) == 1, 'more than one id'
    if wants_usage:
        assert chunks[-1]['choices'] == [] and chunks[-1]['usage'], 'the usage is not last'
    for chunk in chunks:
        for choice in chunk.pop('choices'):
            add_chunk(choices, choice)
        whole |= without_moment(chunk)
    for choice in choices.values():
        assert choice['finish_reason'], 'a choice without an end'
        del choice['chunks']
    whole['choices'] = [choices[index] for index in sorted(choices)]
    return whole


def told_seed(answer):
    """Returns the seed that an answer reports, or None."""
    for text in reversed(answer.events()) if answer.is_stream else [answer.body]:
        found = parsed(text).get('kvasir') if text != b'[DONE]' else None
        if found:
            return found['seed']
    return None


def plain(ask, answer):
    """Returns the part of an answer that must be the same, byte for byte, for the same request anywhere."""
    if answer.is_stream:
        options = ask.body.get('stream_options', {})
        events = answer.events()
        if len(events) == 1 or b'"error"' in events[-1]:
            events.append(b'[DONE]')  # an error ends a stream
        whole = joined_stream(events, options.get('include_usage', False))
    else:
        whole = without_moment(parsed(answer.body))
    return f'{answer.status} ' + json.dumps(whole, ensure_ascii=False)


def error_code(ask, answer):
    """Returns the code of an error, also in a stream; None without an error."""
    if not answer.is_stream:
        return answer.json()['error']['code'] if answer.status >= 400 else None
    last = [event for event in answer.events() if event.startswith(b'{"error"')]
    return json.loads(last[0])['error']['code'] if last else None

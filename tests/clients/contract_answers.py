"""Checks of contract_test.py: answers, streams, the cache, resuming, and what the server reports about itself."""
import base64
import re
import struct

from serving import CHAT, TEXT, ask, chat, check, completion, expect_error, scheduler, texts_of

CHUNK_KEYS = ['id', 'object', 'created', 'model', 'system_fingerprint', 'choices']


# ---- whole answers --------------------------------------------------------------------------------------------------

def check_whole(bench):
    with bench.server() as server:
        reply = chat(server, **CHAT)
        answer = reply.json
        check(list(answer) == CHUNK_KEYS + ['usage', 'timings', 'kvasir'], f'members of a chat answer: {list(answer)}')
        check(re.fullmatch('chatcmpl-[0-9a-f]{24}', answer['id']), answer['id'])
        check(answer['object'] == 'chat.completion' and answer['model'] == 'tales', reply)
        choice = answer['choices'][0]
        check(list(choice) == ['index', 'message', 'logprobs', 'finish_reason'], f'members of a choice: {list(choice)}')
        check(list(choice['message']) == ['role', 'content', 'refusal'] and choice['message']['refusal'] is None, reply)
        check(choice['finish_reason'] == 'length' and choice['logprobs'] is None, reply)
        usage = answer['usage']
        check(usage['completion_tokens'] == 12 and
              usage['total_tokens'] == usage['prompt_tokens'] + usage['completion_tokens'], usage)
        check(usage['prompt_tokens_details'] == {'cached_tokens': 0} and
              usage['completion_tokens_details'] == {'reasoning_tokens': 0}, usage)
        check(set(answer['timings']) >= {'cache_n', 'prompt_n', 'prompt_ms', 'prompt_per_second', 'predicted_n',
                                         'predicted_ms', 'predicted_per_second'}, answer['timings'])
        check(answer['kvasir']['seed'] == 7 and answer['kvasir']['computed_tokens'] == usage['prompt_tokens'], reply)

        text = completion(server, **TEXT | {'prompt': ['Once upon', 'The old king'], 'n': 2}).json
        check(text['object'] == 'text_completion' and text['id'].startswith('cmpl-'), text)
        check([c['index'] for c in text['choices']] == [0, 1, 2, 3], 'two prompts of two choices are four, in order')
        for prompt, first in (('Once upon', 0), ('The old king', 2)):
            alone = completion(server, **TEXT | {'prompt': prompt, 'n': 2}).json['choices']
            check([c['text'] for c in alone] == [c['text'] for c in text['choices'][first:first + 2]],
                  f'the choices of "{prompt}" alone are others')
        stop = completion(server, **TEXT | {'max_tokens': 300, 'ignore_eos': False, 'stop': ['.']}).json['choices'][0]
        check(stop['finish_reason'] == 'stop' and '.' not in stop['text'], stop)


def check_names_without_prefix(bench):
    with bench.server() as server:
        for path, body in (('/completions', TEXT), ('/chat/completions', CHAT), ('/embeddings', {'input': 'a'})):
            check(ask(server, 'POST', path, body).status == 200, f'{path} without /v1')
        check(ask(server, 'GET', '/models').json == ask(server, 'GET', '/v1/models').json, '/models without /v1')
        check(ask(server, 'GET', '/models/tales').json['id'] == 'tales', '/models/tales without /v1')


def check_max_tokens_0(bench):
    """The prompt is computed and cached, and nothing is generated."""
    prompt = list(range(100, 300))
    with bench.server() as server:
        reply = completion(server, prompt=prompt, max_tokens=0, logprobs=1, return_token_ids=True)
        choice = reply.json['choices'][0]
        check(choice['text'] == '' and choice['token_ids'] == [] and choice['finish_reason'] == 'length', reply)
        check(reply.json['usage']['completion_tokens'] == 0, reply)
        warm = completion(server, prompt=prompt, max_tokens=4)
        check(warm.json['usage']['prompt_tokens_details']['cached_tokens'] == 199, f'after warming: {warm}')
        streamed = completion(server, prompt=prompt, max_tokens=0, stream=True).events
        check([e['choices'][0]['text'] for e in streamed[:-1]] == [''], f'a stream of nothing: {streamed}')


def check_embeddings(bench):
    with bench.server() as server:
        numbers = ask(server, 'POST', '/v1/embeddings', {'input': ['a king', 'a fox']}).json
        coded = ask(server, 'POST', '/v1/embeddings', {'input': 'a fox', 'encoding_format': 'base64'}).json
        check([d['index'] for d in numbers['data']] == [0, 1] and numbers['object'] == 'list', numbers)
        data = base64.b64decode(coded['data'][0]['embedding'])
        floats = list(struct.unpack(f'<{len(data) // 4}f', data))
        alone = numbers['data'][1]['embedding']
        check(len(floats) == 192 and all(abs(a - b) < 1e-6 for a, b in zip(floats, alone)),
              'base64 and numbers are the same vector')
        check(abs(sum(x * x for x in floats) - 1) < 1e-5, 'the vector has length 1')
        check(numbers['usage']['prompt_tokens'] == numbers['usage']['total_tokens'] > 0, numbers['usage'])


# ---- streams --------------------------------------------------------------------------------------------------------

def check_stream_of_chat(bench):
    with bench.server() as server:
        for options, with_usage in (({}, False), ({'stream_options': {'include_usage': False}}, False),
                                    ({'stream_options': {'include_usage': True}}, True)):
            what = f'chat stream, {options}'
            reply = chat(server, **CHAT, stream=True, **options)
            *events, done = reply.events
            check(done == '[DONE]' and reply.body.endswith(b'data: [DONE]\n\n'), f'{what}: the last event')
            for event in events:
                check(list(event)[:6] == CHUNK_KEYS and event['object'] == 'chat.completion.chunk', f'{what}: {event}')
                check({event['id'], event['model']} == {events[0]['id'], 'tales'}, f'{what}: {event}')
            usage = [event['usage'] if 'usage' in event else 'absent' for event in events]
            if with_usage:
                check(events[-1]['choices'] == [], f'{what}: the chunk of the usage has choices')
                check((events[-1]['usage'] or {}).get('completion_tokens') == 12, f'{what}: {usage}')
                check(set(map(str, usage[:-1])) == {'None'}, f'{what}: usage is not null before: {usage}')
                events = events[:-1]
            else:
                check(set(usage) == {'absent'}, f'{what}: usage is not absent: {usage}')
            choices = [event['choices'][0] for event in events]
            check(all(len(event['choices']) == 1 for event in events), f'{what}: one choice in each chunk')
            check(choices[0]['delta'] == {'role': 'assistant', 'content': ''}, f'{what}: first {choices[0]}')
            check(all(list(c['delta']) == ['content'] for c in choices[1:-1]), f'{what}: middle {choices[1:-1]}')
            check(choices[-1]['delta'] == {} and choices[-1]['finish_reason'] == 'length', f'{what}: {choices[-1]}')
            check(all(c['finish_reason'] is None for c in choices[:-1]), f'{what}: finish_reason before the last')
            check(all(c['logprobs'] is None for c in choices), f'{what}: logprobs that nobody wanted')
            check(['timings' in e and 'kvasir' in e for e in events] == [False] * (len(events) - 1) + [True],
                  f'{what}: timings and kvasir are in the last chunk that has a choice')
            whole = chat(server, **CHAT).json['choices'][0]['message']['content']
            check(texts_of(reply.events, 1, True) == [whole], f'{what}: another text than the whole answer')


def check_stream_of_text(bench):
    with bench.server() as server:
        body = TEXT | {'n': 2, 'stream': True, 'logprobs': 2, 'return_token_ids': True,
                       'stream_options': {'continuous_usage_stats': True}}
        *events, done = completion(server, **body).events
        check(done == '[DONE]', done)
        check(all('usage' in e for e in events), 'continuous_usage_stats: usage in every chunk')
        counts = [e['usage']['completion_tokens'] for e in events]
        check(counts == sorted(counts) and counts[-1] == 48, f'usage as it goes: {counts}')
        whole = completion(server, **TEXT | {'n': 2, 'logprobs': 2, 'return_token_ids': True}).json['choices']
        said = whole[0]['logprobs']
        offsets = [sum(map(len, said['tokens'][:i])) for i in range(24)]
        check(said['text_offset'] == offsets, f'text_offset counts characters: {said}')
        for index in (0, 1):
            own = [e['choices'][0] for e in events if e['choices'][0]['index'] == index]
            check([c['finish_reason'] for c in own] == [None] * (len(own) - 1) + ['length'], f'choice {index}: ends')
            check(sum((c.get('token_ids', []) for c in own), []) == whole[index]['token_ids'], f'choice {index}: ids')
            check(''.join(c['text'] for c in own) == whole[index]['text'], f'choice {index}: text')
            said = [c['logprobs'] for c in own if c['logprobs']]
            for name in ('tokens', 'token_logprobs', 'top_logprobs', 'text_offset'):
                check(sum((one[name] for one in said), []) == whole[index]['logprobs'][name], f'choice {index}: {name}')


def check_characters_stay_whole(bench):
    """A character may take two tokens of one byte each: the server sends it only after the second."""
    with bench.server() as server:
        ids = ask(server, 'POST', '/tokenize', {'content': '\u00e9'}).json['tokens']
        check(len(ids) == 2, f'the character is not two tokens: {ids}')
        body = TEXT | {'logit_bias': {str(i): 100 for i in ids}, 'max_tokens': 64, 'n': 4}
        whole = [choice['text'] for choice in completion(server, **body).json['choices']]
        check(all('\u00e9' in text for text in whole), f'the character is not in {whole}')
        events = completion(server, **body, stream=True).events
        check(len(events) > 8 and texts_of(events, 4, False) == whole, 'in pieces it is another text')


def check_offsets_of_held_text(bench):
    """Text that may become a stop is held back; the text_offset of its tokens does not depend on when it is sent."""
    with bench.server() as server:
        body = TEXT | {'logprobs': 1, 'n': 2, 'stop': ['er ', 'ing ']}
        whole = completion(server, **body).json['choices']
        events = completion(server, **body, stream=True).events[:-1]
        for index in (0, 1):
            own = [e['choices'][0]['logprobs'] for e in events if e['choices'][0]['index'] == index]
            offsets = sum((one['text_offset'] for one in own if one), [])
            wanted = whole[index]['logprobs']['text_offset']
            check(offsets == wanted, f'text_offset of choice {index}: {offsets}, not {wanted}')


# ---- the cache and resuming -----------------------------------------------------------------------------------------

def check_what_differs(bench):
    """If a prompt diverges from cached text, the answer reports both texts, which differ; otherwise it reports
    nothing."""
    with bench.server() as server:
        first = completion(server, prompt='The old king went to the wood', max_tokens=1).json
        check('differs_at' not in first['kvasir'], f'nothing was kept before: {first["kvasir"]}')
        same = completion(server, prompt='The old king went to the wood', max_tokens=1).json['kvasir']
        check('differs_at' not in same, f'the same prompt: {same}')
        other = completion(server, prompt='The old king went to the sea', max_tokens=1).json['kvasir']
        check(other.get('cache_text', '').startswith(' wood') and other.get('request_text') == ' sea', other)


def check_fingerprint(bench):
    """The same fingerprint and the same body with a seed give the same answer, so a setting that changes answers
    changes the fingerprint."""
    def of(*flags):
        with bench.server(*flags) as server:
            return completion(server, **TEXT).json['system_fingerprint']

    plain = of()
    check(of('--threads', '1', '--step-ms', '5', '--cache', 'grow') == plain, 'the same bits, another fingerprint')
    for flags in (('--kv-type', 'q4_0'), ('--ctk', 'f16'), ('--window', '64')):
        check(of(*flags) != plain, f'{flags}: other bits, the same fingerprint')


def check_salts(bench):
    prompt = list(range(200, 400))
    keys = 'anna key-a\nbert key-b\n'

    def cached(server, key, **more):
        reply = completion(server, [('x-api-key', key)], prompt=prompt, max_tokens=2, **more)
        number = reply.json['usage']['prompt_tokens_details']['cached_tokens']
        check(reply.header('x-kvasir-cached-tokens') == str(number), f'the header and the usage: {reply.headers}')
        return number

    with bench.server(keys=keys) as server:
        steps = [('key-a', {}, 0), ('key-a', {}, 199), ('key-a', {'cache_salt': 'x'}, 0),
                 ('key-a', {'cache_salt': 'x'}, 199), ('key-a', {'cache_salt': 'y'}, 0), ('key-b', {}, 0),
                 ('key-b', {'cache_salt': 'x'}, 0), ('key-a', {'cache_prompt': False}, 0), ('key-a', {}, 199)]
        for number, (key, more, wanted) in enumerate(steps):
            got = cached(server, key, **more)
            check(got == wanted, f'step {number}, {key} {more}: {got} tokens cached, not {wanted}')
    with bench.server('--shared-cache', keys=keys) as server:
        got = [cached(server, 'key-a'), cached(server, 'key-b'), cached(server, 'key-b', cache_salt='x')]
        check(got == [0, 199, 0], f'--shared-cache joins the keys, and not the salts: {got}')


RESUMED = {'sampled': {}, 'penalties': {'repeat_penalty': 1.2, 'presence_penalty': 0.5}, 'greedy': {'temperature': 0},
           'stops': {'stop': ['er', 'the'], 'max_tokens': 60}}


def check_resume(bench):
    """A second server continues what the first has sent: byte for byte, whole and streamed, wherever the first
    stopped."""
    with bench.server() as first, bench.server() as second:
        for what, more in RESUMED.items():
            for n in (1, 2):
                body = TEXT | more | {'n': n, 'return_token_ids': True}
                whole = completion(first, **body).json['choices']
                states = states_of(completion(first, **body, stream=True).events, n)
                ids = [choice['token_ids'] for choice in whole]
                for k in (1, len(ids[0]) // 2):  # their texts are not known: part may have been held back
                    states.append(([own[:k + i] for i, own in enumerate(ids)], None))
                for state in states:
                    expect_rest(second, body, whole, state, f'{what}, n={n}, resumed after {state[0]}')


def states_of(events, n):
    """Returns ([ids of each choice], [text of each choice]) after the first, a middle and the last piece of a
    stream."""
    ids, texts, states = [[] for _ in range(n)], [''] * n, []
    for event in events[:-1]:
        for choice in event['choices']:
            ids[choice['index']] += choice.get('token_ids', [])
            texts[choice['index']] += choice['text']
        if any(ids) and (not states or states[-1][0] != ids):
            states.append(([list(own) for own in ids], list(texts)))
    return [states[0], states[len(states) // 2], states[-1]]


def expect_rest(server, body, whole, state, what):
    given, texts = state
    resume = {'resume_token_ids': given if len(given) > 1 else given[0]}
    rest = completion(server, **body, **resume)
    if not check(rest.status == 200, f'{what}: {rest}'):
        return
    pieces = [event['choices'][0] for event in completion(server, **body, **resume, stream=True).events[:-1]]
    for i, choice in enumerate(whole):
        wanted, own = choice['token_ids'][len(given[i]):], rest.json['choices'][i]
        check(own['token_ids'] == wanted, f'{what}: choice {i}: ids {own["token_ids"]}, not {wanted}')
        check(texts is None or texts[i] + own['text'] == choice['text'],
              f'{what}: choice {i}: {own["text"]!r} after {texts and texts[i]!r} is not {choice["text"]!r}')
        check(own['finish_reason'] == choice['finish_reason'], f'{what}: choice {i} ends by {own["finish_reason"]}')
        streamed = [piece for piece in pieces if piece['index'] == i]
        ids = sum((piece.get('token_ids', []) for piece in streamed), [])
        check(ids == wanted, f'{what}: choice {i}: streamed ids {ids}, not {wanted}')
        check(''.join(piece['text'] for piece in streamed) == own['text'], f'{what}: choice {i}: streamed text')


# ---- tokens and the server itself -----------------------------------------------------------------------------------

def check_tokens(bench):
    with bench.server() as server:
        def tokens(**body):
            return ask(server, 'POST', '/tokenize', body).json

        text = 'The old king, said he: "Caf\u00e9!"'
        plain = tokens(content=text)
        check(plain['count'] == len(plain['tokens']) > 5 and plain['max_model_len'] == 1024, plain)
        pieces = tokens(content=text, with_pieces=True)['tokens']
        check([p['id'] for p in pieces] == plain['tokens'], f'with_pieces: {pieces}')
        check(tokens(prompt=text, add_special_tokens=False)['tokens'] == plain['tokens'], 'the two shapes differ')
        strings = tokens(prompt=text, return_token_strs=True)
        check(len(strings['token_strs']) == strings['count'], strings)
        asked = tokens(messages=CHAT['messages'])
        used = chat(server, **CHAT).json['usage']['prompt_tokens']
        check(asked['count'] == used, f'messages: {asked["count"]} tokens, and {used} in the chat')
        back = ask(server, 'POST', '/detokenize', {'tokens': plain['tokens']}).json
        check(back == {'content': text, 'prompt': text}, f'detokenize: {back}')
        for path, body, param in (('/tokenize', {}, None), ('/tokenize', {'content': 5}, 'content'),
                                  ('/detokenize', {'tokens': 'x'}, 'tokens'),
                                  ('/detokenize', {'tokens': [9999]}, 'tokens')):
            reply = ask(server, 'POST', path, body)
            expect_error(reply, f'{path} {body}', 400, 'invalid_value', param or reply.error.get('param'))


def check_about(bench):
    with bench.server() as server:
        check(ask(server, 'GET', '/health').json == {'status': 'ok'}, '/health')
        check(ask(server, 'GET', '/ready').json == {'status': 'ready'}, '/ready')
        props = ask(server, 'GET', '/props').json
        check(props['total_slots'] == 64 and props['default_generation_settings']['n_ctx'] == 1024, f'/props: {props}')
        params = props['default_generation_settings']['params']
        check((params['temperature'], params['top_p'], params['top_k']) == (0.7, 0.95, 0), f'/props: {params}')
        model = ask(server, 'GET', '/v1/models/tales').json
        check(ask(server, 'GET', '/v1/models').json == {'object': 'list', 'data': [model]}, '/v1/models')
        check((model['id'], model['object'], model['owned_by'], model['max_model_len']) ==
              ('tales', 'model', 'kvasir', 1024), model)
        check(model['meta']['n_vocab'] == 4096 and model['meta']['n_embd'] == 192 and model['created'] > 0, model)
        for body in (TEXT, TEXT | {'prompt': list(range(300, 400))}):
            completion(server, **body)
        metrics = dict(re.findall(r'^(\w+)(?:\{[^}]*\})? (\S+)$', ask(server, 'GET', '/metrics').body.decode(), re.M))
        state = scheduler(server)
        for metric, counter in (('prompt_tokens_computed_total', 'prompt_tokens_computed'),
                                ('tokens_generated_total', 'tokens_generated'), ('passes_total', 'passes'),
                                ('requests_running', 'running'), ('requests_waiting', 'waiting')):
            check(float(metrics['kvasir_' + metric]) == state[counter], f'{metric}: {metrics} and {state}')
        check(state['tokens_generated'] == 48 and state['running'] == state['waiting'] == 0, f'at rest: {state}')
        check(metrics['kvasir_requests_total'] == '2', metrics)
        check(metrics['kvasir_first_token_seconds_count'] == '2', 'the histograms counted both answers')
    with bench.server('--metrics-names', 'vllm') as server:
        text = ask(server, 'GET', '/metrics').body.decode()
        for name in ('vllm:num_requests_running', 'vllm:num_requests_waiting', 'vllm:kv_cache_usage_perc'):
            check(f'\n{name}{{' in text, f'{name} is not among the names')

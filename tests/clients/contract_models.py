"""Checks of contract_test.py: several models behind one address, opened when asked for and put away when idle."""
import os
import re
import shutil
import subprocess
import tempfile
import time

from serving import (CHAT, Connection, LONG, PATIENCE, TEXT, ask, chat, check, completion, expect_error, texts_of,
                     wait_until)

BOTH = ('tales', 'tales-gpt2')
NAMES = ('--alias', 'first', '--alias', 'second')
PROVED = TEXT | {'return_token_ids': True, 'receipt': True}
TTL = 0.4  # seconds, of the servers that put models away
MIB = 1 << 20


def pair(bench, *flags, serve=BOTH):
    return bench.server(*NAMES, *flags, serve=serve)


def listed(server):
    """/v1/models, by name."""
    return {model['id']: model for model in ask(server, 'GET', '/v1/models').json['data']}


def loaded(server):
    return tuple(model['loaded'] for model in listed(server).values())


def counted(server):
    """/v1/scheduler, by name."""
    return ask(server, 'GET', '/v1/scheduler').json['models']


def process(server, field):
    """Returns a number from /proc/PID/status; sizes in bytes."""
    with open(f'/proc/{server.process.pid}/status', encoding='ascii') as file:
        number, *unit = re.search(rf'^{field}:\s*(.*)$', file.read(), re.M).group(1).split()
    return int(number) * (1024 if unit else 1)


def samples(server):
    """Returns /metrics as two dicts {name and labels: value}: counters with histograms, and gauges."""
    growing, gauges, kind = {}, {}, ''
    for line in ask(server, 'GET', '/metrics').body.decode().splitlines():
        if line.startswith('# TYPE '):
            kind = line.split()[3]
        elif line and not line.startswith('#'):
            name, value = line.rsplit(' ', 1)
            (gauges if kind == 'gauge' else growing)[name] = float(value)
    return growing, gauges


def tokens_of(reply, chat_form=False):
    """Returns the parts of an answer that must not depend on other requests: fingerprint, seed, receipts and
    choices."""
    answer = reply.json
    kvasir = answer.get('kvasir', {})
    members = [answer.get('system_fingerprint'), kvasir.get('seed'), kvasir.get('receipt'), kvasir.get('receipts')]
    choices = answer.get('choices', [])
    if not choices or not all(choice.get('token_ids') for choice in choices):
        raise ValueError(f'an answer without token ids: {reply}')
    return members + [choices if not chat_form else [(c['message'], c['token_ids']) for c in choices]]


# ---- which model answers, and when it is opened ---------------------------------------------------------------------

def check_models_are_opened_when_asked(bench):
    with pair(bench) as server:
        before, threads, size = listed(server), process(server, 'Threads'), process(server, 'VmRSS')
        check(list(before) == ['first', 'second'] and loaded(server) == (True, False), f'at the start: {before}')
        check('meta' in before['first'] and 'meta' not in before['second'], f'sizes of what is loaded: {before}')
        check(set(counted(server)) == {'first'}, f'/v1/scheduler at the start: {counted(server)}')
        check(not any('"second"' in name for part in samples(server) for name in part), '/metrics at the start')
        completion(server, **TEXT, model='first')
        check(loaded(server) == (True, False), f'a request for the first: {loaded(server)}')

        connections = [Connection(server.port) for _ in range(4)]  # all of them wait for one opening
        for c in connections:
            c.send('POST', '/v1/completions', PROVED | {'model': 'second'})
        replies = [c.reply() for c in connections]
        for c in connections:
            c.close()
        check([(r.status, r.json.get('model')) for r in replies] == [(200, 'second')] * 4, f'the second: {replies}')
        check(all(tokens_of(r) == tokens_of(replies[0]) for r in replies), f'four answers differ: {replies}')
        after, state = listed(server), counted(server)
        check(loaded(server) == (True, True) and set(state) == {'first', 'second'}, f'afterwards: {after}, {state}')
        check(state['second']['submitted'] == 4 and state['first']['submitted'] == 1, f'who was asked: {state}')
        check((after['first']['meta']['n_embd'], after['second']['meta']['n_embd']) == (192, 128), f'sizes: {after}')
        check(process(server, 'Threads') > threads, 'the second has no threads of its own')
        grown = process(server, 'VmRSS') - size
        check(grown > after['second']['meta']['size'], f'{grown} B more for {after["second"]["meta"]["size"]}')
        one = ask(server, 'GET', '/v1/models/second')
        check(one.json == after['second'], f'/v1/models/second: {one}')


def check_names_of_models(bench):
    with pair(bench) as server:
        for what, more in (('no model', {}), ('null', {'model': None}), ('an unknown name', {'model': 'gpt-4o'}),
                           ('the name of its files', {'model': 'tales-gpt2'})):
            reply = completion(server, **TEXT | more)
            check((reply.status, reply.json.get('model')) == (200, 'first'), f'{what}: {reply}')
        reply = ask(server, 'GET', '/v1/models/gpt-4o')
        expect_error(reply, 'no such model', 404, 'model_not_found', 'model', 'gpt-4o')
        check(loaded(server) == (True, False), 'names that are not known open nothing')
        vector = ask(server, 'POST', '/v1/embeddings', {'input': 'a', 'model': 'second'}).json
        check(vector.get('model') == 'second' and len(vector['data'][0]['embedding']) == 128, 'embeddings')
        check(loaded(server) == (True, True), 'embeddings open a model')
    with pair(bench, '--strict-model') as server:
        paths = {'/v1/completions': TEXT, '/v1/chat/completions': CHAT, '/v1/embeddings': {'input': 'a'},
                 '/tokenize': {'content': 'a'}, '/detokenize': {'tokens': [1]}}
        for path, body in paths.items():
            reply = ask(server, 'POST', path, body | {'model': 'gpt-4o'})
            expect_error(reply, f'--strict-model, {path}', 404, 'model_not_found', 'model', 'gpt-4o')
        reply = completion(server, **TEXT, model='gpt-4o', stream=True)
        expect_error(reply, '--strict-model, a stream', 404, 'model_not_found', 'model', 'gpt-4o')
        check(completion(server, **TEXT).json.get('model') == 'first', '--strict-model: without a name')
        check(completion(server, **TEXT, model='second').json.get('model') == 'second', '--strict-model: the second')


# ---- answers --------------------------------------------------------------------------------------------------------

def bodies():
    """(path, body)"""
    text = [PROVED | {'prompt': prompt, 'seed': seed, 'max_tokens': 60, **more}
            for prompt in ('Once upon a time', 'The king said') for seed, more in
            ((1, {}), (2, {'n': 3}), (3, {'temperature': 0}), (4, {'cache_salt': 'x', 'repeat_penalty': 1.2}))]
    conversation = CHAT | {'return_token_ids': True, 'receipt': True, 'max_tokens': 40}
    return [('/v1/completions', body) for body in text] + [('/v1/chat/completions', conversation)]


def check_models_answer_as_alone(bench):
    alone = []
    for model in BOTH:
        with bench.server(serve=(model,)) as server:
            alone.append([tokens_of(ask(server, 'POST', path, body), 'chat' in path) for path, body in bodies()])
    check(alone[0] != alone[1], 'the two models say the same')
    with pair(bench) as server:
        for round_ in ('opened meanwhile', 'both open'):
            sent = []
            try:
                for at, (path, body) in enumerate(bodies()):
                    for which, name in enumerate(('first', 'second')):
                        c = Connection(server.port)
                        sent.append((which, at, path, c))
                        c.send('POST', path, body | {'model': name})
                for which, at, path, c in sent:
                    got = tokens_of(c.reply(), 'chat' in path)
                    check(got == alone[which][at], f'{round_}, {BOTH[which]}, {bodies()[at]}: {got}')
            finally:
                for *_, c in sent:
                    c.close()
        for which, name in enumerate(('first', 'second')):
            events = completion(server, **bodies()[1][1] | {'model': name, 'stream': True}).events
            texts = [c['text'] for c in alone[which][1][-1]]
            check(events[-1] == '[DONE]' and texts_of(events, 3, False) == texts, f'{name}, streamed: {events[-1]}')


# ---- put away -------------------------------------------------------------------------------------------------------

def check_idle_models_are_put_away(bench):
    with pair(bench, '--model-ttl', str(TTL)) as server:
        check(wait_until(lambda: loaded(server) == (False, False), TTL + 2), 'the first is not put away')
        check(counted(server) == {}, f'/v1/scheduler with nothing loaded: {counted(server)}')
        for path in ('/health', '/ready', '/metrics', '/props', '/v1/models/first'):
            check(ask(server, 'GET', path).status == 200, f'{path} with nothing loaded')
        time.sleep(0.1)  # what is put away is closed a moment later
        threads, size, answers, growing = process(server, 'Threads'), process(server, 'VmRSS'), [], {}
        for _ in range(6):
            answers.append([tokens_of(completion(server, **PROVED, model=name)) for name in ('first', 'second')])
            check(loaded(server) == (True, True) and process(server, 'Threads') > threads, 'asked for, and not open')
            weights = sum(model['meta']['size'] for model in listed(server).values())
            check(process(server, 'VmRSS') > size + weights / 2, f'{weights} B of weights take no memory')
            before, growing = growing, samples(server)[0]
            less = {name: (value, growing.get(name)) for name, value in before.items() if growing.get(name, -1) < value}
            check(not less, f'counters that fell when a model was opened again: {less}')
            check(wait_until(lambda: loaded(server) == (False, False), TTL + 2), 'not put away')
            check(wait_until(lambda: process(server, 'Threads') == threads, 2), 'threads of models put away')
            check(wait_until(lambda: process(server, 'VmRSS') < size + 3 * MIB, 2),
                  f'{process(server, "VmRSS")} B when put away, {size} B before')
        check(all(answer == answers[0] for answer in answers), f'opened again, other answers: {answers}')
        done = growing.get('kvasir_requests_total{model_name="second",status="200"}')
        check(done == 6, f'{done} requests of the second counted, of 6')


def check_metrics_of_models_put_away(bench):
    """Counters cover all the times a model was open; its gauges are absent or 0 while it is put away."""
    name = '{model_name="second"}'
    with pair(bench, '--model-ttl', str(TTL)) as server:
        for scraped in (True, False):
            total = 'kvasir_tokens_generated_total' + name
            before = samples(server)[0].get(total, 0)
            completion(server, **TEXT | {'model': 'second', 'max_tokens': 8})
            if scraped:
                seen = samples(server)[0][total]
                check(seen == before + 8, f'{total}: {before}, then 8 tokens, then {seen}')
            check(wait_until(lambda: not loaded(server)[1], TTL + 2), 'not put away')
            gauges = samples(server)[1]
            held = {gauge: value for gauge, value in gauges.items() if name in gauge and value != 0}
            check(not held, f'gauges of a model that is put away: {held}')
            completion(server, **TEXT | {'model': 'second', 'max_tokens': 24})
            seen = samples(server)[0][total]
            check(seen == before + 32, f'{total}: {before}; 8 tokens, scraped: {scraped}; put away; 24 tokens: {seen}')


def watched(server):
    """Watches while the second model answers. Returns whether it was put away, whether the first was, and the
    milliseconds of the answer."""
    early = first_gone = False
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        state = loaded(server)
        # The server logs this line when the answer ends, so before the time to live is over.
        line = re.search(r'model="second".* total_ms=([\d.]+)', server.log_text())
        if line:
            return early, first_gone, float(line.group(1))
        early, first_gone = early or not state[1], first_gone or not state[0]
        time.sleep(0.01)
    raise RuntimeError(f'no answer in {PATIENCE} s: {server.log_text()}')


def check_a_model_that_generates_stays(bench):
    body = LONG | {'model': 'second', 'max_tokens': 900, 'receipt': True}
    with pair(bench, '--model-ttl', str(TTL)) as server, Connection(server.port) as c:
        c.send('POST', '/v1/completions', body | {'stream': True})
        check(wait_until(lambda: counted(server).get('second', {}).get('running') == 16), 'it does not run')
        early, first_gone, took = watched(server)
        check(not early, 'put away while it generated')
        check(first_gone, 'the first, idle, was not put away meanwhile')
        check(took > 2e3 * TTL, f'the stream was too short to tell: {took} ms')
        events = c.reply().events
        check(events[-1] == '[DONE]', f'the stream is not whole: {events[-1]}')
        check(wait_until(lambda: not loaded(server)[1], TTL + 2), 'not put away after the stream')
        again = completion(server, **body)
        check([x['text'] for x in again.json['choices']] == texts_of(events, 16, False), 'opened again: other texts')
        check(events[-2]['kvasir']['receipts'] == again.json['kvasir']['receipts'], 'opened again: other receipts')


def check_both_models_drain(bench):
    body = TEXT | {'n': 8, 'max_tokens': 250}
    with pair(bench) as server, Connection(server.port) as first, Connection(server.port) as second:
        alone = [[c['text'] for c in completion(server, **body, model=name).json['choices']]
                 for name in ('first', 'second')]
        for c, name in ((first, 'first'), (second, 'second')):
            c.send('POST', '/v1/completions', body | {'model': name})
        check(wait_until(lambda: all(s['submitted'] == 2 for s in counted(server).values())), 'they do not run')
        server.signal()
        for c, texts in zip((first, second), alone):
            check([choice['text'] for choice in c.reply().json['choices']] == texts, 'an answer is not whole')
        check(server.exit_code(10) == 0, f'exit code {server.exit_code(0)}')


# ---- models that cannot be opened -----------------------------------------------------------------------------------

def check_files_that_are_gone(bench):
    with tempfile.TemporaryDirectory() as folder:
        copy, kept = os.path.join(folder, 'copy'), os.path.join(bench.models, 'tales-gpt2')
        shutil.copytree(kept, copy)
        with pair(bench, '--model-ttl', str(TTL), serve=('tales', copy)) as server:
            alone = tokens_of(completion(server, **PROVED, model='first'))

            def refused(what, reason):
                for reply in (completion(server, **TEXT, model='second'),
                              completion(server, **TEXT, model='second', stream=True),
                              chat(server, **CHAT, model='second')):
                    expect_error(reply, what, 500, 'model_not_loaded', None, reason)
                check(tokens_of(completion(server, **PROVED, model='first')) == alone, f'{what}: the other model')
                state = listed(server)['second']
                check(not state['loaded'], f'{what}: {state}')

            shutil.rmtree(copy)
            refused('gone before it was asked for', re.escape(copy) + '.*no such model')
            shutil.copytree(kept, copy)
            check(completion(server, **TEXT, model='second').status == 200, 'the files are there again')
            os.remove(os.path.join(copy, 'model.safetensors'))
            reply = completion(server, **TEXT, model='second')
            check(reply.status == 200, f'gone while it is open: {reply}')
            check(wait_until(lambda: not loaded(server)[1], TTL + 2), 'not put away')
            refused('gone while it was put away', re.escape(copy) + '.*model.safetensors')
            check(ask(server, 'GET', '/health').status == 200 and server.exit_code(0) is None, '/health')


# ---- memory ---------------------------------------------------------------------------------------------------------

EXACT = ('--weights', 'resident', '--threads', '1', '--quiet')


def least_ram(bench, model):
    """Returns the least MiB of --ram with which `kvasir serve model` starts."""
    for mib in range(1, 200):
        command = [bench.program, 'serve', model, *EXACT, '--port', '0', '--ram', f'{mib}M', '--check']
        environment = os.environ | {'KVASIR_MODELS': bench.models}
        done = subprocess.run(command, capture_output=True, env=environment, check=False)
        if done.returncode == 0:
            return mib
    raise RuntimeError(f'{model}: {done.stderr.decode()}')


def check_ram_is_shared(bench):
    """Each model has half the memory, whether the other is open or not; a model that does not fit is refused with the
    numbers."""
    small, large = least_ram(bench, 'tales-gpt2'), least_ram(bench, 'tales')
    check(large >= small + 2, f'{small} and {large} MiB: too near to each other for this check')
    serve = ('tales-gpt2', 'tales')
    half = (small + large) // 2
    with pair(bench, *EXACT, '--ram', f'{2 * half}M', serve=serve) as server:
        alone = tokens_of(completion(server, **PROVED))
        for _ in range(3):
            reply = completion(server, **TEXT, model='second')
            expect_error(reply, 'too much for its half', 500, 'model_not_loaded', None,
                         rf'need \d+ B, \d+ B of the {half * MIB} B for this run are left')
            check(tokens_of(completion(server, **PROVED)) == alone and loaded(server) == (True, False), 'the first')
    for serve in (('tales-gpt2', 'tales'), ('tales', 'tales-gpt2')):
        with pair(bench, *EXACT, '--ram', f'{2 * large + 2}M', serve=serve) as server:
            for name in ('first', 'second'):
                reply = completion(server, **PROVED, model=name)
                check(reply.status == 200 and reply.json['model'] == name, f'both fit, {name}: {reply}')
                check(name != serve.index('tales-gpt2') or tokens_of(reply) == alone, f'{name}: under another budget')
            most = process(server, 'VmHWM')
            check(loaded(server) == (True, True) and most < (2 * large + 2) * MIB, f'{most} B of {2 * large + 2} MiB')

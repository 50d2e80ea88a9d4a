"""Checks of contract_test.py: keys and queues, connections, clients that leave, and the end of the server."""
import socket
import time

from serving import (CHAT, Connection, LONG, TEXT, ask, chat, check, completion, expect_error, scheduler, texts_of,
                     wait_until)


# ---- keys, queues, deadlines ----------------------------------------------------------------------------------------

def check_keys(bench):
    keys = 'anna key-a\nbert key-b 2\ncleo key-c 1 1   # one at a time\n'
    with bench.server(keys=keys) as server:
        for headers in ([], [('Authorization', 'Bearer wrong')], [('Authorization', 'Bearer key-')],
                        [('x-api-key', 'key-ab')]):
            for method, path in (('POST', '/v1/completions'), ('GET', '/v1/models'), ('GET', '/metrics'),
                                 ('GET', '/v1/scheduler'), ('GET', '/props'), ('POST', '/tokenize')):
                expect_error(ask(server, method, path, headers=headers), f'{path}, {headers}', 401, 'invalid_api_key')
        for path in ('/health', '/ready'):
            check(ask(server, 'GET', path).status == 200, f'{path} without a key')
        for header in (('Authorization', 'Bearer key-a'), ('x-api-key', 'key-a'), ('api-key', 'key-a')):
            check(completion(server, [header], **TEXT).status == 200, f'key by {header[0]}')

        cleo, anna = [('x-api-key', 'key-c')], [('x-api-key', 'key-a')]
        with Connection(server.port) as first:
            first.send('POST', '/v1/completions', LONG | {'stream': True}, cleo)
            check(first.head()[0] == 200, 'the first request of a key that may have one')
            reply = completion(server, cleo, **TEXT)
            expect_error(reply, 'the second request', 429, 'too_many_requests')
            check(int(reply.header('retry-after') or 0) >= 1, f'Retry-After: {reply.headers}')
            check(completion(server, anna, **TEXT).status == 200, 'another key at the same time')
        check(wait_until(lambda: completion(server, cleo, **TEXT).status == 200, 2), 'the key is free again')


def check_key_limit_in_a_burst(bench):
    """Requests that arrive before the first one is read count too."""
    with bench.server(keys='cleo key-c 1 1\n') as server:
        body = LONG | {'stream': True, 'max_tokens': 300}
        connections = [Connection(server.port) for _ in range(8)]
        try:
            for c in connections:
                c.send('POST', '/v1/completions', body, [('x-api-key', 'key-c')])
            statuses = sorted(c.head()[0] for c in connections)
            check(statuses == [200] + [429] * 7, f'8 requests at once of a key that may have 1: {statuses}')
        finally:
            for c in connections:
                c.close()


def check_full_queue(bench):
    with bench.server('--max-sequences', '1', '--queue', '1') as server, Connection(server.port) as running, \
            Connection(server.port) as waiting:
        body = TEXT | {'max_tokens': 1000}
        for c in (running, waiting):
            c.send('POST', '/v1/completions', body)
            wanted = (1, 0) if c is running else (1, 1)
            check(wait_until(lambda: (scheduler(server)['running'], scheduler(server)['waiting']) == wanted, 1),
                  f'running and waiting are not {wanted}')
        reply = completion(server, **TEXT)
        expect_error(reply, 'the queue is full', 429, 'queue_full')
        check(int(reply.header('retry-after') or 0) >= 1, f'Retry-After: {reply.headers}')
        for c in (running, waiting):
            check(c.reply().json.get('usage', {}).get('completion_tokens') == 1000, 'those before it are whole')


def check_deadlines(bench):
    with bench.server() as server:
        begin = time.monotonic()
        expect_error(completion(server, **LONG, timeout_ms=150), 'timeout_ms', 504, 'deadline_exceeded')
        check(time.monotonic() - begin < 1, 'the deadline came late')
        reply = completion(server, **LONG, timeout_ms=150, stream=True)
        last = reply.events[-1]
        check(reply.status == 200 and last != '[DONE]' and last.get('error', {}).get('code') == 'deadline_exceeded',
              f'a stream past its deadline ends with an error event: {last}')
        check(wait_until(lambda: scheduler(server)['running'] == 0, 1), 'nothing runs after the deadlines')


# ---- connections ----------------------------------------------------------------------------------------------------

def check_keep_alive(bench):
    with bench.server() as server, Connection(server.port) as c:
        texts = {c.ask('POST', '/v1/completions', TEXT).json['choices'][0]['text'] for _ in range(3)}
        check(len(texts) == 1, 'one body, one seed, one connection: one text')
        check(c.ask('POST', '/v1/completions', TEXT | {'stream': True}).events[-1] == '[DONE]', 'a stream on it')
        check(c.ask('GET', '/nothing').status == 404 and c.ask('GET', '/health').status == 200, 'after an error')
        c.send('POST', '/v1/completions', TEXT)
        c.send('GET', '/health')
        check(c.reply().status == 200 and c.reply().json == {'status': 'ok'}, 'two requests sent together')
        check(c.ask('GET', '/health', headers=[('Connection', 'close')]).header('connection') == 'close', 'close')
        check(c.socket.recv(1) == b'', 'the server closed it')


def check_disconnect(bench):
    """If a client leaves, its request is cancelled, queued or running; other clients are not affected."""
    with bench.server('--max-sequences', '17') as server:
        alone = completion(server, **TEXT).json['choices'][0]['text']
        cases = {'streamed': ({'stream': True}, 'running'), 'whole': ({}, 'running'), 'queued': ({}, 'waiting')}
        for what, (more, where) in cases.items():
            before = scheduler(server)['cancelled']
            with Connection(server.port) as other, Connection(server.port) as leaver:
                if where == 'waiting':
                    other.send('POST', '/v1/completions', LONG | {'n': 15})
                    check(wait_until(lambda: scheduler(server)['running'] == 15), 'the other does not run')
                leaver.send('POST', '/v1/completions', LONG | more)
                check(wait_until(lambda: scheduler(server)[where] > 0), f'{what}: it is not {where}')
                leaver.close()

                def cancelled():
                    state = scheduler(server)
                    return state['cancelled'] > before and state['waiting'] == 0

                check(wait_until(cancelled, 1), f'{what}: not cancelled in 1 s: {scheduler(server)}')
                text = completion(server, **TEXT).json['choices'][0]['text']
                check(text == alone, f'{what}: others get another text: {text}')
            check(wait_until(lambda: scheduler(server)['running'] == 0, 1), f'{what}: {scheduler(server)}')


def check_disconnect_at_once(bench):
    """A client that leaves before its body is parsed."""
    with bench.server() as server:
        body = LONG | {'prompt': 'Once upon a time. ' * 100, 'max_tokens': 100}
        for _ in range(10):
            with Connection(server.port) as c:
                c.send('POST', '/v1/completions', body)
        time.sleep(0.3)  # some may be on their way to the scheduler
        state = scheduler(server)
        check(state['running'] == state['waiting'] == state['finished'] == 0, f'clients that left at once: {state}')
        check(completion(server, **TEXT).status == 200, 'the next request')


# ---- the end --------------------------------------------------------------------------------------------------------

def running(server, count):
    return wait_until(lambda: scheduler(server)['running'] >= count)


def check_drain(bench):
    body = TEXT | {'n': 8, 'max_tokens': 250}
    with bench.server() as server, Connection(server.port) as whole, Connection(server.port) as stream, \
            Connection(server.port) as idle, Connection(server.port) as late:
        alone = [c['text'] for c in completion(server, **body).json['choices']]
        check(idle.ask('GET', '/ready').status == 200, 'ready before')
        whole.send('POST', '/v1/completions', body)
        stream.send('POST', '/v1/completions', body | {'stream': True})
        check(running(server, 16), 'the answers do not run')
        server.signal()
        check(wait_until(lambda: ask(server, 'GET', '/ready').status == 503, 1), '/ready is not 503 after SIGTERM')
        check(ask(server, 'GET', '/health').status == 200, '/health is not 200 while draining')
        for reply in (late.ask('POST', '/v1/completions', TEXT), chat(server, **CHAT)):
            expect_error(reply, 'a request while draining', 503, 'draining')
            check(int(reply.header('retry-after') or 0) >= 1, f'Retry-After: {reply.headers}')
        check([c['text'] for c in whole.reply().json['choices']] == alone, 'the whole answer is not whole')
        events = stream.reply().events
        check(events[-1] == '[DONE]' and texts_of(events, 8, False) == alone, 'the stream is not whole')
        check(server.exit_code(10) == 0, f'exit code {server.exit_code(0)}')


def check_end_of_an_idle_server(bench):
    with bench.server() as server, Connection(server.port) as idle:
        idle.ask('GET', '/health')
        begin = time.monotonic()
        server.signal()
        check(server.exit_code(5) == 0 and time.monotonic() - begin < 1, 'an idle server does not end at once')


def check_drain_timeout(bench):
    with bench.server('--drain-timeout', '0.3') as server, Connection(server.port) as whole, \
            Connection(server.port) as stream:
        whole.send('POST', '/v1/completions', LONG)
        stream.send('POST', '/v1/completions', LONG | {'stream': True})
        check(running(server, 32), 'the answers do not run')
        server.signal()
        expect_error(whole.reply(), 'an answer past the drain timeout', 503, 'draining')
        last = stream.reply().events[-1]
        check(last != '[DONE]' and last['error']['code'] == 'draining', f'a stream past it: {last}')
        check(server.exit_code(5) == 0, f'exit code {server.exit_code(0)}')


def check_second_signal(bench):
    with bench.server() as server, Connection(server.port) as c:
        c.send('POST', '/v1/completions', LONG)
        check(running(server, 16), 'the answer does not run')
        server.signal()
        time.sleep(0.2)
        check(server.exit_code(0) is None, 'the first signal does not wait')
        begin = time.monotonic()
        server.signal()
        check(server.exit_code(5) is not None and time.monotonic() - begin < 1, 'the second signal does not end it')
        try:
            c.reply()
            check(False, 'an answer came after the second signal')
        except (EOFError, ConnectionError, socket.timeout):
            pass

"""Checks of contract_test.py: headers, origins and hosts; every error that can be provoked without a long answer."""
import re
import time

from serving import CHAT, Connection, TEXT, ask, chat, check, completion, expect_error


# ---- headers --------------------------------------------------------------------------------------------------------

def check_headers(bench):
    with bench.server() as server:
        for path, body in (('/v1/completions', TEXT), ('/v1/chat/completions', CHAT), ('/v1/models', None)):
            method = 'GET' if body is None else 'POST'
            reply = ask(server, method, path, body, [('X-Request-Id', 'mine-1')])
            check(reply.header('x-request-id') == 'mine-1', f'{path}: x-request-id: {reply.headers}')
            check(reply.header('content-type') == 'application/json', f'{path}: {reply.headers}')
            if body:
                check(re.fullmatch(r'\d+', reply.header('openai-processing-ms') or ''), f'{path}: {reply.headers}')
                check(re.fullmatch(r'\d+', reply.header('x-kvasir-cached-tokens') or ''), f'{path}: {reply.headers}')
        stream = completion(server, **TEXT, stream=True)
        check(stream.header('content-type').startswith('text/event-stream'), stream.headers)
        check(stream.header('cache-control') == 'no-cache' and stream.header('x-accel-buffering') == 'no',
              stream.headers)
        made = {ask(server, 'GET', '/health').header('x-request-id') for _ in range(3)}
        check(len(made) == 3 and None not in made, f'ids that the server makes: {made}')
        check(ask(server, 'GET', '/health', headers=[('X-Request-Id', 'a b')]).header('x-request-id') != 'a b',
              'an id with a space is not repeated')
        check(ask(server, 'GET', '/metrics').header('content-type').startswith('text/plain; version=0.0.4'), 'metrics')
        head = ask(server, 'HEAD', '/health')
        check(head.status == 200 and head.header('content-length') == '15' and head.body == b'', 'HEAD')


def check_origins(bench):
    wanted = [('Access-Control-Request-Method', 'POST'),
              ('Access-Control-Request-Headers', 'authorization, content-type, x-stainless-os')]
    cases = [  # origin, flags, whether its pages may ask
        ('http://localhost:3000', [], True), ('https://127.0.0.1', [], True), ('http://[::1]:8000', [], True),
        ('http://evil.example', [], False), ('http://localhost.evil.example', [], False), ('null', [], False),
        ('http://evil.example', ['--cors', 'http://good.example'], False),
        ('http://good.example', ['--cors', 'http://good.example'], True)]
    for flags in ([], ['--cors', 'http://good.example']):
        with bench.server(*flags) as server:
            for origin, _, allowed in (case for case in cases if case[1] == flags):
                what = f'origin {origin}, {flags}'
                before = ask(server, 'OPTIONS', '/v1/completions', headers=[('Origin', origin), *wanted])
                named = before.header('access-control-allow-origin')
                check(before.status in (200, 204), f'{what}: {before}')
                check(named == (origin if allowed else None), f'{what}: {before.headers}')
                if allowed:
                    for name, word in (('methods', 'POST'), ('headers', 'x-stainless-os')):
                        check(word in before.header('access-control-allow-' + name), f'{what}: {before.headers}')
                reply = completion(server, [('Origin', origin)], **TEXT)
                check((reply.status == 200) == allowed, f'{what}: {reply}')
                check(reply.header('access-control-allow-origin') == (origin if allowed else None), f'{what}: {reply}')


def check_hosts(bench):
    """A page whose host name resolves to 127.0.0.1 (DNS rebinding) sends its own name as Host."""
    with bench.server() as server:
        for host, status in (('127.0.0.1', 200), (f'localhost:{server.port}', 200), ('[::1]:1', 200),
                             ('page.localhost', 200), ('evil.example', 403), ('127.0.0.1.evil.example', 403)):
            for path in ('/health', '/v1/models'):
                reply = ask(server, 'GET', path, headers=[('Host', host)])
                check(reply.status == status, f'Host {host} at {path}: {reply}')
                check(status == 200 or reply.error.get('code') == 'forbidden_host', f'Host {host}: {reply}')


# ---- errors ---------------------------------------------------------------------------------------------------------

TEXT_ERRORS = [  # members of the body, code, param, words
    ({'prompt': None}, 'invalid_value', 'prompt', 'missing'),
    ({'prompt': {}}, 'invalid_value', 'prompt', ''),
    ({'prompt': [4096]}, 'invalid_value', 'prompt', '4096'),
    ({'prompt': ['a', 5]}, 'invalid_value', 'prompt', ''),
    ({'max_tokens': -1}, 'invalid_value', 'max_tokens', '-1'),
    ({'max_tokens': 1.5}, 'invalid_value', 'max_tokens', '1.5'),
    ({'max_completion_tokens': '5'}, 'invalid_value', 'max_completion_tokens', ''),
    ({'temperature': -0.5}, 'invalid_value', 'temperature', '-0.5'),
    ({'top_p': -0.1}, 'invalid_value', 'top_p', ''),
    ({'top_k': -2}, 'invalid_value', 'top_k', ''),
    ({'presence_penalty': -101}, 'invalid_value', 'presence_penalty', '-101'),
    ({'frequency_penalty': 'much'}, 'invalid_value', 'frequency_penalty', 'much'),
    ({'n': 0}, 'invalid_value', 'n', '1 to 16'),
    ({'n': 17}, 'invalid_value', 'n', '17'),
    ({'best_of': 3}, 'unsupported_parameter', 'best_of', ''),
    ({'logprobs': 6}, 'invalid_value', 'logprobs', '0 to 5'),
    ({'logit_bias': {'5': 101}}, 'invalid_value', 'logit_bias', '101'),
    ({'logit_bias': {'king': 1}}, 'invalid_value', 'logit_bias', 'king'),
    ({'stop': ['a'] * 17}, 'invalid_value', 'stop', '16'),
    ({'stream': 'yes'}, 'invalid_value', 'stream', 'yes'),
    ({'seed': 'x'}, 'invalid_value', 'seed', ''),
    ({'echo': True}, 'unsupported_parameter', 'echo', ''),
    ({'suffix': 'end'}, 'unsupported_parameter', 'suffix', ''),
    ({'grammar': 'root ::= "a"'}, 'unsupported_parameter', 'grammar', ''),
    ({'resume_token_ids': [5000]}, 'invalid_value', 'resume_token_ids', '5000'),
]
CHAT_ERRORS = [
    ({'messages': []}, 'invalid_value', 'messages', ''),
    ({'messages': [{'content': 'x'}]}, 'invalid_value', 'messages[0]', 'role'),
    ({'messages': [{'role': 'tool', 'content': 'x'}]}, 'unsupported_parameter', 'messages[0].role', 'tool'),
    ({'messages': [{'role': 'user', 'content': 'a'},
                   {'role': 'user', 'content': [{'type': 'image_url', 'image_url': {'url': 'data:,'}}]}]},
     'unsupported_parameter', 'messages[1].content[0]', 'image_url'),
    ({'top_logprobs': 5}, 'invalid_value', 'top_logprobs', 'logprobs'),
    ({'logprobs': True, 'top_logprobs': 21}, 'invalid_value', 'top_logprobs', '20'),
    ({'response_format': {'type': 'json_object'}}, 'unsupported_parameter', 'response_format', ''),
    ({'tools': [{'type': 'function', 'function': {'name': 'f'}}]}, 'unsupported_parameter', 'tools', ''),
    ({'tool_choice': 'required'}, 'unsupported_parameter', 'tool_choice', ''),
    ({'functions': [{'name': 'f'}]}, 'unsupported_parameter', 'functions', ''),
    ({'modalities': ['text', 'audio']}, 'unsupported_parameter', 'modalities', ''),
    ({'web_search_options': {'a': 1}}, 'unsupported_parameter', 'web_search_options', ''),
    ({'continue_final_message': True}, 'invalid_value', 'continue_final_message', 'assistant'),
]


def check_wrong_fields(bench):
    with bench.server() as server:
        for members, code, param, words in TEXT_ERRORS:
            expect_error(completion(server, **TEXT | members), f'completions {members}', 400, code, param, words)
        for members, code, param, words in CHAT_ERRORS:
            expect_error(chat(server, **CHAT | members), f'chat {members}', 400, code, param, words)
        expect_error(ask(server, 'POST', '/v1/embeddings', {'input': 'a', 'dimensions': 7}), 'dimensions', 400,
                    'invalid_value', 'dimensions', '192')
        harmless = dict(store=True, metadata={'a': 'b'}, service_tier='auto', user='u', nobody_knows=1, tools=[])
        reply = chat(server, **CHAT | harmless)
        check(reply.status == 200, f'fields that change nothing: {reply}')
        ignored = set(reply.json['kvasir'].get('ignored', []))
        check(ignored == set(harmless) - {'tools'}, f'ignored: {ignored}')
    with bench.server('--strict-fields') as server:
        reply = chat(server, **CHAT, nobody_knows=1)
        expect_error(reply, '--strict-fields', 400, 'unsupported_parameter', 'nobody_knows')


def check_too_long(bench):
    words = r"^This model's maximum context length is 1024 tokens\. However, .*1025"
    with bench.server() as server:
        for stream in (False, True):
            reply = completion(server, prompt=[5] * 1025, max_tokens=4, stream=stream)
            expect_error(reply, f'1,025 ids, stream {stream}', 400, 'context_length_exceeded', 'prompt', words)
            check((reply.error.get('n_prompt_tokens'), reply.error.get('n_ctx')) == (1025, 1024), reply)
        long = chat(server, **CHAT | {'messages': [{'role': 'user', 'content': 'king ' * 1100}]})
        expect_error(long, 'a long message', 400, 'context_length_exceeded', long.error.get('param'),
                    "maximum context length is 1024 tokens")
        check(long.error.get('param') in ('messages', 'prompt'), long)


def check_bodies(bench):
    def post(server, body, *headers):
        return ask(server, 'POST', '/v1/completions', body, headers)

    with bench.server('--max-body', '64K') as server:
        for body, offset in ((b'{"prompt":,}', 11), (b'{"prompt": "a"', 15), (b'', 1), (b'{"prompt": "\xff"}', 13)):
            expect_error(post(server, body), f'body {body}', 400, 'invalid_json', 'body', rf'\b{offset}\b')
        expect_error(post(server, b'[' * 100), 'a deep body', 400, 'invalid_value', 'body', '64')
        expect_error(post(server, b'[1]'), 'a list', 400, 'invalid_value', 'body')
        for length in (65537, 10**9, 10**18):
            reply = post(server, b'x', ('Content-Length', str(length)))
            expect_error(reply, f'a body of {length} bytes', 413, 'body_too_large', None, '65536')
        reply = post(server, b'\x89PNG', ('Content-Type', 'image/png'))
        expect_error(reply, 'a picture', 415, 'unsupported_media_type')
        good = post(server, b'{"prompt": "a", "max_tokens": 1}', ('Content-Type', 'application/json; charset=utf-8'))
        check(good.status == 200, f'a type with a charset: {good}')


def check_chunked_body(bench):
    """A body in chunks, and a chunked body that grows past the limit."""
    with bench.server('--max-body', '64K') as server:
        for pieces, status in (([b'{"prompt": "a', b'b", "max_tokens": 1}'], 200), ([b'x' * 32768] * 3, 413)):
            with Connection(server.port) as c:
                lines = ['POST /v1/completions HTTP/1.1', 'Host: localhost', 'Content-Type: application/json',
                         'Transfer-Encoding: chunked', '', '']
                c.socket.sendall('\r\n'.join(lines).encode())
                for piece in pieces:
                    c.socket.sendall(b'%x\r\n%s\r\n' % (len(piece), piece))
                c.socket.sendall(b'0\r\n\r\n')
                check(c.reply().status == status, f'a body of {len(pieces)} chunks is not {status}')


def check_paths_and_methods(bench):
    with bench.server() as server:
        for method, path in (('GET', '/page'), ('GET', '/v2/models'), ('POST', '/v1/chat'), ('GET', '/v1/models/')):
            expect_error(ask(server, method, path), f'{method} {path}', 404, 'unknown_url')
        expect_error(ask(server, 'GET', '/v1/models/other'), 'another model', 404, 'model_not_found', 'model', 'other')
        for method, path, allowed in (('GET', '/v1/completions', 'POST'), ('DELETE', '/v1/models', 'GET'),
                                      ('PUT', '/tokenize', 'POST'), ('POST', '/health', 'GET')):
            reply = ask(server, method, path)
            expect_error(reply, f'{method} {path}', 405, 'method_not_allowed')
            check(allowed in (reply.header('allow') or ''), f'{method} {path}: Allow: {reply.headers}')
        check(completion(server, **TEXT, model='gpt-4o').json['model'] == 'tales', 'any name is taken')
    with bench.server('--strict-model', '--alias', 'stories', chat_format='none') as server:
        reply = completion(server, **TEXT, model='gpt-4o')
        expect_error(reply, '--strict-model', 404, 'model_not_found', 'model', 'gpt-4o')
        check(completion(server, **TEXT, model='stories').json['model'] == 'stories', 'the alias is the name')
        expect_error(chat(server, **CHAT), 'chat without a format', 400, 'no_chat_template', 'messages')


def check_heads(bench):
    """Malformed requests, and one whose headers never end (408 after 10 s)."""
    with bench.server() as server, Connection(server.port) as slow:
        begin = time.monotonic()
        slow.socket.sendall(b'GET /health HTTP/1.1\r\nHost: loc')
        for text, status in ((b'HELLO\r\n\r\n', 400), (b'GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n', 400),
                             (b'GET / HTTP/1.1\r\nX: ' + b'a' * 20000 + b'\r\n\r\n', 431),
                             (b'POST /tokenize HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n', 501)):
            with Connection(server.port) as c:
                c.socket.sendall(text)
                reply = c.reply()
                check(reply.status == status and reply.error.get('message'), f'{text[:40]}: {reply}')
        reply = slow.reply()
        took = time.monotonic() - begin
        check(reply.status == 408 and 9 < took < 13, f'headers that do not end: {took:.1f} s, {reply}')

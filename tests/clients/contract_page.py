"""Checks of contract_test.py: the page at "/", as it is served. tests/page has what it does."""
from serving import TEXT, ask, check, completion


def check_page(bench):
    with bench.server(keys='anna key-a\n') as server:
        page = ask(server, 'GET', '/')
        check(page.status == 200 and page.header('content-type') == 'text/html; charset=utf-8', f'{page}')
        check(page.body.startswith(b'<!doctype html>') and page.body.rstrip().endswith(b'</html>'), f'{page}')
        check(len(page.body) <= 200_000, f'{len(page.body)} bytes')
        policy = page.header('content-security-policy')
        for part in ("default-src 'none'", "connect-src 'self'", "script-src 'sha256-", "frame-ancestors 'none'"):
            check(part in policy, f'the policy {policy} has no {part}')
        check('unsafe' not in policy and page.body.count(b'<script') == 1, f'{policy}')
        tag = page.header('etag')
        again = ask(server, 'GET', '/', headers=[('If-None-Match', tag)])
        check(again.status == 304 and again.body == b'' and again.header('etag') == tag, f'{again}')
        check(ask(server, 'GET', '/', headers=[('If-None-Match', '"another"')]).status == 200, 'another ETag')
        head = ask(server, 'HEAD', '/')
        check(head.status == 200 and head.header('content-length') == str(len(page.body)), f'{head}')
        check(ask(server, 'GET', '/v1/models').status == 401, 'the page needs no key, and what it asks for does')
    with bench.server('--no-page') as server:
        check(ask(server, 'GET', '/').status == 404, '--no-page')


def check_page_of_an_address(bench):
    """The page may ask the server that gave it, by number. A name may lead anywhere (DNS rebinding)."""
    with bench.server('--host', '0.0.0.0') as server:
        for host, origin, status in (('192.168.1.5:81', 'http://192.168.1.5:81', 200),
                                     ('[fe80::1]:81', 'http://[fe80::1]:81', 200),
                                     ('192.168.1.5:81', 'http://192.168.1.5', 403),
                                     ('192.168.1.5:81', 'http://192.168.1.6:81', 403),
                                     ('evil.example:81', 'http://evil.example:81', 403)):
            reply = completion(server, [('Host', host), ('Origin', origin)], **TEXT)
            check(reply.status == status, f'{origin} to {host}: {reply}')

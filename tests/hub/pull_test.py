#!/usr/bin/env python3
"""kvasir pull, list and rm against a hub that behaves and one that misbehaves. Exits 0 or 1.

usage: pull_test.py --program build/kvasir [--only NAME,...]

Every case has its own cache. After each case no blob may differ from its name and no link may dangle; after a refusal
the model must not be found. A refusal is exit code 2 and one line.
"""
import argparse
import concurrent.futures
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from hub_server import COMMIT, Hub, check_store, sum_of

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOKEN = 'hf_secretsecret'
BIG = 'fox/big:model-q8_0.gguf'
failures = 0


def check(good, what):
    global failures
    failures += not good
    if not good:
        print('FAIL:', what, flush=True)


def tales():
    folder = os.path.join(ROOT, 'models', 'tales')
    files = {}
    for name in ('config.json', 'generation_config.json', 'model.safetensors', 'tokenizer.json'):
        path = os.path.join(folder, name)
        if os.path.exists(path):
            with open(path, 'rb') as file:
                files[name] = file.read()
    return files | {'README.md': b'# not wanted', 'model.fp16.safetensors': b'the same once more', 'onnx/model.onnx': b'no'}


def repos():
    some = random.Random(7)
    big = some.randbytes(40_000_001)
    shards = {f'Q4_K_M/fox-Q4_K_M-0000{i}-of-00003.gguf': some.randbytes(20_000 + i) for i in (1, 2, 3)}
    return {
        'fox/tales': tales(),
        'fox/big': {'model-q8_0.gguf': big, 'empty.txt': b''},
        'fox/many': shards | {'fox-Q8_0.gguf': some.randbytes(30_000), 'fox-Q4_0.gguf': some.randbytes(31_000),
                              'mmproj-fox-Q8_0.gguf': some.randbytes(12_000), 'README.md': b'x',
                              'odd name + %41.txt': b'odd'},
        'fox/nothing': {'README.md': b'x'},
        'fox/lost': dict(list(shards.items())[:2]),
    }


class Case:
    """A cache and the program."""

    def __init__(self, program, hub, folder):
        self.program, self.hub, self.folder = program, hub, folder
        self.cache = os.path.join(folder, 'hub')
        self.endpoint = hub.url
        self.env = {key: value for key, value in os.environ.items() if not key.startswith(('HF_', 'KVASIR_'))}
        self.env |= {'HF_HUB_CACHE': self.cache, 'XDG_CACHE_HOME': os.path.join(folder, 'cache')}

    def run(self, *arguments, timeout=60, **how):
        return subprocess.run([self.program, *arguments], capture_output=True, text=True, errors='replace',
                              env=self.env | how.pop('env', {}), timeout=timeout, check=False, **how)

    def pull(self, name, *arguments, **how):
        return self.run('pull', name, '--endpoint', self.endpoint, *arguments, **how)

    def good(self, name, *arguments, **how):
        done = self.pull(name, '--json', *arguments, **how)
        check(done.returncode == 0, f'{name}: exit {done.returncode}, {done.stderr}')
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def refused(self, name, *needles, absent=(), **how):
        """Expects one line, exit code 2, and that the model is not found afterwards."""
        done = self.pull(name, **how)
        lines = done.stderr.splitlines()
        check(done.returncode == 2 and len(lines) == 1 and not done.stdout,
              f'{name}: exit {done.returncode}, {done.stdout}{done.stderr}')
        for needle in needles:
            check(needle in done.stderr, f'{name}: no {needle!r} in: {done.stderr}')
        for needle in (TOKEN, 'Signature', *absent):
            check(needle not in done.stderr, f'{name}: {needle!r} in: {done.stderr}')
        found = self.run('inspect', name)
        check(found.returncode == 2 and 'pull' in found.stderr, f'{name} is there after a refusal: {found.stderr}')
        return done.stderr

    def models(self):
        return json.loads(self.run('list', '--json').stdout)['models']

    def folder_of(self, name):
        return os.path.join(self.cache, 'models--' + name.split(':')[0].replace('/', '--'))

    def incomplete(self, name):
        blobs = os.path.join(self.folder_of(name), 'blobs')
        return [os.path.join(blobs, file) for file in os.listdir(blobs) if file.endswith('.incomplete')]


# ---- what goes well ----------------------------------------------------------------------------------------------------


def case_folder(case):
    case.env |= {'HF_TOKEN': TOKEN + '\n'}
    told = case.good('fox/tales')
    folder = case.folder_of('fox/tales')
    check(told['path'] == os.path.join(folder, 'snapshots', COMMIT), told)
    with open(os.path.join(folder, 'refs', 'main'), encoding='utf-8') as file:
        check(file.read() == COMMIT, 'refs/main')
    here = sorted(os.listdir(told['path']))
    wanted = sorted(name for name in case.hub.repos['fox/tales']
                    if name in ('config.json', 'generation_config.json', 'model.safetensors', 'tokenizer.json'))
    check(here == wanted, f'{here}, wanted {wanted}')
    for name in here:
        link = os.readlink(os.path.join(told['path'], name))
        check(link == '../../blobs/' + sum_of(case.hub.repos['fox/tales'][name]), link)
    for _, place, path, token, _ in case.hub.seen:
        check(token == (None if place == 'content' else 'Bearer ' + TOKEN), f'{path}: {token}')
    requests = len(case.hub.seen)
    runs = [case.run('run', name, '-p', 'Once', '-n', '8', '--greedy', '--receipt').stdout
            for name in ('fox/tales', os.path.join(ROOT, 'models', 'tales'))]
    check(runs[0] == runs[1] and 'receipt' in runs[0], f'another receipt: {runs}')
    check(len(case.hub.seen) == requests, 'a run asked the hub')
    listed = case.models()
    check([m['models'] for m in listed] == [['fox/tales']] and listed[0]['incomplete_bytes'] == 0, listed)
    again = case.good('fox/tales')
    check(again['fetched_bytes'] == 0 and len(case.hub.seen) == requests + 1, 'a second pull fetched files')
    removed = case.run('rm', 'fox/tales')
    check(removed.returncode == 0 and not os.path.exists(folder) and case.models() == [], removed.stderr)
    gone = case.run('rm', 'fox/tales')
    check(gone.returncode == 2 and len(gone.stderr.splitlines()) == 1, gone.stderr)


def case_gguf(case):
    message = case.refused('fox/many', '3 GGUF files fit', 'fox-Q8_0.gguf', 'fox-Q4_K_M-00001')
    check('mmproj' not in message, message)
    case.refused('fox/many:Q5_K', 'no file and no type')
    case.refused('fox/nothing', 'neither config.json')
    case.refused('fox/lost', '2 of the 3 parts')
    told = case.good('fox/many:q4_k_m')
    check(told['path'].endswith('Q4_K_M/fox-Q4_K_M-00001-of-00003.gguf') and told['files'] == 3, told)
    check(case.models()[0]['models'] == ['fox/many'], 'the only type has the short name')
    case.good('fox/many:fox-Q8_0.gguf')
    check(case.models()[0]['models'] == ['fox/many:Q4_K_M/fox-Q4_K_M-00001-of-00003.gguf', 'fox/many:fox-Q8_0.gguf'],
          case.models())
    two = case.run('inspect', 'fox/many')
    check(two.returncode == 2 and '2 GGUF files fit' in two.stderr, two.stderr)
    case.good('fox/many:odd name + %41.txt')


def case_ranges(case):
    told = case.good(BIG)
    ranges = [r for _, place, _, _, r in case.hub.seen if place == 'content']
    check(len(ranges) == 5 and len(set(ranges)) == 5, f'ranges: {ranges}')
    check(sum(place == 'resolve' for _, place, _, _, _ in case.hub.seen) == 1, 'more than one question to the hub')
    with open(told['path'], 'rb') as file:
        check(file.read() == case.hub.repos['fox/big']['model-q8_0.gguf'], 'other bytes')
    check(case.good('fox/big:empty.txt')['bytes'] == 0, 'an empty file')


def case_no_ranges(case):
    body = case.hub.repos['fox/big']['model-q8_0.gguf']
    cuts = [9_000_000, 20_000_000]

    def whole(handler, place):
        if place != 'content':
            return False
        del handler.headers['Range']
        handler.give_body(body, stop_after=cuts.pop(0) if cuts else None)
        return True
    case.hub.rules = [whole]
    case.good(BIG)
    check(not cuts, 'it was not cut')


def case_bare_listing(case):
    """A hub that lists only names: sizes and sums come from the files' headers."""
    def bare(handler, place):
        if place != 'listing':
            return False
        names = [{'rfilename': name} for name in case.hub.repos['fox/tales']]
        handler.say(200, json.dumps({'sha': COMMIT, 'siblings': names}).encode())
        return True
    case.hub.rules = [bare]
    case.good('fox/tales')
    check(all(place != 'content' for how, place, _, _, _ in case.hub.seen if how == 'HEAD'), 'HEAD went elsewhere')


# ---- connections that fail ---------------------------------------------------------------------------------------------


def case_cuts(case):
    some = random.Random(3)

    def cutting(handler, place):
        if place != 'content':
            return False
        body = case.hub.repos['fox/big']['model-q8_0.gguf']
        begin, end = handler.range_of(body)
        handler.give_body(body, stop_after=some.randrange(300_000, 2 * (end - begin) + 300_001))
        return True
    case.hub.rules = [cutting]
    case.good(BIG, timeout=120)
    check(case.hub.content_bytes < 41_000_000, f'{case.hub.content_bytes} bytes were sent')


def case_cut_always(case):
    """The hub stops sending: an error; the received bytes are kept for the next pull."""
    def cutting(handler, place):
        body = case.hub.repos['fox/big']['model-q8_0.gguf']
        if place == 'content':
            if case.hub.content_bytes > 10_000_000:
                handler.cut()
            else:
                handler.give_body(body, stop_after=3_000_000)
        return place == 'content'
    case.hub.rules = [cutting]
    case.refused(BIG)
    kept = os.path.getsize(case.incomplete(BIG)[0])
    check(kept >= 3_000_000, f'{kept} bytes were kept')
    case.hub.rules = []
    told = case.good(BIG)
    check(told['fetched_bytes'] == told['bytes'] - kept, told)


def case_outage(case):
    """All connections are cut for more than a second: this counts as one outage, not as one failure per connection."""
    ends = []

    def cutting(handler, place):
        if place != 'content' or (ends and time.monotonic() > ends[0]):
            return False
        if case.hub.content_bytes < 5_000_000:
            return False
        if not ends:
            ends.append(time.monotonic() + 1.5)
        handler.cut()
        return True
    case.hub.rules = [cutting]
    case.good(BIG, '--connections', '16')
    check(ends and time.monotonic() > ends[0], 'there was no outage')


def case_stall(case):
    stalls = [1]

    def stalling(handler, place):
        if place == 'content' and stalls:
            stalls.pop()
            time.sleep(4)
        return False
    case.hub.rules = [stalling]
    case.good(BIG, '--timeout', '1')
    check(not stalls, 'it did not stall')


def case_nobody(case):
    case.endpoint = 'http://localhost:9'
    begin = time.monotonic()
    case.refused('fox/tales', 'connect')
    check(time.monotonic() - begin < 3, 'it waited for nobody')
    for endpoint in ('ftp://localhost', 'localhost', 'http://', 'http://me:word@localhost', 'http://localhost/?x'):
        case.endpoint = endpoint
        case.refused('fox/tales', '--endpoint')
    case.endpoint = case.hub.url
    for name in ('tales', 'a/b/c', '../x', 'a/..', 'a--b/c', 'a/b:../c', 'a/b:', '/a', 'a/b:/etc/passwd', 'a/b\n'):
        done = case.pull(name)
        check(done.returncode == 2 and len(done.stderr.splitlines()) == 1 and 'NAME' in done.stderr, done.stderr)
    check(not case.hub.seen, 'a name that is none was asked for')


# ---- a hub that lies ---------------------------------------------------------------------------------------------------


def changed(body):
    return body[:1000] + bytes([body[1000] ^ 1]) + body[1001:] if len(body) > 1000 else b'?' + body[1:]


def case_wrong_sums(case):
    for name, place, file in ((BIG, 'content', 'model-q8_0.gguf'), ('fox/tales', 'resolve', 'config.json')):
        body = case.hub.repos[name.split(':')[0]][file]

        def lie(handler, where, place=place, body=body, file=file):
            if where != place or '/' + file not in handler.path:
                return False
            handler.give_body(changed(body))
            return True
        case.hub.rules = [lie]
        case.refused(name, 'sum', file)
        check(not case.incomplete(name), 'wrong bytes are kept')


def case_wrong_leftovers(case):
    """An earlier process left wrong bytes: the checksum detects them, and the whole file is fetched again."""
    blobs = os.path.join(case.folder_of(BIG), 'blobs')
    os.makedirs(blobs)
    body = case.hub.repos['fox/big']['model-q8_0.gguf']
    for left in (changed(body[:5_000_000]), body + b'too long', bytes(len(body))):
        with open(os.path.join(blobs, sum_of(body) + '.incomplete'), 'wb') as file:
            file.write(left)
        case.good(BIG)
        check(not case.incomplete(BIG) and not check_store(case.cache), 'the leftover is still there')
        os.remove(os.path.join(blobs, sum_of(body)))
    with open(os.path.join(blobs, sum_of(body)), 'wb') as file:
        file.write(body[:1000])
    case.good(BIG)


def case_endless(case):
    def endless(handler, place):
        if place != target:
            return False
        ranged = 'Range' in handler.headers and status == 206
        handler.send_response(status)
        if ranged:
            begin, end = handler.range_of(case.hub.repos['fox/big']['model-q8_0.gguf'])
            handler.send_header('Content-Range', f'bytes {begin}-{end - 1}/40000001')
        handler.send_header('Connection', 'close')
        handler.end_headers()
        handler.close_connection = True
        for _ in range(200):
            handler.wfile.write(bytes(1 << 20))
        return True
    case.hub.rules = [endless]
    for target, status, needle in (('content', 200, 'announced'), ('content', 206, 'announced'),
                                   ('listing', 200, 'more than')):
        case.refused(BIG, needle)

    def flood(handler, place):
        handler.send_response(200)
        for i in range(20_000):
            handler.send_header(f'X-{i}', 'y' * 50)
        handler.end_headers()
        return True
    case.hub.rules = [flood]
    case.refused(BIG, 'headers')


def case_lies_in_headers(case):
    body = case.hub.repos['fox/big']['model-q8_0.gguf']

    def answers(status, headers):
        def rule(handler, place):
            if place == 'content':
                handler.say(status, body[:100], headers)
            return place == 'content'
        return rule
    for rule, needle in ((answers(206, []), 'no range'), (answers(206, [('Content-Range', 'bytes 5-9/10')]), '5-9/10'),
                         (answers(204, []), '204'), (answers(200, []), 'announced')):
        case.hub.rules = [rule]
        case.refused(BIG, needle)

    def other_commit(handler, place):
        if place == 'resolve':
            handler.give_body(body, [('X-Repo-Commit', 'b' * 40)])
        return place == 'resolve'

    def other_sum(handler, place):
        if place == 'resolve':
            handler.give_body(body, [('X-Linked-Etag', '"' + 'b' * 64 + '"')])
        return place == 'resolve'
    for rule in (other_commit, other_sum):
        case.hub.rules = [rule]
        case.refused(BIG, 'b' * 40)


def case_names(case):
    good = case.hub.listing('fox/tales')
    some_sum = 'a' * 40
    for odd in ('../x', '/etc/x', 'a/../../x', 'a\\..\\x', '.', '..', '', 'a//b', 'a/', 'x\n', 'x\0y', '\x1b[2Jx', 'a' * 300,
                '.../config.json', 'config.json'):
        entry = {'rfilename': odd, 'size': 3, 'blobId': some_sum}
        refused_listing(case, good | {'siblings': good['siblings'] + [entry]})
    for change in ({'sha': '../../x'}, {'sha': None}, {'siblings': 'x'}, {'siblings': [1]}, {'siblings': [{}]},
                   {'siblings': [{'rfilename': 'a.gguf', 'size': -1, 'blobId': some_sum}]},
                   {'siblings': [{'rfilename': 'a.gguf', 'size': 1e30, 'blobId': some_sum}]},
                   {'siblings': [{'rfilename': 'a.gguf', 'size': 3, 'blobId': '../' + some_sum[3:]}]},
                   {'siblings': [{'rfilename': 'a.gguf', 'size': 3, 'lfs': {'sha256': some_sum, 'size': 3}}]}):
        refused_listing(case, good | change)
    for text in (b'', b'[' * 100_000, b'<html>', b'{"sha": '):
        refused_listing(case, text)
    check(not os.path.exists(case.cache) or not check_store(case.cache), 'the cache')
    check(sorted(os.listdir(case.folder)) in ([], ['cache'], ['hub']), os.listdir(case.folder))


def refused_listing(case, listing):
    body = listing if isinstance(listing, bytes) else json.dumps(listing).encode()

    def give(handler, place):
        if place == 'listing':
            handler.say(200, body)
        return place == 'listing'
    case.hub.rules = [give]
    case.refused('fox/tales', 'listing')


def case_room_that_is_not(case):
    """A size that no disk has."""
    entry = {'rfilename': 'a.gguf', 'size': 1 << 49, 'lfs': {'sha256': 'a' * 64, 'size': 1 << 49}}

    def give(handler, place):
        if place == 'listing':
            handler.say(200, json.dumps({'sha': COMMIT, 'siblings': [entry]}).encode())
        return place == 'listing'
    case.hub.rules = [give]
    case.refused('fox/tales', 'are free')


# ---- redirects ---------------------------------------------------------------------------------------------------------


def redirecting(place, target):
    def rule(handler, where):
        if where == place:
            handler.say(302, b'', [('Location', target(handler) if callable(target) else target)])
        return where == place
    return rule


def case_redirects(case):
    case.env |= {'HF_TOKEN': TOKEN}
    for target, needle in (('file:///etc/passwd', 'redirect'), ('ftp://localhost/x', 'redirect'), ('', 'without a target'),
                           ('http://me@localhost/x', 'redirect'), (lambda handler: handler.path + '?again', 'redirects')):
        case.hub.rules = [redirecting('resolve', target)]
        case.refused(BIG, needle)
    # Redirected away and back: from then on the token is not sent.
    body = case.hub.repos['fox/big']['model-q8_0.gguf']

    def back(handler, place):
        if place == 'content':
            handler.say(302, b'', [('Location', case.hub.url + '/back')])
        elif handler.path == '/back':
            handler.give_body(body)
        return place == 'content' or handler.path == '/back'
    case.hub.reset()
    case.hub.rules = [back]
    case.good(BIG)
    for _, place, path, token, _ in case.hub.seen:
        check((token is None) == (place == 'content' or path == '/back'), f'{path}: {token}')
    # A redirect to the same host, as for a renamed model.
    case.hub.repos['fox/renamed'] = case.hub.repos['fox/many']
    case.hub.reset()
    case.hub.rules = [lambda handler, place: 'fox/old' in handler.path and redirecting(place, handler.path.replace(
        'fox/old', 'fox/renamed'))(handler, place)]
    case.good('fox/old:Q8_0')
    check(all(token for _, place, _, token, _ in case.hub.seen if place != 'content'), 'no token after a redirect at home')
    for bad in ('with space', 'line\r\nX-Y: z', 'ä'):
        case.refused('fox/nothing', 'HF_TOKEN', env={'HF_TOKEN': bad})


def case_tls(case):
    """A hub with https: its redirect to plain http is refused, and so is an unknown certificate."""
    import ssl
    key, certificate = (os.path.join(case.folder, name) for name in ('key.pem', 'cert.pem'))
    made = subprocess.run(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost',
                           '-addext', 'subjectAltName=DNS:localhost', '-keyout', key, '-out', certificate],
                          capture_output=True, check=False)
    check(made.returncode == 0, made.stderr)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    hub = Hub(case.hub.repos, tls)
    case.endpoint = hub.url
    case.refused('fox/tales', 'certificate')
    case.env |= {'SSL_CERT_FILE': certificate, 'HF_TOKEN': TOKEN}
    case.good('fox/many:README.md')
    check(all(token == 'Bearer ' + TOKEN for _, _, _, token, _ in hub.seen), 'no token over https')
    seen = len([1 for _, place, _, _, _ in hub.seen if place == 'content'])
    case.refused(BIG, 'plain http')
    check(len([1 for _, place, _, _, _ in hub.seen if place == 'content']) == seen, 'it went there')
    hub.close()


# ---- refusals of the hub -----------------------------------------------------------------------------------------------


def case_statuses(case):
    def always(status, headers=(), body=b''):
        def rule(handler, place):
            if place == at:
                handler.say(status, body, headers)
            return place == at
        return rule
    gated = [('X-Error-Code', 'GatedRepo'), ('X-Error-Message', 'Access to fox/big is restricted.')]
    for at in ('listing', 'resolve'):
        for rule, needles in ((always(401, body=b'{"error": "Invalid \\n credentials"}'), ('401', 'HF_TOKEN', 'credentials')),
                              (always(403, gated), ('gated', 'restricted', 'accept its terms')),
                              (always(404), ('404',)), (always(418), ('418',)),
                              (always(429, [('Retry-After', '100000')]), ('429', '100000 s'))):
            case.hub.rules = [rule]
            begin = time.monotonic()
            case.refused(BIG, *needles)
            check(time.monotonic() - begin < 3, f'{needles}: it waited')
    case.hub.rules = [always(500, body=b'x' * 100_000)]
    begin = time.monotonic()
    at = 'listing'
    case.refused(BIG, '500')
    check(5 < time.monotonic() - begin < 20, 'tries of a 500')
    left = {'listing': [429, 503], 'resolve': [500], 'content': [429, 502, 403]}

    def sometimes(handler, place):
        if not left[place]:
            return False
        handler.say(left[place].pop(0), b'', [('Retry-After', '1')])
        return True
    case.hub.rules = [sometimes]
    begin = time.monotonic()
    case.good(BIG)
    check(time.monotonic() - begin > 4, 'it did not wait as told')


# ---- disks -------------------------------------------------------------------------------------------------------------


def case_full_disk(case):
    """A tmpfs if one can be mounted, and in any case a limit on file sizes."""
    inside = os.path.join(case.folder, 'small')
    os.makedirs(inside)
    script = ('mount -t tmpfs -o size=24m none "$1" && export HF_HUB_CACHE="$1" && { "$2" pull "$3" --endpoint "$4"; echo "exit $?";'
              ' head -c 15m /dev/zero > "$1/filler"; "$2" pull fox/tales --endpoint "$4"; echo "exit $?"; ls -R "$1"; }')
    done = subprocess.run(['unshare', '-rm', 'sh', '-c', script, 'sh', inside, case.program, BIG, case.endpoint],
                          capture_output=True, text=True, env=case.env, timeout=60, check=False)
    if 'exit' in done.stdout:
        print('full disk: a tmpfs of 24 MiB')
        check(done.stdout.startswith('exit 2\n') and done.stderr.count('are free') == 1, done.stdout + done.stderr)
    else:
        print('full disk: no tmpfs can be mounted here; a limit on the size of files only')

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000_000, 10_000_000))
    case.refused(BIG, 'write', preexec_fn=limit)
    check(os.path.getsize(case.incomplete(BIG)[0]) == 10_000_000, 'what came before was not kept')
    told = case.good(BIG)
    check(told['fetched_bytes'] == told['bytes'] - 10_000_000, told)
    fills_up(case)


def fills_up(case):
    """A disk that fills up during a pull, if a tmpfs can be mounted."""
    inside = os.path.join(case.folder, 'filling')
    os.makedirs(inside)
    case.hub.speed = 8_000_000
    script = ('mount -t tmpfs -o size=48m none "$1" && export HF_HUB_CACHE="$1" && { "$2" pull "$3" --endpoint "$4" & sleep 0.7;'
              ' head -c 47m /dev/zero > "$1/filler" 2>/dev/null; wait $!; echo "exit $?"; find "$1" -type f; rm "$1/filler";'
              ' "$2" pull "$3" --endpoint "$4"; echo "again $?"; }')
    done = subprocess.run(['unshare', '-rm', 'sh', '-c', script, 'sh', inside, case.program, BIG, case.endpoint],
                          capture_output=True, text=True, env=case.env, timeout=60, check=False)
    if 'exit' not in done.stdout:
        return
    check(done.stdout.startswith('exit 2\n') and 'space' in done.stderr and len(done.stderr.splitlines()) == 1,
          done.stdout + done.stderr)
    check('refs/main' not in done.stdout.split('again')[0].split('fox/big')[0] and 'again 0' in done.stdout, done.stdout)


def case_no_folder(case):
    """A cache path that cannot be a folder."""
    with open(os.path.join(case.folder, 'file'), 'wb'):
        pass
    case.refused('fox/tales', 'cannot', env={'HF_HUB_CACHE': os.path.join(case.folder, 'file', 'x')})


# ---- several processes -------------------------------------------------------------------------------------------------


def case_two_at_once(case):
    case.hub.speed = 20_000_000
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        pulls = [pool.submit(case.pull, BIG, '--json') for _ in range(3)]
        done = [pull.result() for pull in pulls]
    check(all(d.returncode == 0 for d in done), [d.stderr for d in done])
    fetched = [json.loads(d.stdout)['fetched_bytes'] for d in done if d.returncode == 0]
    check(sorted(fetched)[:2] == [0, 0], f'it came more than once: {fetched}')
    check(sum('waiting' in d.stderr for d in done) >= 1, [d.stderr for d in done])


def case_rm_while_pulling(case):
    case.hub.speed = 4_000_000
    with subprocess.Popen([case.program, 'pull', BIG, '--endpoint', case.endpoint, '--connections', '1'], env=case.env,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as pull:
        while not os.path.isdir(os.path.join(case.folder_of(BIG), 'blobs')):
            time.sleep(0.01)
        done = case.run('rm', 'fox/big')
        check(done.returncode == 2 and 'under way' in done.stderr, done.stderr)
        pull.kill()
    listed = case.models()
    check(listed[0]['models'] == [] and listed[0]['commit'] == '', listed)
    check(case.run('rm', 'fox/big').returncode == 0 and not os.path.exists(case.folder_of(BIG)), 'rm of an unfinished pull')


CASES = {name.removeprefix('case_'): function for name, function in list(globals().items()) if name.startswith('case_')}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--program', required=True)
    parser.add_argument('--only', default=','.join(CASES))
    a = parser.parse_args()
    hub = Hub(repos())
    for name in a.only.split(','):
        hub.reset()
        folder = tempfile.mkdtemp(prefix='kvasir-hub-')
        begin, before = time.monotonic(), failures
        case = Case(os.path.abspath(a.program), hub, os.path.realpath(folder))
        try:
            CASES[name](case)
        except Exception as e:  # report it and go on with the next case
            check(False, f'{type(e).__name__}: {e}')
        wrong = check_store(case.cache) if os.path.isdir(case.cache) else []
        check(not wrong, wrong)
        print(f'{name}: {"ok" if failures == before else "FAILED"}, {time.monotonic() - begin:.1f} s', flush=True)
        shutil.rmtree(folder, ignore_errors=True)
    hub.close()
    print('FAILED' if failures else 'passed')
    sys.exit(1 if failures else 0)


if __name__ == '__main__':
    main()

"""The server as a process, and HTTP over a plain socket, for the tests of this folder. Knows no test."""
import json
import os
import re
import select
import signal
import socket
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PATIENCE = 15  # upper bound for any wait, in seconds
failures = []


def check(good, what):
    if not good:
        failures.append(what)
        print('FAIL:', what, flush=True)
    return bool(good)


def wait_until(done, seconds=10.0):
    """True if `done()` becomes true in time."""
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


class Server:
    """`kvasir serve` on a free port of 127.0.0.1; as a context manager it is killed at the end in any case."""

    def __init__(self, program, models, *flags, serve=('tales',), keys='', chat_format='plain'):
        command = [program, 'serve', *serve, '--port', '0', '--chat-format', chat_format, *flags]
        self.log = tempfile.TemporaryFile()
        self.key_file = None
        if keys:
            self.key_file = tempfile.NamedTemporaryFile('w', suffix='.keys')
            self.key_file.write(keys)
            self.key_file.flush()
            command += ['--api-key-file', self.key_file.name]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log,
                                        env=os.environ | {'KVASIR_MODELS': models})
        try:
            self.port = self._port()
        except BaseException:
            self.kill()
            raise

    def _port(self):
        text = b''
        end = time.monotonic() + PATIENCE
        while not (found := re.search(rb' at http://[\d.]+:(\d+)', text)):
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, end - time.monotonic()))
            more = os.read(self.process.stdout.fileno(), 4096) if ready else b''
            if not more:
                raise RuntimeError(f'the server did not start: {text.decode()} {self.log_text()}')
            text += more
        return int(found.group(1))

    @property
    def url(self):
        return f'http://127.0.0.1:{self.port}'

    def log_text(self):
        """Returns all lines so far. Uses pread: the server writes at the offset of the same open file, which must not
        move."""
        file = self.log.fileno()
        return os.pread(file, os.fstat(file).st_size, 0).decode(errors='replace')

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def exit_code(self, seconds=PATIENCE):
        """Returns None if it still runs."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.log.close()
        if self.key_file:
            self.key_file.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.kill()


class Reply:
    """A whole answer: status, headers (a list of pairs, names in lower case), body and, for a stream, its events."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def header(self, name):
        return next((value for key, value in self.headers if key == name), None)

    @property
    def json(self):
        try:
            return json.loads(self.body)
        except ValueError:
            return {}

    @property
    def error(self):
        return self.json.get('error') or {}

    @property
    def events(self):
        """The data of each event, parsed as JSON except '[DONE]'."""
        parts = self.body.decode().split('\n\n')
        assert parts[-1] == '', f'the stream ends in the middle of an event: {parts[-1]}'
        data = [part[len('data: '):] for part in parts[:-1] if part.startswith('data: ')]
        return [one if one == '[DONE]' else json.loads(one) for one in data]

    def __repr__(self):
        return f'{self.status} {self.body[:300].decode(errors="replace")}'


class Connection:
    """One socket for any number of requests."""

    def __init__(self, port):
        self.socket = socket.create_connection(('127.0.0.1', port), timeout=PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port, self.buffer = port, b''

    def send(self, method, path, body=None, headers=()):
        """`body`: bytes are sent as they are, anything else as JSON. `headers`: pairs; a Host among them replaces the
        default."""
        data = body if isinstance(body, bytes) else b'' if body is None else json.dumps(body).encode()
        lines = [f'{method} {path} HTTP/1.1']
        names = {name.lower() for name, _ in headers}
        if 'host' not in names:
            lines.append(f'Host: 127.0.0.1:{self.port}')
        if body is not None and 'content-type' not in names:
            lines.append('Content-Type: application/json')
        if body is not None and 'content-length' not in names:
            lines.append(f'Content-Length: {len(data)}')
        lines += [f'{name}: {value}' for name, value in headers]
        self.socket.sendall('\r\n'.join(lines).encode() + b'\r\n\r\n' + data)

    def _more(self):
        data = self.socket.recv(1 << 16)
        if not data:
            raise EOFError(f'the connection ended after {self.buffer[:200]}')
        self.buffer += data

    def _until(self, end):
        while end not in self.buffer:
            self._more()
        line, self.buffer = self.buffer.split(end, 1)
        return line

    def _exactly(self, count):
        while len(self.buffer) < count:
            self._more()
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def head(self):
        """Returns (status, headers)."""
        first, *lines = self._until(b'\r\n\r\n').decode('latin-1').split('\r\n')
        pairs = [line.split(': ', 1) for line in lines]
        return int(first.split()[1]), [(name.lower(), value) for name, value in pairs]

    def chunk(self):
        """Reads one chunk of a body; empty at its end."""
        data = self._exactly(int(self._until(b'\r\n'), 16))
        self._exactly(2)
        return data

    def reply(self, of='GET'):
        status, headers = self.head()
        named = dict(headers)
        body = b''
        if named.get('transfer-encoding') == 'chunked':
            while piece := self.chunk():
                body += piece
        elif of != 'HEAD':
            body = self._exactly(int(named.get('content-length', 0)))
        return Reply(status, headers, body)

    def ask(self, method, path, body=None, headers=()):
        self.send(method, path, body, headers)
        return self.reply(method)

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


def ask(server, method, path, body=None, headers=()):
    """One request on a connection of its own."""
    with Connection(server.port) as connection:
        return connection.ask(method, path, body, headers)


def scheduler(server, headers=()):
    """The counters of the one model."""
    return ask(server, 'GET', '/v1/scheduler', headers=headers).json['models']['tales']


# ---- requests that many checks send ---------------------------------------------------------------------------------

TEXT = {'prompt': 'Once upon a time', 'max_tokens': 24, 'seed': 7, 'temperature': 0.9, 'ignore_eos': True}
CHAT = {'messages': [{'role': 'user', 'content': 'Tell me of the king.'}], 'max_tokens': 12, 'seed': 7,
        'ignore_eos': True}
LONG = TEXT | {'n': 16, 'max_tokens': 900}  # seconds of work


def completion(server, headers=(), **body):
    return ask(server, 'POST', '/v1/completions', body, headers)


def chat(server, headers=(), **body):
    return ask(server, 'POST', '/v1/chat/completions', body, headers)


def texts_of(events, choices, chat_form):
    """The joined text of each choice."""
    texts = [''] * choices
    for event in events[:-1]:
        for choice in event['choices']:
            texts[choice['index']] += choice['delta'].get('content', '') if chat_form else choice['text']
    return texts


TYPES = {401: 'authentication_error', 404: 'not_found_error', 429: 'rate_limit_error'}


def expect_error(reply, what, status, code, param=None, message=''):
    """Checks the status and all four members of the error. `message` is a regular expression."""
    kind = TYPES.get(status, 'server_error' if status >= 500 else 'invalid_request_error')
    error = reply.error
    check(reply.status == status and reply.header('content-type') == 'application/json', f'{what}: {reply}')
    check({'message', 'type', 'param', 'code'} <= set(error), f'{what}: members of the error: {reply}')
    check((error.get('type'), error.get('code'), error.get('param')) == (kind, code, param), f'{what}: {reply}')
    check(re.search(message, error.get('message', '')), f'{what}: no {message} in: {reply}')

"""Shared by the load tests of `kvasir serve`: an HTTP/1.1 client that keeps every byte, and the server's process.

serve_asks.py makes the requests. Uses only the standard library and one thread; connections are coroutines.
"""
import asyncio
import contextlib
import ctypes
import json
import os
import signal
import socket
import struct
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TALES = os.path.join(ROOT, 'models', 'tales')
TICKS = os.sysconf('SC_CLK_TCK')
failures = 0


def check(good, what):
    """Reports and counts a failure, and continues."""
    global failures
    failures += not good
    if not good:
        print('FAIL:', what, flush=True)
    return good


def verdict():
    """Prints the last line; returns the exit code."""
    print('FAILED' if failures else 'passed')
    return 1 if failures else 0


def all_of_it():
    """True if the long forms of the tests are wanted."""
    return bool(os.environ.get('KVASIR_TEST_ALL'))


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


class Answer:
    """An HTTP answer: `body` without its framing, `raw` as it came. `times`: arrival time of each piece of the body."""

    def __init__(self, status, headers, raw):
        self.status, self.headers, self.raw = status, headers, raw
        self.body = b''
        self.times = []
        self.sent = self.ended = 0.0

    def json(self):
        return json.loads(self.body)

    def events(self):
        """The data of server-sent events, without comments."""
        blocks = self.body.split(b'\n\n')
        return [block[6:] for block in blocks if block.startswith(b'data: ')]

    @property
    def is_stream(self):
        return self.headers.get('content-type', '').startswith('text/event-stream')


class Connection:
    """One connection, kept alive while the server keeps it."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.open = True

    @classmethod
    async def to(cls, port):
        return cls(*await asyncio.open_connection('127.0.0.1', port, limit=1 << 22))

    async def send(self, method, path, body=None, headers=()):
        payload = b'' if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f'{method} {path} HTTP/1.1', 'Host: localhost', *headers]
        if body is not None:
            lines += ['Content-Type: application/json', f'Content-Length: {len(payload)}']
        self.writer.write('\r\n'.join(lines).encode() + b'\r\n\r\n' + payload)
        await self.writer.drain()

    async def head(self):
        raw = await self.reader.readuntil(b'\r\n\r\n')
        first, *rest = raw.decode('latin-1').split('\r\n')
        headers = {}
        for line in rest:
            name, colon, value = line.partition(':')
            if colon:
                headers[name.lower()] = value.strip()
        self.open = headers.get('connection', '').lower() != 'close'
        return Answer(int(first.split()[1]), headers, raw)

    async def pieces(self, answer):
        """Yields the body's pieces as they come; the answer stores them."""
        if 'content-length' in answer.headers:
            body = await self.reader.readexactly(int(answer.headers['content-length']))
            answer.raw += body
            yield self._keep(answer, body)
        elif answer.headers.get('transfer-encoding') == 'chunked':
            while True:
                line = await self.reader.readuntil(b'\r\n')
                size = int(line, 16)
                chunk = await self.reader.readexactly(size + 2)
                assert chunk.endswith(b'\r\n'), 'a chunk without an end'
                answer.raw += line + chunk
                if size == 0:
                    break
                yield self._keep(answer, chunk[:-2])
        answer.ended = time.monotonic()

    @staticmethod
    def _keep(answer, piece):
        answer.body += piece
        answer.times.append(time.monotonic())
        return piece

    async def ask(self, method, path, body=None, headers=()):
        """One request and its whole answer."""
        sent = time.monotonic()
        await self.send(method, path, body, headers)
        answer = await self.head()
        answer.sent = sent
        async for _ in self.pieces(answer):
            pass
        return answer

    async def post(self, path, body):
        return await self.ask('POST', path, body)

    def leave(self, reset=False):
        """Closes the connection; with `reset`, as a killed client does."""
        self.open = False
        if reset:
            self.writer.get_extra_info('socket').setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                                            struct.pack('ii', 1, 0))
            self.writer.transport.abort()
        else:
            self.writer.close()


async def ask_once(port, method, path, body=None):
    connection = await Connection.to(port)
    try:
        return await connection.ask(method, path, body)
    finally:
        connection.leave()


def raw_socket(port, receive_bytes=0):
    """A connected socket from which asyncio does not read ahead; slow readers use a small receive buffer."""
    plain = socket.socket()
    if receive_bytes:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    plain.connect(('127.0.0.1', port))
    plain.setblocking(False)
    return plain


def end_with_parent():
    """Runs in the child: a killed test leaves no server behind (PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Server:
    """`kvasir serve` as a process. `async with Server(program, '--kv-ram', '4M') as server:`"""

    def __init__(self, program, *flags, model=TALES, port=0):
        self.command = [os.path.abspath(program), 'serve', model, '--port', str(port), '--chat-format', 'plain', *flags]
        self.process = self.stats_connection = None
        self.port = self.pid = 0
        self.log = tempfile.TemporaryFile()  # its stderr: one line per request

    async def __aenter__(self):
        await self.start()
        return self

    async def __aexit__(self, kind, value, trace):
        if self.process.returncode is None:
            await self.stop()
        self.log.close()

    async def start(self):
        """Starts the server and waits until it reports that it is ready."""
        self.process = await asyncio.create_subprocess_exec(*self.command, stdout=asyncio.subprocess.PIPE,
                                                            stderr=self.log, preexec_fn=end_with_parent)
        self.pid = self.process.pid
        try:
            line = (await asyncio.wait_for(self.process.stdout.readline(), 60)).decode()
        except asyncio.TimeoutError:
            self.process.kill()
            raise
        if ' at http://' not in line:
            await self.process.wait()
            raise RuntimeError(f'no server: exit {self.process.returncode}, {line} {self.errors()}')
        self.port = int(line.split(' at http://', 1)[1].split(',')[0].rsplit(':', 1)[1])

    async def stop(self, with_signal=signal.SIGTERM, timeout=40):
        """Ends it; returns the exit code."""
        if self.stats_connection:
            self.stats_connection.leave()
            self.stats_connection = None
        if self.process.returncode is None:
            self.process.send_signal(with_signal)
        return await self.ended(timeout)

    async def ended(self, timeout=40):
        try:
            return await asyncio.wait_for(self.process.wait(), timeout)
        except asyncio.TimeoutError:
            check(False, f'the server does not end within {timeout} s')
            self.process.kill()
            return await self.process.wait()

    def errors(self):
        self.log.seek(0)
        return self.log.read().decode(errors='replace')[-2000:]

    async def all_stats(self):
        """/v1/scheduler, over a connection of its own."""
        if self.stats_connection is None or not self.stats_connection.open:
            self.stats_connection = await Connection.to(self.port)
        return (await self.stats_connection.ask('GET', '/v1/scheduler')).json()

    async def stats(self):
        return next(iter((await self.all_stats())['models'].values()))

    async def quiet(self, seconds=10):
        """Waits until nothing runs or waits; returns the statistics, or None on timeout."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            stats = await self.stats()
            if stats['running'] == stats['waiting'] == 0:
                return stats
            await asyncio.sleep(0.01)
        return None

    def status(self, name):
        with open(f'/proc/{self.pid}/status', encoding='ascii') as file:
            for line in file:
                if line.startswith(name + ':'):
                    return int(line.split()[1])
        return 0

    def rss(self):
        return self.status('VmRSS') * 1024

    def peak_rss(self):
        return self.status('VmHWM') * 1024

    def forget_peak(self):
        """Resets peak_rss(), if the system allows it."""
        with contextlib.suppress(OSError), open(f'/proc/{self.pid}/clear_refs', 'w', encoding='ascii') as file:
            file.write('5')

    def open_files(self):
        return len(os.listdir(f'/proc/{self.pid}/fd'))

    def cpu_ticks(self):
        with open(f'/proc/{self.pid}/stat', encoding='ascii') as file:
            fields = file.read().rsplit(')', 1)[1].split()
        return int(fields[11]) + int(fields[12])

    def cpu_seconds(self):
        return self.cpu_ticks() / TICKS

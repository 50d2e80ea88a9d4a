"""A hub on loopback that can be told to misbehave, and a second server to which it redirects for large files, as the
real hub does. Used by pull_test.py and pull_kills.py.

`Hub.rules` is a list of functions rule(handler, place): a rule that answers the request itself returns True. `place` is
'listing', 'resolve' or 'content' (the second server).
"""
import hashlib
import http.server
import json
import os
import re
import socket
import threading
import time
import urllib.parse

COMMIT = 'c0ffee' * 6 + 'abcd'
LARGE = 10_000          # bytes; from here on a file is redirected and named by its SHA-256


def git_sum(body):
    return hashlib.sha1(b'blob %d\0' % len(body) + body).hexdigest()


def sum_of(body):
    return hashlib.sha256(body).hexdigest() if len(body) >= LARGE else git_sum(body)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    @property
    def hub(self):
        return self.server.hub

    def do_HEAD(self):
        self.answer_request()

    def do_GET(self):
        self.answer_request()

    def answer_request(self):
        url = urllib.parse.urlsplit(self.path)
        place = self.server.place or ('listing' if url.path.startswith('/api/') else 'resolve')
        with self.hub.lock:
            self.hub.seen.append((self.command, place, self.path, self.headers.get('Authorization'),
                                  self.headers.get('Range')))
        try:
            if not any(rule(self, place) for rule in list(self.hub.rules)):
                getattr(self, 'give_' + place)(urllib.parse.unquote(url.path))
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def say(self, status, body=b'', headers=(), length=None):
        """Sends a whole answer; `length` replaces the body's own length."""
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header('Content-Length', str(len(body) if length is None else length))
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(body)

    def cut(self):
        """Closes the connection without an answer."""
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True

    def give_listing(self, path):
        name = re.fullmatch(r'/api/models/([^/]+/[^/]+)/revision/main', path)
        if not name or name.group(1) not in self.hub.repos:
            self.say(404, b'{"error": "Repository not found"}', [('X-Error-Code', 'RepoNotFound')])
            return
        self.say(200, json.dumps(self.hub.listing(name.group(1))).encode())

    def give_resolve(self, path):
        name = re.fullmatch(r'/([^/]+/[^/]+)/resolve/([0-9a-f]{40})/(.*)', path)
        body = self.hub.repos.get(name.group(1), {}).get(name.group(3)) if name else None
        if body is None:
            self.say(404, b'', [('X-Error-Code', 'EntryNotFound')])
            return
        headers = [('X-Repo-Commit', COMMIT)]
        if len(body) >= LARGE:
            target = f'{self.hub.content_url}/{name.group(1)}/{name.group(3)}?Signature=secret'
            self.say(302, b'moved', headers + [('Location', target), ('X-Linked-Size', str(len(body))),
                                               ('X-Linked-Etag', f'"{sum_of(body)}"')])
        else:
            self.give_body(body, headers + [('ETag', f'"{sum_of(body)}"')])

    def give_content(self, path):
        owner, name, file = path[1:].split('/', 2)
        self.give_body(self.hub.repos[owner + '/' + name][file])

    def range_of(self, body):
        found = re.fullmatch(r'bytes=(\d+)-(\d+)', self.headers.get('Range', ''))
        return (int(found.group(1)), min(int(found.group(2)) + 1, len(body))) if found else (0, len(body))

    def give_body(self, body, headers=(), stop_after=None):
        """Sends the requested range; closes the connection after `stop_after` bytes of it, if given."""
        begin, end = self.range_of(body)
        ranged = 'Range' in self.headers
        self.send_response(206 if ranged else 200)
        for name, value in headers:
            self.send_header(name, value)
        if ranged:
            self.send_header('Content-Range', f'bytes {begin}-{end - 1}/{len(body)}')
        self.send_header('Content-Length', str(end - begin))
        self.end_headers()
        if self.command == 'HEAD':
            return
        last = end if stop_after is None else min(end, begin + stop_after)
        step = 64 << 10 if self.hub.speed else 1 << 20
        for at in range(begin, last, step):
            part = body[at:min(at + step, last)]
            self.wfile.write(part)
            with self.hub.lock:
                self.hub.content_bytes += len(part)
            if self.hub.speed:
                time.sleep(len(part) / self.hub.speed)
        if last < end:
            self.cut()


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        pass


class Hub:
    """repos: {'owner/name': {file: bytes}}."""

    def __init__(self, repos, tls=None):
        self.repos, self.rules, self.seen, self.lock = repos, [], [], threading.Lock()
        self.speed = 0              # bytes a second of each connection; 0: as fast as it goes
        self.content_bytes = 0      # bytes sent
        self.servers = []
        self.url = self.serve(None, tls)
        self.content_url = self.serve('content', None)

    def serve(self, place, tls):
        server = Server(('127.0.0.1', 0), Handler)
        server.hub, server.place = self, place
        if tls:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, kwargs={'poll_interval': 0.05}, daemon=True).start()
        self.servers.append(server)
        return f'http{"s" if tls else ""}://localhost:{server.server_address[1]}'

    def close(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def reset(self):
        self.rules, self.seen, self.speed, self.content_bytes = [], [], 0, 0

    def listing(self, name):
        siblings = []
        for file, body in self.repos[name].items():
            entry = {'rfilename': file, 'size': len(body), 'blobId': git_sum(body)}
            if len(body) >= LARGE:
                entry['lfs'] = {'sha256': sum_of(body), 'size': len(body), 'pointerSize': 134}
                entry['blobId'] = git_sum(b'version https://git-lfs.github.com/spec/v1')
            siblings.append(entry)
        return {'id': name, 'sha': COMMIT, 'siblings': siblings}


def check_store(cache):
    """Returns what is wrong in a cache: blobs that differ from their names, dangling links, refs without a snapshot."""
    wrong = []
    for at, folders, files in os.walk(cache):
        if '.locks' in folders:
            folders.remove('.locks')
        for name in files:
            path = os.path.join(at, name)
            if not os.path.exists(path):
                wrong.append(f'{path} leads nowhere')
            elif os.path.basename(at) == 'blobs' and not name.endswith('.incomplete'):
                with open(path, 'rb') as file:
                    body = file.read()
                if name not in (hashlib.sha256(body).hexdigest(), git_sum(body)):
                    wrong.append(f'{path} is not what its name says')
            elif os.path.basename(at) == 'refs':
                with open(path, encoding='utf-8') as file:
                    if not os.path.isdir(os.path.join(os.path.dirname(at), 'snapshots', file.read())):
                        wrong.append(f'{path} names no snapshot')
    return wrong

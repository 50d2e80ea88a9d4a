"""Checks of contract_test.py: GET /v1/cache/events. A viewer applies every event to its own picture of the cache, which
must agree with the server's counters each time."""
import json
import socket
import threading

from serving import Connection, ask, check, completion, scheduler, wait_until


class Viewer(threading.Thread):
    """Reads a stream to its end, and keeps the state that its events describe."""

    def __init__(self, server, headers=()):
        super().__init__(daemon=True)
        self.connection = Connection(server.port)
        self.connection.send('GET', '/v1/cache/events', headers=headers)
        status, pairs = self.connection.head()
        check(status == 200 and dict(pairs)['content-type'].startswith('text/event-stream'), f'{status} {pairs}')
        self.blocks, self.sequences, self.nodes, self.counters, self.facts = {}, {}, {}, {}, {}
        self.events, self.copied, self.evicted, self.first_tokens = 0, 0, 0, 0
        self.states, self.shared, self.ended = set(), 0, False
        self.start()

    def run(self):
        text = b''
        try:
            while piece := self.connection.chunk():
                text += piece
                while b'\n\n' in text:
                    event, text = text.split(b'\n\n', 1)
                    if event.startswith(b'data: '):
                        self.take(json.loads(event[6:]))
            self.ended = True
        except (EOFError, OSError):
            pass

    def leave(self):
        self.connection.socket.shutdown(socket.SHUT_RDWR)
        self.join(2)
        self.connection.close()

    def take(self, event):
        self.events += 1
        if event['type'] == 'snapshot':
            check(self.events == 1, 'a snapshot is the first event and the only one')
            self.facts = event
            for block in event['blocks']:
                self.blocks[block[0]] = block
            for name in ('sequences', 'nodes'):
                getattr(self, name).update({one['id']: one for one in event[name]})
        else:
            for block in event.get('blocks', {}).get('set', []):
                self.blocks[block[0]] = block
            for block in event.get('blocks', {}).get('gone', []):
                del self.blocks[block]
            for name in ('sequences', 'nodes'):
                change = event.get(name, {})
                getattr(self, name).update({one['id']: one for one in change.get('set', [])})
                for gone in change.get('gone', []):
                    del getattr(self, name)[gone]
        self.copied += len(event.get('copied', []))
        self.evicted += len(event.get('evicted', []))
        self.first_tokens += len(event.get('first_token_s', []))
        self.states |= {one['state'] for one in self.sequences.values()}
        self.counters = event['counters']
        self.compare()

    def compare(self):
        counts = {'sequences': 0, 'shared': 0, 'prefix': 0}
        for _, stored, *holders in self.blocks.values():
            counts['shared' if stored + len(holders) > 1 else 'prefix' if stored else 'sequences'] += 1
            check(set(holders) <= set(self.sequences), f'{holders} hold a block, the sequences are {self.sequences}')
        check(counts == self.counters['blocks'], f'cells {counts}, counters {self.counters["blocks"]}')
        self.shared = max(self.shared, counts['shared'])
        held = sum(counts.values()) * self.facts['block_bytes']
        check(held == self.counters['bytes']['kv'], f'{held} B of cells, {self.counters["bytes"]["kv"]} B of KV')
        check(self.facts['capacity_blocks'] is None or sum(counts.values()) <= self.facts['capacity_blocks'], 'cells')
        for node in self.nodes.values():
            parent = self.nodes.get(node['parent'])
            begin = parent['depth'] + parent['tokens'] if parent else 0
            check(node['depth'] == begin, f'node {node} begins at {begin}')
        active = sum(one['state'] in ('prefill', 'decode') for one in self.sequences.values())
        check(active == self.counters['running'], f'{active} sequences run, {self.counters["running"]} counted')


def run_all(server, bodies, headers=()):
    """Sends the requests at once and waits for all answers."""
    threads = [threading.Thread(target=completion, args=(server, headers), kwargs=body) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def check_cache_events(bench):
    """Forks, copies on write, evictions and preemptions in a pool of 16 blocks."""
    story = 'Once upon a time there was a little fox who lived in a wood with a bear and a bird. ' * 8
    with bench.server('--kv-ram', '3M') as server:
        viewer = Viewer(server)
        body = {'max_tokens': 150, 'seed': 3, 'ignore_eos': True}
        run_all(server, [body | {'prompt': story + 'The fox', 'n': 2, 'max_tokens': 700}])
        run_all(server, [body | {'prompt': story + end, 'max_tokens': 300} for end in ('One', 'Two', 'Six', 'Ten')])
        run_all(server, [body | {'prompt': f'{i} ' * 200} for i in range(6)])
        rest = scheduler(server)
        names = ('submitted', 'finished', 'preemptions', 'passes')
        check(wait_until(lambda: [viewer.counters.get(n) for n in names] == [
            rest['submitted'], rest['finished'], rest['preemptions'], rest['passes']], 2),
              f'at rest {viewer.counters}, the scheduler {rest}')
        check(not viewer.sequences, f'sequences at rest: {viewer.sequences}')
        check(viewer.copied > 0 and viewer.evicted > 0 and viewer.shared > 0,
              f'{viewer.copied} copied, {viewer.evicted} evicted, {viewer.shared} shared')
        check(viewer.counters['preemptions'] > 0 and {'decode', 'preempted'} <= viewer.states,
              f'{viewer.counters["preemptions"]} preemptions, states {viewer.states}')
        check(viewer.first_tokens == 12, f'{viewer.first_tokens} first tokens, 12 choices')
        check(all(node['text'] for node in viewer.nodes.values()), f'texts of the tree: {viewer.nodes}')
        second = Viewer(server)
        check(wait_until(lambda: second.events == 1, 2), 'a second viewer gets a snapshot')
        check((second.blocks, second.nodes) == (viewer.blocks, viewer.nodes), 'which is what the first one sees')
        viewer.leave()
        second.leave()
        check(wait_until(lambda: ask(server, 'GET', '/v1/scheduler').json['connections'] <= 1, 2), 'viewers are gone')


def check_cache_events_of_keys(bench):
    with bench.server(keys='anna key-a\nbert key-b\n') as server:
        anna, bert = [('x-api-key', 'key-a')], [('x-api-key', 'key-b')]
        completion(server, anna, prompt='The secret of the old king', max_tokens=4)
        viewers = Viewer(server, anna), Viewer(server, bert)
        check(wait_until(lambda: all(v.nodes for v in viewers), 2), 'both see the tree')
        check(all('secret' in n['text'] and n['mine'] for n in viewers[0].nodes.values()), f'{viewers[0].nodes}')
        check(all('text' not in n and not n['mine'] for n in viewers[1].nodes.values()), f'{viewers[1].nodes}')
        check(ask(server, 'GET', '/v1/cache/events').status == 401, 'without a key')
        server.signal()
        check(server.exit_code(5) == 0, 'a viewer does not keep the server from ending')
        for viewer in viewers:
            viewer.join(2)
            check(viewer.ended, 'the stream ends whole')

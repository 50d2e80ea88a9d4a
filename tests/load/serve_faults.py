#!/usr/bin/env python3
"""Harmful clients, and a server that is killed: what other clients notice.

usage: serve_faults.py --program build/kvasir [--only NAME,...]

idle        1,000 connections that ask nothing: memory and throughput
slow        64 readers of a few bytes a second and 500 clients that send their headers as slowly: throughput, and the
            end of the latter
leaving     clients that leave while they are queued, in a long prompt, in decode and while the server drains: they are
            gone within 2 passes, and no other client's bytes change
killed      kill -9 under load and a new server at the same port, repeatedly
resumed     SIGTERM in mid-stream; another server continues by `resume_token_ids`: the bytes of an uninterrupted run
quiet       no processor time without requests
garbled     requests split into packets at every byte, and random bytes: the same answer or a refusal; other clients
            notice nothing
hostile     bodies of 4 MiB made to cost much memory or time: memory, time, and the answer

Every part prints its numbers. Throughput is that of a few other clients that keep asking, alternately with and without
the fault. With KVASIR_TEST_ALL=1 runs are as long as the limits assume; otherwise they are short and the limits are
wider.
"""
import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import serve_client
from garbled import at_random, cut_everywhere
from serve_client import Connection, Server, ask_once, check, median, raw_socket

ALL = serve_client.all_of_it()
SLOWER = {'idle': 0.03, 'slow': 0.05}   # largest loss of the others' throughput
NOISE = 0 if ALL else 0.22              # additional allowance in a short run
UNREAD = 900 if ALL else 200              # tokens of an answer that is read slowly
OTHERS = 8                              # clients that keep asking


class Others:
    """Clients that repeat the same requests; an answer that differs from the first is an error."""

    def __init__(self, server, tokens=200, count=OTHERS):
        self.server, self.tokens, self.count = server, tokens, count
        self.going = True
        self.first = {}
        self.answers = 0

    async def __aenter__(self):
        self.tasks = [asyncio.create_task(self.ask(i)) for i in range(self.count)]
        return self

    async def __aexit__(self, kind, value, trace):
        self.going = False
        await asyncio.gather(*self.tasks)

    async def ask(self, i):
        connection = await Connection.to(self.server.port)
        body = {'prompt': [20 + i, 300 + i, 31 + 7 * i], 'max_tokens': self.tokens, 'ignore_eos': True, 'seed': i,
                'return_token_ids': True, 'receipt': True}
        while self.going:
            answer = (await connection.post('/v1/completions', body)).json()
            told = json.dumps([answer['choices'], answer['kvasir']['receipt']])
            check(self.first.setdefault(i, told) == told, f'other {i}: another answer')
            self.answers += 1
        connection.leave()

    async def speed(self, seconds):
        """Returns (tokens per second, processor seconds per thousand tokens)."""
        before, cpu, start = await self.server.stats(), self.server.cpu_seconds(), time.monotonic()
        await asyncio.sleep(seconds)
        after = await self.server.stats()
        tokens = after['tokens_generated'] - before['tokens_generated']
        return tokens / (time.monotonic() - start), 1e3 * (self.server.cpu_seconds() - cpu) / max(1, tokens)


def compare_speeds(name, without, during):
    """`without` and `during` are lists of Others.speed()."""
    speed = median([s for s, _ in during]) / median([s for s, _ in without])
    costs = median([c for _, c in during]) / median([c for _, c in without])
    share = max(speed, 1 / costs)  # other work on the machine lowers the first, and hardly the second
    shown = [' '.join(f'{s:.0f}' for s, _ in speeds) for speeds in (without, during)]
    print(f'{name}: others\' tok/s {shown[0]} without, {shown[1]} with: x {speed:.3f}; processor time a token '
          f'x {costs:.3f}')
    least = 1 - SLOWER[name.split(',')[0]] - NOISE
    check(share >= least, f'{name}: the others have {share:.3f} of their throughput, {least:.2f} are wanted')


# ---- idle connections ---------------------------------------------------------------------------------------------

async def idle(program):
    seconds, rounds = (5, 6) if ALL else (1, 3)
    async with Server(program, '--max-connections', '1200', '--quiet') as server, Others(server) as others:
        await asyncio.sleep(1)
        without, during, grown = [], [], []
        for _ in range(rounds):
            without.append(await others.speed(seconds))
            before = server.rss()
            sockets = [raw_socket(server.port) for _ in range(1000)]
            for _ in range(200):
                if (await server.all_stats())['connections'] >= 1000:
                    break
                await asyncio.sleep(0.01)
            during.append(await others.speed(seconds))
            grown.append(server.rss() - before)
            for plain in sockets:
                plain.close()
            await asyncio.sleep(0.3)
        print(f'idle: 1,000 connections, RSS {", ".join(f"{g / 1e6:+.1f}" for g in grown)} MB')
        check(max(grown) <= 10e6, f'RSS grew by {max(grown):,} bytes')
        connections = (await server.all_stats())['connections']
        check(connections <= OTHERS + 1, f'{connections} connections are open after 1,000 were closed')
        compare_speeds('idle', without, during)


# ---- slow clients -------------------------------------------------------------------------------------------------

class SlowReaders:
    """Long answers of which a few bytes a second are read."""

    def __init__(self, port, count):
        self.sockets = [raw_socket(port, 2048) for _ in range(count)]
        body = json.dumps({'prompt': 'Once', 'max_tokens': UNREAD, 'ignore_eos': True, 'stream': True, 'logprobs': 5,
                           'return_token_ids': True}).encode()
        head = f'POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n'
        for plain in self.sockets:
            plain.send(head.encode() + body)
        self.read = 0

    async def go_on(self):
        while True:
            for plain in self.sockets:
                try:
                    self.read += len(plain.recv(16))
                except BlockingIOError:
                    pass
            await asyncio.sleep(1)

    def close(self):
        for plain in self.sockets:
            plain.close()


class SlowHeaders:
    """Clients whose headers never end, one byte a second; a client that is closed reconnects."""

    def __init__(self, port, count):
        self.port = port
        self.open = [self.begin() for _ in range(count)]
        self.lived = []
        self.statuses = set()

    def begin(self):
        plain = raw_socket(self.port)
        plain.send(b'POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nX-A: ')
        return plain, time.monotonic()

    async def go_on(self):
        while True:
            for i, (plain, since) in enumerate(self.open):
                try:
                    plain.send(b'x')
                    got = plain.recv(400)
                    self.statuses.add(got[9:12].decode())
                except BlockingIOError:
                    continue
                except OSError:
                    pass
                self.lived.append(time.monotonic() - since)
                plain.close()
                self.open[i] = self.begin()
            await asyncio.sleep(1)

    def close(self):
        for plain, _ in self.open:
            plain.close()


async def besides_kv(server):
    return server.rss() - (await server.stats())['kv_bytes']


async def slow(program):
    """Both kinds at once; throughput is also measured before and after them."""
    seconds = 60 if ALL else 11
    async with Server(program, '--write-timeout', str(seconds), '--quiet') as server, Others(server) as others:
        await asyncio.sleep(1)
        without = [await others.speed(seconds / 12) for _ in range(3)]
        before = await besides_kv(server)
        clients = [SlowReaders(server.port, 64), SlowHeaders(server.port, 500)]
        tasks = [asyncio.create_task(each.go_on()) for each in clients]
        await until(server, lambda s: s['running'] + s['waiting'] > OTHERS + 32)
        await until(server, lambda s: s['running'] + s['waiting'] <= OTHERS, 120)  # their answers are computed too
        full = await besides_kv(server)
        during = [await others.speed(seconds / 6) for _ in range(6)]
        after = await besides_kv(server)
        print(f'slow: RSS without KV {before / 1e6:.1f} MB before, {full / 1e6:.1f} with 64 answers of {UNREAD} tokens '
              f'that nobody reads, {after / 1e6:.1f} after {seconds} s; {clients[0].read} bytes of them were read')
        check(after - full < 4e6, 'RSS grows while nothing is read')
        for task, each in zip(tasks, clients):
            task.cancel()
            each.close()
        lived, statuses = clients[1].lived, sorted(clients[1].statuses)
        check(lived and 9 < min(lived) and max(lived) < 13, f'slow headers lived {min(lived or [0])} to '
              f'{max(lived or [0])} s, 10 are meant')
        print(f'slow: {len(lived)} clients with slow headers were let go after {min(lived):.1f} to {max(lived):.1f} s, '
              f'statuses {statuses}')
        await asyncio.sleep(0.5)
        without += [await others.speed(seconds / 12) for _ in range(3)]
        connections = (await server.all_stats())['connections']
        check(connections <= OTHERS + 1, f'{connections} connections are open after the slow ones were closed')
        compare_speeds('slow', without, during)


# ---- clients that leave -------------------------------------------------------------------------------------------

def slow_model(program, folder):
    """A random model whose passes take long enough to be counted from outside: 57 million parameters."""
    config = {'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'hidden_size': 768, 'num_hidden_layers': 8,
              'intermediate_size': 2048, 'num_attention_heads': 12, 'num_key_value_heads': 4, 'vocab_size': 4096,
              'max_position_embeddings': 1024, 'rms_norm_eps': 1e-5, 'rope_theta': 10000.0, 'hidden_act': 'silu',
              'tie_word_embeddings': True, 'bos_token_id': 0, 'eos_token_id': 0, 'torch_dtype': 'bfloat16'}
    path = os.path.join(folder, 'config.json')
    with open(path, 'w', encoding='ascii') as file:
        json.dump(config, file)
    made = os.path.join(folder, 'slow')
    subprocess.run([program, 'synth', path, made, '--dtype', 'f16'], check=True, capture_output=True)
    return made


async def passes_until_gone(server, connection, reset):
    """Leaves, and returns the number of passes that end before the scheduler counts one more request as cancelled.

    Normally two: the current pass ends, and the next one, without this request, updates the counters. One more may end
    between two polls, and more if other work delays this test.
    """
    before = await server.stats()
    connection.leave(reset)
    end = time.monotonic() + 5
    while time.monotonic() < end:
        stats = await server.stats()
        if stats['cancelled'] > before['cancelled']:
            return stats['passes'] - before['passes']
    check(False, f'who left is not gone: {stats}')
    return 0


async def until(server, what, seconds=20):
    """Polls the statistics until `what` is true of them."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        stats = await server.stats()
        if what(stats):
            return stats
    check(False, f'it does not come: {stats}')
    return stats


LONG = {'prompt': [5 + i % 3000 for i in range(900)], 'max_tokens': 100, 'cache_prompt': False}
ENDLESS = {'prompt': [9, 99, 999], 'max_tokens': 900, 'ignore_eos': True, 'stream': True, 'seed': 3}


async def leave_queued(server, reset):
    """More requests than there are places: the last one waits."""
    running = (await server.stats())['running']
    connection = await Connection.to(server.port)
    await connection.send('POST', '/v1/completions', ENDLESS)
    await until(server, lambda s: s['waiting'] >= 1 and s['running'] == running)
    return await passes_until_gone(server, connection, reset)


async def leave_in_prompt(server, reset):
    before = (await server.stats())['prompt_tokens_computed']
    connection = await Connection.to(server.port)
    await connection.send('POST', '/v1/completions', LONG)
    await until(server, lambda s: s['prompt_tokens_computed'] > before + 40)
    return await passes_until_gone(server, connection, reset)


async def leave_in_decode(server, reset):
    connection = await Connection.to(server.port)
    await connection.send('POST', '/v1/completions', ENDLESS)
    answer = await connection.head()
    async for _ in connection.pieces(answer):
        if len(answer.events()) > 10:
            break
    return await passes_until_gone(server, connection, reset)


async def leaving(program):
    """Small passes, so that a long prompt takes many."""
    await leave_unread(program)
    with tempfile.TemporaryDirectory() as folder:
        model = slow_model(program, folder)
        for leave, places in ((leave_queued, OTHERS), (leave_in_prompt, 64), (leave_in_decode, 64)):
            await leave_often(program, model, leave, places)
        await leave_in_drain(program, model)


async def leave_unread(program):
    """Clients leave while the server reads another large body first: their requests never start."""
    async with Server(program, '--quiet') as server:
        large = b'{"prompt": [' + b'1,' * 900000 + b'1]}'
        first = asyncio.create_task(ask_once(server.port, 'POST', '/v1/completions', large))
        await asyncio.sleep(0.05)
        for stream in (True, False):
            connection = await Connection.to(server.port)
            await connection.send('POST', '/v1/completions', ENDLESS | {'stream': stream})
            await asyncio.sleep(0.02)
            connection.leave(reset=stream)
        await first
        await asyncio.sleep(0.1)
        stats = await server.quiet()
        print(f'leaving, unread: {stats["submitted"]} of 2 requests came to the scheduler, {stats["finished"]} were '
              'computed')
        check(stats['finished'] == 0, f'unread: {stats}')


async def leave_often(program, model, leave, places):
    rounds, name = 20 if ALL else 4, leave.__name__.removeprefix('leave_').removeprefix('in_')
    flags = ('--max-sequences', str(places), '--prefill-chunk', '64', '--quiet', '--ctx', '1024')
    async with Server(program, *flags, model=model) as server:
        async with Others(server, 150 if name == 'queued' else 15) as others:
            await until(server, lambda s: s['running'] == OTHERS)
            before, start = await server.stats(), time.monotonic()
            passes = [await leave(server, reset=i % 2 == 1) for i in range(rounds)]
            after = await server.stats()
            each = 1e3 * (time.monotonic() - start) / max(1, after['passes'] - before['passes'])
        stats = await server.quiet()
        print(f'leaving, {name}: gone after {" ".join(map(str, passes))} passes of {each:.0f} ms; {others.answers} '
              f'answers of the others, all the same; {stats["cancelled"]} cancelled, {stats["failed"]} failed')
        check(median(passes) <= 2 and sum(p > 3 for p in passes) <= rounds // 10, f'{name}: gone after {passes} passes')
        check(stats['cancelled'] == rounds and stats['failed'] == 0, f'{name}: {stats}')


async def leave_in_drain(program, model):
    """One of two streams leaves while the server drains: the other is whole, and then the server ends."""
    body = ENDLESS | {'max_tokens': 100}
    reference = await stream_of(program, body, model)
    async with Server(program, '--drain-timeout', '20', '--quiet', model=model) as server:
        stays, leaves = [await Connection.to(server.port) for _ in range(2)]
        await stays.send('POST', '/v1/completions', body)
        await leaves.send('POST', '/v1/completions', ENDLESS | {'n': 2, 'seed': 4})
        await leaves.head()
        server.process.send_signal(signal.SIGTERM)
        answer = await ask_once(server.port, 'GET', '/ready')
        check(answer.status == 503, f'/ready is {answer.status} while the server drains')
        answer = await ask_once(server.port, 'POST', '/v1/completions', ENDLESS)
        check(answer.status == 503 and 'retry-after' in answer.headers, f'a request while it drains: {answer.raw}')
        passes = await passes_until_gone(server, leaves, True)
        answer = await stays.head()
        async for _ in stays.pieces(answer):
            pass
        start = time.monotonic()
        server.stats_connection.leave()
        code = await server.ended()
        print(f'leaving, drain: gone after {passes} passes; the server ended {time.monotonic() - start:.2f} s after '
              f'its last answer, exit {code}')
        check(text_of(answer) == text_of(reference), 'drain: another answer')
        check(code == 0 and passes <= 3, f'drain: exit {code}, {passes} passes')


def text_of(answer):
    chunks = [json.loads(event) for event in answer.events() if event != b'[DONE]']
    return ''.join(choice['text'] for chunk in chunks for choice in chunk.get('choices', []))


def ids_of(answer):
    chunks = [json.loads(event) for event in answer.events() if event != b'[DONE]']
    return [i for chunk in chunks for choice in chunk.get('choices', []) for i in choice.get('token_ids', [])]


async def stream_of(program, body, model=serve_client.TALES):
    async with Server(program, '--quiet', model=model) as server:
        return await ask_once(server.port, 'POST', '/v1/completions', body)


# ---- the server's own end -----------------------------------------------------------------------------------------

async def killed(program):
    """Everything a new server needs is free immediately: its port, its memory, its files."""
    times = 50 if ALL else 5
    body = {'prompt': 'When the ship', 'max_tokens': 30, 'seed': 1, 'receipt': True}
    receipts, waits, port = set(), [], 0
    places = ('/dev/shm', '/tmp')
    before = {place: len(os.listdir(place)) for place in places if os.path.isdir(place)}
    for _ in range(times):
        start = time.monotonic()
        async with Server(program, '--quiet', port=port) as server:
            port = server.port
            answer = (await ask_once(port, 'POST', '/v1/completions', body)).json()
            waits.append(time.monotonic() - start)
            receipts.add(answer['kvasir']['receipt'])
            streams = [await Connection.to(port) for _ in range(8)]
            for connection in streams:
                await connection.send('POST', '/v1/completions', ENDLESS)
            await streams[0].head()
            await server.stop(signal.SIGKILL)
            for connection in streams:
                connection.leave()
    after = {place: len(os.listdir(place)) for place in before}
    print(f'killed {times} times at port {port}: serves again within {min(waits):.2f} to {max(waits):.2f} s, '
          f'{len(receipts)} receipt; files before and after {before} {after}')
    check(len(receipts) == 1, f'{len(receipts)} different receipts')
    check(max(waits) < 5, f'a start took {max(waits)} s')


async def resumed(program):
    """The first server is stopped in mid-answer; a second one continues from the ids that came."""
    rounds = 6 if ALL else 3
    for i in range(rounds):
        body = ENDLESS | {'seed': 40 + i, 'return_token_ids': True, 'receipt': True, 'repeat_penalty': 1.2,
                          'stream_options': {'include_usage': True}}
        whole = await stream_of(program, body)
        async with Server(program, '--drain-timeout', '0.05', '--quiet') as server:
            connection = await Connection.to(server.port)
            await connection.send('POST', '/v1/completions', body)
            cut = await connection.head()
            async for _ in connection.pieces(cut):
                if len(cut.events()) > 20 * (i + 1) and server.process.returncode is None and not cut.sent:
                    cut.sent = time.monotonic()
                    server.process.send_signal(signal.SIGTERM)
            took = time.monotonic() - cut.sent
            connection.leave()
            code = await server.ended()
        last = json.loads(cut.events()[-1])
        rest = await stream_of(program, body | {'resume_token_ids': ids_of(cut)})
        print(f'resumed: cut {took:.2f} s after SIGTERM at {len(ids_of(cut))} tokens of {len(ids_of(whole))}, '
              f'{last.get("error", {}).get("code")}, exit {code}')
        check(code == 0 and last.get('error', {}).get('code') == 'draining', f'cut: exit {code}, {last}')
        check(ids_of(cut) + ids_of(rest) == ids_of(whole), 'resumed: other ids')
        check(text_of(cut) + text_of(rest) == text_of(whole), 'resumed: another text')
        receipts = [json.loads(answer.events()[-3])['kvasir']['receipt'] for answer in (rest, whole)]
        check(receipts[0] == receipts[1], f'resumed: receipts {receipts}')


# ---- nothing, and too much ----------------------------------------------------------------------------------------

async def quiet(program):
    async with Server(program, '--quiet') as server:
        await ask_once(server.port, 'POST', '/v1/completions', {'prompt': 'Well', 'max_tokens': 20})
        sockets = [raw_socket(server.port) for _ in range(20)]
        await asyncio.sleep(1)
        ticks = []
        for _ in range(3):
            before = server.cpu_ticks()
            await asyncio.sleep(3)
            ticks.append(server.cpu_ticks() - before)
            if ticks[-1] <= 1:
                break
        print(f'quiet: {ticks} ticks of processor time in 3 s')
        check(min(ticks) <= 1, f'an idle server took {ticks} ticks in 3 s')
        for plain in sockets:
            plain.close()


def hostile_bodies():
    """Yields (name, body, upper bound on milliseconds of processor time); each body is just under 4 MiB. Bodies without
    meaning to the server are refused at once; a text must be tokenised, and many values read, before they are known to
    be too many."""
    size, refused, read = (4 << 20) - 100, 100 if ALL else 150, 1000
    yield '[[],[],...', b'{"prompt": [' + b'[],' * (size // 3) + b'[]]}', refused
    yield '{},{},...', b'{"prompt": [' + b'{},' * (size // 3) + b'{}]}', refused
    yield 'deep arrays', b'{"prompt": ' + b'[' * (size // 2) + b']' * (size // 2) + b'}', refused
    yield 'deep objects, open', b'{"a":' * (size // 5), refused
    yield 'one long number', b'{"max_tokens": ' + b'9' * size + b'}', refused
    yield 'long fraction', b'{"temperature": 0.' + b'1' * size + b'}', refused
    yield '1,1,...', b'{"prompt": [' + b'1,' * (size // 2) + b'1]}', refused
    yield '1,1,... just allowed', b'{"prompt": [' + b'1,' * 990000 + b'1]}', read
    yield 'one long string', b'{"prompt": "' + b'a' * size + b'"}', read
    yield 'escapes', b'{"prompt": "' + rb'\u0041' * (size // 6) + b'"}', read
    yield 'no UTF-8', b'{"prompt": "' + b'\xff' * size + b'"}', refused
    yield 'the same key', b'{' + b'"a":1,' * 600000 + b'"prompt": "Well"}', read
    yield 'other keys', b'{' + b','.join(b'"%x":1' % i for i in range(350000)) + b',"prompt": "Well"}', read
    yield 'other biases', b'{"prompt": "Well", "max_tokens": 1, "logit_bias": {' + \
        b','.join(b'"%d":1' % i for i in range(300000)) + b'}}', read
    some = b'{' + b','.join(b'"%x":1' % i for i in range(4000)) + b'},'
    yield 'objects of 4,000 keys', b'{"prompt": "Well", "x": [' + some * (size // len(some)) + b'1]}', read
    yield 'spaces', b' ' * size + b'{}', refused
    yield 'brackets in a string', b'{"prompt": "' + b'[' * size + b'"}', read


async def hostile(program):
    """Uses a new server for each body, so that memory of an earlier body hides nothing."""
    for what, body, most in hostile_bodies():
        async with Server(program, '--quiet') as server:
            await ask_once(server.port, 'POST', '/v1/completions', {'prompt': 'Well', 'max_tokens': 2})
            server.forget_peak()
            before, cpu, start = server.rss(), server.cpu_ticks(), time.monotonic()
            asked = ask_once(server.port, 'POST', '/v1/completions', body)
            try:
                answer = await asyncio.wait_for(asked, 60 if ALL else 6)
            except asyncio.TimeoutError:
                check(False, f'{what}: no answer to {len(body):,} bytes after {time.monotonic() - start:.1f} s, '
                      f'{(server.cpu_ticks() - cpu) / serve_client.TICKS:.1f} s of processor time')
                await server.stop(signal.SIGKILL)
                continue
            seconds, peak = time.monotonic() - start, server.peak_rss() - before
            cpu = (server.cpu_ticks() - cpu) * 1000 // serve_client.TICKS
            code = answer.json().get('error', {}).get('code')
            print(f'hostile, {what}: {answer.status} {code}, {seconds * 1e3:.0f} ms, {cpu} ms of processor time, peak '
                  f'{peak / 1e6:+.1f} MB, kept {(server.rss() - before) / 1e6:+.1f} MB')
            check(answer.status in (200, 400), f'{what}: {answer.status}')
            check(peak < 64e6, f'{what}: {peak:,} bytes')
            check(min(cpu, seconds * 1e3) <= most, f'{what}: {cpu} ms of processor time, {most} are allowed')
            check(len(answer.body) < 65536, f'{what}: an answer of {len(answer.body):,} bytes')
            after = await ask_once(server.port, 'POST', '/v1/completions', {'prompt': 'Well', 'max_tokens': 2})
            check(after.status == 200, f'{what}: the next request has {after.status}')


async def garbled(program):
    async with Server(program, '--quiet') as server:
        async with Others(server, tokens=20, count=2) as others:
            cut = await cut_everywhere(server.port, 1 if ALL else 7)
            seen = await at_random(server.port, 20000 if ALL else 600, seed=20)
            check(others.answers > 0, 'the others get answers')
        print(f'garbled: {cut} requests in packets with the answer of the whole one; at random: {seen}')
        after = await ask_once(server.port, 'GET', '/v1/scheduler', None)
        check(after.status == 200 and after.json()['models']['tales']['running'] == 0, f'nothing runs: {after.body[:200]}')


PARTS = {part.__name__: part for part in (idle, slow, leaving, killed, resumed, quiet, garbled, hostile)}


async def run(args):
    for name in args.only.split(',') if args.only else PARTS:
        start = time.monotonic()
        try:
            await asyncio.wait_for(PARTS[name](args.program), 900 if ALL else 90)
        except (asyncio.TimeoutError, asyncio.IncompleteReadError, OSError, RuntimeError) as error:
            check(False, f'{name}: {type(error).__name__} {error}')
        print(f'({name}: {time.monotonic() - start:.1f} s)', flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', required=True)
    parser.add_argument('--only', default='', help='parts, with commas between them')
    asyncio.run(run(parser.parse_args()))
    return serve_client.verdict()


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/env python3
"""Mixed requests over HTTP under a small budget: every finished answer equals the one that its request gets alone.

usage: serve_load.py --program build/kvasir [--requests N] [--clients 64] [--cancelled 0.15] [--seed S]

The crowd: one server with little memory for KV, so that sequences are preempted, and many clients at a time, some of
which leave before the first byte or in mid-stream. Alone: every request that was answered is sent again to a second,
quiet server with memory for all, one at a time and with `cache_prompt: false`: so nothing cached is used and nothing is
cached, as in a server that has answered nothing. To check that this field changes nothing else, some requests are also
sent, unchanged, as the only request to a new server.

The two answers are the same byte for byte, receipts included, except members that depend on the moment (serve_asks.py
lists it). Afterwards nothing runs or waits, no connection is open, all requests are accounted for, and one request that
needs all of the memory gets it. 600 requests, 5,000 with KVASIR_TEST_ALL=1. Exits 1 at a first difference, with both
answers.
"""
import argparse
import asyncio
import collections
import json
import signal
import sys
import time

import serve_client
from serve_asks import error_code, mixed, plain, told_seed
from serve_client import Connection, Server, check

KV_RAM = 4 << 20              # 1,365 positions of tales in f32: the longest request of all needs 1,024
PREEMPTIONS = 300 / 5000      # least number per request
FRESH = 1 / 60                # share of requests that are also sent to a new server
RAW = 4000                    # upper bound on the shown bytes of a raw answer
STUCK = 15                    # seconds without a pass
RSS_GROWS = 16 << 20          # at most, after a fifth of the requests


class Crowd:
    """All requests at the busy server."""

    def __init__(self, server, args):
        self.server, self.args = server, args
        self.asks = [mixed(args.seed, i, args.cancelled) for i in range(args.requests)]
        self.answers = [None] * len(self.asks)
        self.next = self.left_early = self.left_in_stream = 0
        self.rss = []

    async def run(self):
        """Returns False if no pass ends for STUCK seconds."""
        clients = asyncio.gather(*(self.client() for _ in range(self.args.clients)))
        passes, since = -1, time.monotonic()
        while not clients.done():
            await asyncio.wait([clients], timeout=1)
            stats = await self.server.stats()
            if stats['passes'] != passes:
                passes, since = stats['passes'], time.monotonic()
            if time.monotonic() - since > STUCK:
                clients.cancel()
                return check(False, f'no pass for {STUCK} s: {stats}')
        await clients
        return True

    async def client(self):
        connection = None
        while self.next < len(self.asks):
            i = self.next
            self.next += 1
            if i % max(1, len(self.asks) // 20) == 0:
                self.rss.append(self.server.rss())
            if connection is None or not connection.open:
                connection = await Connection.to(self.server.port)
            ask = self.asks[i]
            if ask.leaves:
                self.answers[i] = await self.ask_and_leave(connection, ask)
            else:
                self.answers[i] = await connection.post(ask.path, ask.body)
        if connection:
            connection.leave()

    async def ask_and_leave(self, connection, ask):
        """Returns the answer if it was complete before the client left, else None."""
        await connection.send('POST', ask.path, ask.body)
        if ask.leaves['events'] is None or not ask.body.get('stream'):
            await asyncio.sleep(ask.leaves['after_s'])
            connection.leave(ask.leaves['reset'])
            self.left_early += 1
            return None
        answer = await connection.head()
        events = 0
        async for piece in connection.pieces(answer):
            events += piece.count(b'\n\n')
            if events >= ask.leaves['events'] and b'[DONE]' not in piece:
                connection.leave(ask.leaves['reset'])
                self.left_in_stream += 1
                return None
        return answer


class Alone:
    """The same requests, each alone in a quiet server."""

    def __init__(self, crowd, program):
        self.crowd, self.program = crowd, program
        self.counts = collections.Counter()
        self.different = False

    async def run(self):
        ended = [i for i, answer in enumerate(self.crowd.answers) if answer is not None]
        ended = [i for i in ended if not self.is_of_the_moment(i)]
        await asyncio.gather(*(self.quiet_server(ended[part::2]) for part in range(2)))
        for i in ended[::round(1 / FRESH)]:
            if self.different:
                break
            async with Server(self.program, '--quiet') as server:
                connection = await Connection.to(server.port)
                await self.compare(connection, i, self.as_it_was(i), 'the only request of a server')
                connection.leave()
            self.counts['of servers of their own'] += 1

    def is_of_the_moment(self, i):
        """True if the request missed its deadline, which depends on the clock; such requests are only counted."""
        code = error_code(self.crowd.asks[i], self.crowd.answers[i])
        if code != 'deadline_exceeded':
            self.counts['refused' if code else 'finished'] += 1
            return False
        check(0 < self.crowd.asks[i].body.get('timeout_ms', 0) < 60000, f'request {i}: a deadline that it did not have')
        self.counts['past their deadline'] += 1
        return True

    def as_it_was(self, i, **more):
        """Returns the body without a short deadline and with the seed that was drawn for it."""
        body = self.crowd.asks[i].body | more
        if body.get('timeout_ms', 600000) < 600000:
            del body['timeout_ms']
        seed = told_seed(self.crowd.answers[i]) if 'seed' not in body else None
        return body if seed is None else body | {'seed': seed}

    async def quiet_server(self, which):
        async with Server(self.program, '--quiet', '-t', '1') as server:
            connection = await Connection.to(server.port)
            for i in which:
                if self.different:
                    break
                more = {} if error_code(self.crowd.asks[i], self.crowd.answers[i]) else {'cache_prompt': False}
                await self.compare(connection, i, self.as_it_was(i, **more), 'alone')
                if not connection.open:
                    connection = await Connection.to(server.port)
            stats = await server.quiet()
            check(stats and stats['kv_bytes'] == 0 and stats['preemptions'] == 0,
                  f'the quiet server has kept something: {stats}')
            connection.leave()

    async def compare(self, connection, i, body, where):
        ask, busy = self.crowd.asks[i], self.crowd.answers[i]
        answer = await connection.post(ask.path, body)
        try:
            here, there = plain(ask, answer), plain(ask, busy)
        except (AssertionError, KeyError, ValueError) as error:
            here, there = f'{type(error).__name__}: {error}', ''
        if here == there:
            self.counts['bytes'] += len(here)
            return
        self.different = True
        check(False, f'request {i}, {where}: another answer')
        at = next((n for n, (a, b) in enumerate(zip(here, there)) if a != b), min(len(here), len(there)))
        print(f'POST {ask.path} {json.dumps(body)}\n--- in the crowd\n{there}\n--- {where}\n{here}\n'
              f'--- from character {at}: "{there[at:at + 40]}" in the crowd, "{here[at:at + 40]}" {where}\n'
              f'--- as they came\n{busy.raw.decode()[:RAW]}\n---\n{answer.raw.decode()[:RAW]}')


async def check_afterwards(server, crowd):
    """Nothing is left behind."""
    stats = await server.quiet()
    if not check(stats, 'something still runs or waits'):
        return
    everything = await server.all_stats()
    check(everything['connections'] == 1, f'{everything["connections"]} connections are open, one is asked over')
    ended = stats['finished'] + stats['cancelled'] + stats['failed']
    check(stats['submitted'] == ended, f'{stats["submitted"]} requests came, {ended} ended')
    asked = sum(ask.prompts for ask in crowd.asks)
    check(stats['submitted'] <= asked, f'{stats["submitted"]} requests came, {asked} were sent')
    check(0 < stats['kv_bytes'] <= stats['kv_capacity'], f'kept texts hold {stats["kv_bytes"]} bytes')
    wanted = int(PREEMPTIONS * crowd.args.requests)
    check(stats['preemptions'] >= max(1, wanted), f'{stats["preemptions"]} preemptions, {wanted} are wanted')
    print(f'{stats["submitted"]} requests at the scheduler: {stats["finished"]} finished, {stats["cancelled"]} '
          f'cancelled, {stats["failed"]} failed; {stats["preemptions"]} preemptions, {stats["passes"]} passes, '
          f'{stats["tokens_generated"]} tokens, prompt tokens {stats["prompt_tokens_reused"]} reused and '
          f'{stats["prompt_tokens_computed"]} computed, {stats["tokens_recomputed"]} computed again')
    settled = crowd.rss[len(crowd.rss) // 5]
    print(f'RSS {settled >> 20} MB after a fifth of them, {server.rss() >> 20} at the end, '
          f'{server.peak_rss() >> 20} at most; {server.open_files()} open files')
    check(server.rss() - settled <= RSS_GROWS, f'RSS grew by {server.rss() - settled:,} bytes')
    await check_all_memory(server, stats)


async def check_all_memory(server, before):
    """A request that needs nearly all memory succeeds: only cached texts held memory."""
    connection = await Connection.to(server.port)
    position = before['kv_capacity'] // 1024  # an upper estimate of the positions; limited to the context below
    prompt = [7 + i % 4000 for i in range(min(1000, position))]
    body = {'prompt': prompt, 'max_tokens': 24, 'n': 8, 'ignore_eos': True, 'cache_prompt': False, 'temperature': 0}
    answer = await connection.post('/v1/completions', body)
    check(answer.status == 200, f'a request for all of the memory: {answer.body}')
    connection.leave()
    after = await server.quiet()
    print(f'kept texts hold {before["kv_bytes"]:,} bytes of {before["kv_capacity"]:,}; '
          f'{after["kv_bytes"]:,} after a request that needed nearly all')
    check(after['kv_bytes'] < before['kv_capacity'] // 2, 'kept texts do not make room')


async def run(args):
    begin = time.monotonic()
    flags = ['--kv-ram', str(args.kv_ram), '-t', '2']
    async with Server(args.program, *flags) as server:
        crowd = Crowd(server, args)
        if not await crowd.run():
            return await server.stop(signal.SIGKILL)
        seconds = time.monotonic() - begin
        print(f'{args.requests} requests in {seconds:.1f} s by {args.clients} clients, of whom {crowd.left_early} left '
              f'before the first byte and {crowd.left_in_stream} in mid-stream')
        await check_afterwards(server, crowd)
        code = await server.stop()
        check(code == 0, f'exit {code}: {server.errors()}')
    begin = time.monotonic()
    alone = Alone(crowd, args.program)
    await alone.run()
    counts = alone.counts
    print(f'compared in {time.monotonic() - begin:.1f} s: {counts["finished"]} answers and {counts["refused"]} '
          f'refusals, {counts["bytes"]:,} bytes, {counts["of servers of their own"]} of them of servers of their own; '
          f'{counts["past their deadline"]} were past their deadline')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', required=True)
    parser.add_argument('--requests', type=int, default=5000 if serve_client.all_of_it() else 600)
    parser.add_argument('--clients', type=int, default=64)
    parser.add_argument('--cancelled', type=float, default=0.15, help='share of clients that leave')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--kv-ram', type=int, default=KV_RAM)
    asyncio.run(run(parser.parse_args()))
    return serve_client.verdict()


if __name__ == '__main__':
    sys.exit(main())

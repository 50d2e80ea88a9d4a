#!/usr/bin/env python3
"""The cost of HTTP: time to the first token compared with the server's own clock, and tokens per second compared with
the programs.

usage: serve_overhead.py --program build/kvasir [--model FOLDER] [--threads 2] [--rounds 5] [--tokens 200] [--strict]

first    one stream after the other: from the client's send to its first token, less the server's own `queued_ms` +
         `prompt_ms`: parsing, tokenising, the way there and back
one      tokens a second of one stream, as a client sees them, beside `kvasir run`
many     16 streams at once beside `kvasir bench --batch 16`

The two sides alternate, so that a slowing machine affects both; ratios are per round, and the median and the spread are
printed. The shipped model is tiny, so overhead counts for more than elsewhere: `kvasir synth smollm2-135m FOLDER
--dtype f16` writes a model of a usual size. Limits: 3 ms for the best first token and, with --strict on a quiet
machine, for the median; 0.97 and 0.95 of the throughput. If a client takes a processor from the two that compute,
streams also cost what the client does with them.
"""
import argparse
import asyncio
import json
import re
import subprocess
import sys
import time

import serve_client
from serve_client import Connection, Server, check, median

STREAMS = 16


def shown(values, digits=3):
    return f'{median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})'


def body_of(args, i, **more):
    """A request with ids as the prompt: the same for both sides, and not shared by two streams."""
    prompt = [(50 + 17 * i + k) % 4000 + 1 for k in range(args.prompt)]
    return {'prompt': prompt, 'max_tokens': args.tokens, 'ignore_eos': True, 'temperature': 0, 'repeat_penalty': 1,
            'stream': True, 'cache_prompt': False, 'return_token_ids': True} | more


async def stream(server, body):
    """Returns (seconds to the first token, the server's own count of them, tokens per second after the first, arrival
    times of tokens)."""
    connection = await Connection.to(server.port)
    sent, moments = time.monotonic(), []
    await connection.send('POST', '/v1/completions', body)
    answer = await connection.head()
    async for piece in connection.pieces(answer):
        count = sum(len(ids.split(b',')) for ids in re.findall(rb'"token_ids":\[(\d[^]]*)\]', piece))
        moments += [time.monotonic()] * count
    connection.leave()
    timings = next(json.loads(event)['timings'] for event in reversed(answer.events()[:-1]) if b'"timings"' in event)
    own = (timings['queued_ms'] + timings['prompt_ms']) / 1e3
    return moments[0] - sent, own, (timings['predicted_n'] - 1) / max(1e-9, moments[-1] - moments[0]), moments


async def first_token(server, args, tokens):
    """Returns the milliseconds to the first token beyond the scheduler's own, for each stream."""
    added = []
    for i in range(args.firsts):
        first, own, _, _ = await stream(server, body_of(args, i, max_tokens=tokens))
        added.append(1e3 * (first - own))
    return added


def output(args, *command):
    return subprocess.run([args.program, *command], capture_output=True, text=True, check=True)


def run_alone(args):
    """Tokens per second of `kvasir run`, from --stats: --json computes a receipt, which costs time."""
    ids = ','.join(map(str, body_of(args, 0)['prompt']))
    done = output(args, 'run', args.model, '--ids', ids, '-n', str(args.tokens), '--greedy', '--ignore-eos', '--cache',
                  'paged', '--repeat-penalty', '1', '-t', str(args.threads), '--stats')
    return float(re.search(r'^generated .* ([\d.]+) tok/s', done.stderr, re.MULTILINE).group(1))


def bench_many(args):
    done = output(args, 'bench', args.model, '-p', '0', '-n', str(args.tokens), '-b', str(STREAMS), '-r', '1', '-d',
                  str(args.prompt), '-t', str(args.threads), '--cache', 'paged', '--json')
    return json.loads(done.stdout)['tests'][0]['tok_s_median']


async def many(server, args):
    """Tokens per second of all streams while all of them run: from the last first token to the first last one."""
    answers = await asyncio.gather(*(stream(server, body_of(args, i)) for i in range(STREAMS)))
    begin, end = max(m[0] for *_, m in answers), min(m[-1] for *_, m in answers)
    return sum(sum(begin < at <= end for at in m) for *_, m in answers) / (end - begin)


async def many_whole(server, args):
    """The same without streams, on the server's clock: where the client costs little on the same cores."""
    async def ask(i):
        connection = await Connection.to(server.port)
        answer = await connection.post('/v1/completions', body_of(args, i, stream=False))
        connection.leave()
        return answer.json()['timings']

    timings = await asyncio.gather(*(ask(i) for i in range(STREAMS)))
    return sum(t['predicted_per_second'] for t in timings)


async def run(args):
    added, last, one, many_of = [], [], [], []
    alone, served, bench, served_many, whole, whole_of = [], [], [], [], [], []
    async with Server(args.program, '-t', str(args.threads), '--quiet', model=args.model) as server:
        await first_token(server, args, 2)  # the first requests of a process are slower
        for _ in range(args.rounds):
            added += await first_token(server, args, 2)
            last += await first_token(server, args, 1)
            alone.append(run_alone(args))
            served.append((await stream(server, body_of(args, 0)))[2])
            one.append(served[-1] / alone[-1])
            bench.append(bench_many(args))
            served_many.append(await many(server, args))
            many_of.append(served_many[-1] / bench[-1])
            whole.append(await many_whole(server, args))
            whole_of.append(whole[-1] / bench[-1])
    print(f'first: HTTP adds {shown(added)} ms to the first token, {len(added)} times; '
          f'where no pass follows, {shown(last)}')
    print(f'one: {shown(served, 0)} tok/s of {shown(alone, 0)} by run: x {shown(one)}')
    print(f'many: {STREAMS} streams, {shown(served_many, 0)} tok/s of {shown(bench, 0)} by bench: x {shown(many_of)}')
    print(f'many: without streams, {shown(whole, 0)} tok/s: x {shown(whole_of)}')
    check(min(added) <= 3, f'HTTP adds {min(added):.2f} ms at least')
    if args.strict:
        check(median(added) <= 3, f'HTTP adds {median(added):.2f} ms')
        check(median(one) >= 0.97, f'one stream has {median(one):.3f} of run')
        check(median(many_of) >= 0.95, f'{STREAMS} streams have {median(many_of):.3f} of bench')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', required=True)
    parser.add_argument('--model', default=serve_client.TALES)
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--tokens', type=int, default=200)
    parser.add_argument('--prompt', type=int, default=16, help='tokens of a prompt')
    parser.add_argument('--firsts', type=int, default=20, help='first tokens that are timed in a round')
    parser.add_argument('--strict', action='store_true', help='the throughput has limits too')
    asyncio.run(run(parser.parse_args()))
    return serve_client.verdict()


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/env python3
"""`kvasir serve` compared with llama-server: the same requests, alternately, each in its own process.

usage: serve_peer.py --program build/kvasir --peer PATH/llama-server --model FILE.gguf [--threads 2] [--rounds 5]

cold 16 clients at once: 1,024 tokens that all share, 16 that differ, 64 tokens to generate; no request came before
again 16 more with other tokens after the same shared ones warmed `cold`, but one request with the shared tokens came
before; compared with the peer's `cold` chats 8 users, 6 turns: 200 shared tokens, then 60 new ones a turn and the 48
that were answered agents 2 loops of 20 turns over 3,000 shared tokens, 120 new ones a turn, 24 answered, a title asked
for between them

Prompts and answers are token ids, so neither side loses reuse because of another tokenisation. K and V are f16 on both
sides. Ratios are per round; the median and the spread are printed.
"""
import argparse
import asyncio
import contextlib
import json
import os
import random
import sys
import time

from serve_client import Connection, Server, check, end_with_parent, median, verdict

# The least ratio to the peer that is required, by row.
WANTED = {'cold tok/s': 4, 'warmed tok/s': 4, 'warmed first': 20, 'again tok/s': 1.5, 'chats first': 3, 'agents wall': 2,
          'RSS': 2}


def ids(count, salt):
    dice = random.Random(salt)
    return [dice.randrange(100, 48000) for _ in range(count)]


class Kvasir(Server):
    """Answers as token ids, over OpenAI's API."""

    def __init__(self, args):
        super().__init__(args.program, '-t', str(args.threads), '--quiet', '--kv-type', 'f16', model=args.model)

    @staticmethod
    def ask(prompt, tokens):
        return '/v1/completions', {'prompt': prompt, 'max_tokens': tokens, 'ignore_eos': True, 'temperature': 0,
                                   'repeat_penalty': 1, 'stream': True, 'return_token_ids': True}

    @staticmethod
    def tokens_of(event):
        return [id for choice in event.get('choices', ()) for id in choice.get('token_ids') or ()]


class LlamaServer(Server):
    """Answers as token ids, over its own API. Its slots share `positions`."""

    def __init__(self, args, slots, positions):
        super().__init__(args.peer)
        self.port = 8931
        self.command = [os.path.abspath(args.peer), '-m', args.model, '-t', str(args.threads), '-tb', str(args.threads),
                        '-np', str(slots), '-c', str(positions), '--port', str(self.port)]

    async def start(self):
        self.process = await asyncio.create_subprocess_exec(*self.command, stdout=self.log, stderr=self.log,
                                                            preexec_fn=end_with_parent)
        self.pid = self.process.pid
        for _ in range(600):
            with contextlib.suppress(OSError):
                connection = await Connection.to(self.port)
                answer = await connection.ask('GET', '/health')
                connection.leave()
                if answer.status == 200:
                    return
            await asyncio.sleep(0.1)
        raise RuntimeError('no peer: ' + self.errors())

    @staticmethod
    def ask(prompt, tokens):
        return '/completion', {'prompt': prompt, 'n_predict': tokens, 'ignore_eos': True, 'temperature': 0,
                               'repeat_penalty': 1, 'stream': True, 'return_tokens': True, 'cache_prompt': True}

    @staticmethod
    def tokens_of(event):
        return event.get('tokens') or []


async def ask(server, prompt, tokens):
    """Returns (seconds to the first token, the answered ids)."""
    path, body = server.ask(prompt, tokens)
    connection = await Connection.to(server.port)
    sent, first, answered, rest = time.monotonic(), None, [], b''
    await connection.send('POST', path, body)
    answer = await connection.head()
    async for piece in connection.pieces(answer):
        *lines, rest = (rest + piece).split(b'\n')
        for line in lines:
            if line.startswith(b'data: {'):
                answered += server.tokens_of(json.loads(line[6:]))
        if first is None and answered:
            first = time.monotonic() - sent
    connection.leave()
    # The peer drops a last token that is not a whole character.
    check(tokens - isinstance(server, LlamaServer) <= len(answered) <= tokens,
          f'{type(server).__name__}: {answer.status}, {len(answered)} of {tokens} tokens')
    return first or time.monotonic() - sent, answered


async def wave(server, number):
    """Returns (tokens a second of 16 clients, the median of their seconds to a first token)."""
    begin = time.monotonic()
    answers = await asyncio.gather(*(ask(server, ids(1024, 1) + ids(16, 100 * number + client), 64)
                                     for client in range(16)))
    return 16 * 64 / (time.monotonic() - begin), median([first for first, _ in answers])


async def shared(server):
    seen = {}
    seen['cold tok/s'], seen['cold first'] = await wave(server, 1)
    seen['again tok/s'], seen['again first'] = await wave(server, 2)
    seen['RSS'] = server.peak_rss() / 1e6
    return seen


async def warmed(server):
    await ask(server, ids(1024, 1) + ids(16, 3), 1)
    rate, first = await wave(server, 1)
    return {'warmed tok/s': rate, 'warmed first': first, 'RSS': server.peak_rss() / 1e6}


async def chats(server):
    firsts = []

    async def chat(user):
        text = ids(200, 2)
        for turn in range(6):
            text += ids(60, 1000 + 10 * user + turn)
            first, answered = await ask(server, text, 48)
            text += answered
            if turn > 0:
                firsts.append(first)

    await asyncio.gather(*(chat(user) for user in range(8)))
    return {'chats first': median(firsts)}


async def agents(server):
    async def agent(name):
        text = ids(3000, 3)
        for turn in range(20):
            text += ids(120, 5000 + 100 * name + turn)
            text += (await ask(server, text, 24))[1]
            if turn < 19:
                await ask(server, ids(40, 4) + text[-144:], 8)  # "a title for this conversation:"

    begin = time.monotonic()
    await asyncio.gather(*(agent(name) for name in range(2)))
    return {'agents wall': time.monotonic() - begin}


async def seen_by(make, work):
    async with make() as server:
        return await work(server)


async def round_of(args):
    """Returns {row: (ours, the peer's)}."""
    rows = {}
    for work, slots, positions in ((shared, 16, 16 * 1280), (warmed, 16, 16 * 1280), (chats, 4, 4 * 2048),
                                   (agents, 4, 4 * 8192)):
        ours = await seen_by(lambda: Kvasir(args), work)
        # `warmed` is compared with the peer's cold wave.
        theirs = rows['peer'] if work is warmed else await seen_by(lambda: LlamaServer(args, slots, positions), work)
        if work is shared:
            rows['peer'] = {'warmed tok/s': theirs['cold tok/s'], 'warmed first': theirs['cold first'],
                            'RSS': theirs['RSS']}
        rows |= {name: (ours[name], theirs[name]) for name in ours}
    del rows['peer']
    return rows


async def run(args):
    rounds = []
    for number in range(args.rounds):
        rounds.append(await round_of(args))
        print(f'round {number + 1}:', '; '.join(f'{name} {a:.4g} / {b:.4g}' for name, (a, b) in rounds[-1].items()),
              flush=True)
    for name in rounds[0]:
        pairs = [seen[name] for seen in rounds]
        ratios = [a / b if name.endswith('tok/s') else b / a for a, b in pairs]
        print(f'{name}: {median([a for a, _ in pairs]):.4g}, the peer {median([b for _, b in pairs]):.4g}: '
              f'{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) times better')
        if name in WANTED:
            check(median(ratios) >= WANTED[name], f'{name}: less than {WANTED[name]} times better')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', required=True)
    parser.add_argument('--peer', default='')
    parser.add_argument('--model', required=True, help='a GGUF file that both open')
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--rounds', type=int, default=5)
    args = parser.parse_args()
    if not os.access(args.peer, os.X_OK):
        print('skipped: no llama-server (try: --peer PATH/llama-server, of llama.cpp)')
        return 0
    asyncio.run(run(args))
    return verdict()


if __name__ == '__main__':
    sys.exit(main())

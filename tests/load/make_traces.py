#!/usr/bin/env python3
"""Writes traces of requests for `kvasir bench --serve` (docs/formats/trace.md), always the same.

usage: make_traces.py FOLDER [--scale S]

--scale S multiplies the lengths of prompts (default 1: prompts of 1,024 tokens and more; 0.1 for small models).
"""
import argparse
import json
import pathlib
import random


def shared(scale):
    """16 clients with one prompt before their own: all at once, and 16 more when the first are done."""
    for wave in range(2):
        for client in range(16):
            name = f'w{wave}c{client}'
            line = {'name': name, 'prompt': [{'tokens': scale(1024), 'salt': 1},
                                             {'tokens': scale(32), 'salt': 100 + 16 * wave + client}],
                    'max_tokens': 64, 'owner': f'c{client}'}
            line.update({'after': f'w0c{client}', 'think': 0.5} if wave else {'at': 0.0})
            yield line


def chats(scale):
    """8 chats of 6 turns over one system prompt: each turn adds a question to all of the text before it."""
    for chat in range(8):
        for turn in range(6):
            line = {'name': f'chat{chat}.{turn}', 'prompt': [{'tokens': scale(60), 'salt': 1000 + 10 * chat + turn}],
                    'max_tokens': 48, 'owner': f'user{chat}'}
            if turn == 0:
                line.update({'at': 0.2 * chat})
                line['prompt'].insert(0, {'tokens': scale(400), 'salt': 2})
            else:
                line.update({'after': f'chat{chat}.{turn - 1}', 'think': 0.3, 'continues': True})
            yield line


def agents(scale):
    """4 agents in loops of 10 short answers over a long and growing text, with no time to think."""
    for agent in range(4):
        for step in range(10):
            line = {'name': f'agent{agent}.{step}',
                    'prompt': [{'tokens': scale(120), 'salt': 5000 + 20 * agent + step}], 'max_tokens': 24,
                    'owner': f'agent{agent}'}
            if step == 0:
                line.update({'at': 0.0})
                line['prompt'].insert(0, {'tokens': scale(1500), 'salt': 3})
            else:
                line.update({'after': f'agent{agent}.{step - 1}', 'continues': True})
            yield line


def flood(scale):
    """Two owners with 60 requests each at once, and a third with one short request a second."""
    for owner in ('a', 'b'):
        for i in range(60):
            yield {'name': f'{owner}{i}', 'at': 0.0, 'owner': owner, 'max_tokens': 32,
                   'prompt': [{'tokens': scale(200), 'salt': 7000 + i + 500 * (owner == 'b')}]}
    for i in range(10):
        yield {'name': f'c{i}', 'at': 1.0 + i, 'owner': 'c', 'max_tokens': 4,
               'prompt': [{'tokens': scale(20), 'salt': 9000 + i}]}


def long_beside(scale):
    """8 requests that decode, and a prompt of 4,000 tokens beside them."""
    for i in range(8):
        yield {'name': f'd{i}', 'at': 0.0, 'owner': f'd{i}', 'max_tokens': 256,
               'prompt': [{'tokens': scale(32), 'salt': 11000 + i}]}
    yield {'name': 'long', 'at': 2.0, 'owner': 'long', 'max_tokens': 4, 'prompt': [{'tokens': scale(4000), 'salt': 12000}]}


def mixed(scale):
    """300 requests of all lengths, some with choices, some cancelled, 16 owners."""
    dice = random.Random(7)
    for i in range(300):
        line = {'name': f'm{i}', 'at': round(0.05 * i, 3), 'owner': f'o{dice.randrange(16)}',
                'prompt': [{'tokens': scale(dice.choice([64, 256, 512])), 'salt': 20000 + dice.randrange(4)},
                           {'tokens': max(1, scale(int(dice.expovariate(1 / 100)) + 1)), 'salt': 30000 + i}],
                'max_tokens': 1 + int(dice.expovariate(1 / 40)), 'choices': dice.choice([1, 1, 1, 2, 4])}
        if dice.random() < 0.15:
            line['cancel_after'] = dice.randrange(1, 20)
        yield line


TRACES = {'shared': shared, 'chats': chats, 'agents': agents, 'flood': flood, 'long_beside': long_beside,
          'mixed': mixed}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder', type=pathlib.Path)
    parser.add_argument('--scale', type=float, default=1.0)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for name, make in TRACES.items():
        lines = [json.dumps(line) for line in make(lambda n: max(1, round(n * args.scale)))]
        (args.folder / f'{name}.jsonl').write_text('\n'.join(lines) + '\n')


if __name__ == '__main__':
    main()

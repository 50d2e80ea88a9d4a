#!/usr/bin/env python3
"""Requests of all lengths for a while, under a budget: the resident set stays within it and does not grow, and no
request fails.

usage: soak.py --program build/kvasir [--minutes M]

Replays a trace on the shipped model tales under --ram and --max-sequences 64. Fails if a request fails, if the peak of
the resident set exceeds the budget, or if, after a tenth of the time, it grows by more than 0.5 MB a minute (a line
through its samples; runs under 3 minutes are too short for that and only report it). With KVASIR_TEST_ALL=1, 30 minutes
instead of 0.3.
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

RAM = 96 << 20
MOST_SLOPE = 0.5e6     # bytes a minute
REQUESTS_A_SECOND = 10


def trace(minutes):
    dice = random.Random(3)
    for i in range(int(minutes * 60 * REQUESTS_A_SECOND)):
        line = {'name': f'r{i}', 'at': round(i / REQUESTS_A_SECOND, 3), 'owner': f'o{dice.randrange(64)}',
                'prompt': [{'tokens': dice.choice([16, 64, 128]), 'salt': dice.randrange(20)},
                           {'tokens': dice.randrange(1, 100), 'salt': 1000 + i}],
                'max_tokens': dice.randrange(1, 60), 'choices': dice.choice([1, 1, 1, 2])}
        if dice.random() < 0.15:
            line['cancel_after'] = dice.randrange(1, 20)
        yield json.dumps(line) + '\n'


def resident(pid):
    for line in pathlib.Path(f'/proc/{pid}/status').read_text(encoding='ascii').splitlines():
        if line.startswith('VmRSS:'):
            return int(line.split()[1]) * 1024
    return None


def slope(samples):
    """Bytes a minute of the line through (seconds, bytes)."""
    n = len(samples)
    mean_x, mean_y = (sum(s[i] for s in samples) / n for i in (0, 1))
    spread = sum((x - mean_x) ** 2 for x, _ in samples)
    return 60 * sum((x - mean_x) * (y - mean_y) for x, y in samples) / spread if spread else 0.0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', required=True)
    parser.add_argument('--minutes', type=float, default=30 if os.environ.get('KVASIR_TEST_ALL') else 0.3)
    args = parser.parse_args()
    samples = []
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / 'soak.jsonl'
        path.write_text(''.join(trace(args.minutes)), encoding='ascii')
        command = [args.program, 'bench', 'tales', '--serve', str(path), '--ram', str(RAM), '--max-sequences', '64',
                   '-t', '2', '--json']
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
            start = time.monotonic()
            while run.poll() is None:
                at, held = time.monotonic() - start, resident(run.pid)
                if held is not None and at > args.minutes * 6:
                    samples.append((at, held))
                time.sleep(0.25)
            report = json.loads(run.stdout.read())
    grows = slope(samples) if samples else 0.0
    peak = report['peak_rss_bytes']
    print(f"{report['requests']} requests: {report['finished']} finished, {report['cancelled']} cancelled, "
          f"{report['failed']} failed, {report['preemptions']} preemptions; peak {peak:,} of {RAM:,} bytes, "
          f'{grows:+,.0f} bytes a minute')
    good = report['failed'] == 0 and report['finished'] > 0 and peak <= RAM
    if args.minutes >= 3:
        good = good and grows <= MOST_SLOPE
    return 0 if good else 1


if __name__ == '__main__':
    sys.exit(main())

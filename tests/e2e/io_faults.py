"""Streamed weights on a disk that fails: EIO, slow reads, a file truncated while in use. Exits 0 or 1.

usage: io_faults.py --program build/kvasir --preload build/faulty_io.so

Runs copies of models/tales with tests/e2e/faulty_io.cc preloaded (its head lists the variables). Counts the bytes of a
whole run first, so that a fault comes in the middle of a pass whatever the size of a read.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOKENS = 16          # also the number of passes: the prompt's, and one per token except the last
MIDDLE = 7.5 / TOKENS
PLACE = r'layer \d+|vocabulary head'
failures = 0


def check(good, what):
    global failures
    failures += not good
    if not good:
        print('FAIL:', what, flush=True)


class Bench:
    """The program, the preload and a folder for copies of the model."""

    def __init__(self, program, preload, folder):
        self.program, self.preload, self.folder = program, preload, folder
        self.copies = 0

    def model(self):
        """A new copy: (folder, weight file)."""
        self.copies += 1
        folder = os.path.join(self.folder, f'tales-{self.copies}')
        shutil.copytree(os.path.join(ROOT, 'models', 'tales'), folder)
        return folder, os.path.join(folder, 'model.safetensors')

    def run(self, model, weights, **faults):
        """One greedy run. `faults`: the KVASIR_FAULT variables in lower case without the prefix; without any, nothing
        is preloaded."""
        env = os.environ | {'XDG_CACHE_HOME': os.path.join(self.folder, 'cache')}
        if faults:
            env |= {'LD_PRELOAD': self.preload, 'KVASIR_FAULT_FILE': os.path.join(model, 'model.safetensors')}
            env |= {'KVASIR_FAULT' + ('' if key == 'kind' else '_' + key.upper()): str(value)
                    for key, value in faults.items()}
        return subprocess.run([self.program, 'run', model, '-p', 'Hello', '-n', str(TOKENS), '--greedy',
                               '--ignore-eos', '--threads', '2', '--weights', weights, '--receipt'],
                              capture_output=True, text=True, errors='replace', env=env, timeout=60, check=False)


def receipt(done, what):
    found = re.search(r'^receipt (\w+)$', done.stdout, re.MULTILINE)
    check(done.returncode == 0 and found and not done.stderr, f'{what}: exit {done.returncode}, {done.stderr}')
    return found.group(1) if found else None


def check_refused(done, what, *needles):
    """Expects exit code 2, one line that matches every needle (regular expressions), and no answer."""
    lines = done.stderr.splitlines()
    check(done.returncode == 2 and len(lines) == 1 and 'receipt' not in done.stdout,
          f'{what}: exit {done.returncode}, {done.stderr}')
    for needle in needles:
        check(re.search(needle, done.stderr), f'{what}: no {needle} in: {done.stderr}')


def check_eio(bench, model, path, total):
    done = bench.run(model, 'streamed', kind='eio', after=int(total * MIDDLE))
    print('eio:', done.stderr.strip())
    check_refused(done, 'eio', re.escape(path), PLACE, 'Input/output error')
    check(done.stdout.startswith('Hello'), f'eio came before the first token: {done.stdout!r}')
    for tenth in range(10):  # wherever it comes: while opening, in a layer, in the head
        check_refused(bench.run(model, 'streamed', kind='eio', after=total * tenth // 10), f'eio after {tenth}/10',
                      re.escape(path))


def check_slow(bench, model, good):
    begin = time.monotonic()
    check(receipt(bench.run(model, 'streamed', kind='slow', ms=5), 'slow') == good, 'slow: another receipt')
    print(f'slow: {time.monotonic() - begin:.1f} s')


def check_truncated(bench, total):
    model, path = bench.model()
    size = os.path.getsize(path)
    done = bench.run(model, 'streamed', kind='truncate', after=int(total * MIDDLE))
    print('truncate:', done.stderr.strip())
    check_refused(done, 'truncate', re.escape(path), PLACE)
    check(done.stdout.startswith('Hello'), f'the cut came before the first token: {done.stdout!r}')
    check(os.path.getsize(path) == size // 2, 'the file was not cut')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--program', required=True)
    parser.add_argument('--preload', required=True)
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(os.path.abspath(a.program), os.path.abspath(a.preload), os.path.realpath(folder))
        model, path = bench.model()
        size = os.path.getsize(path)
        good = receipt(bench.run(model, 'resident'), 'resident')
        check_refused(bench.run(model, 'resident', kind='eio', after=size // 2), 'resident, eio', re.escape(path),
                      r'tensor "model\.layers\.\d')

        check(receipt(bench.run(model, 'streamed'), 'streamed') == good, 'streamed: another receipt')
        count = os.path.join(folder, 'count')
        check(receipt(bench.run(model, 'streamed', count=count), 'plain reads') == good, 'plain reads: another receipt')
        with open(count, encoding='utf-8') as file:
            total = int(file.read())
        print(f'{total:,} bytes read of a file of {size:,}')
        check(total > TOKENS // 2 * size, 'the weights were not read again in every pass, or not by the preload')
        check_eio(bench, model, path, total)
        check_slow(bench, model, good)
        check_truncated(bench, total)
    print('FAILED' if failures else 'passed')
    sys.exit(1 if failures else 0)


if __name__ == '__main__':
    main()

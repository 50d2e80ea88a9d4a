"""bench/compare with two fake peers: order and arguments of the runs, arithmetic, JSON, refusals. Exits 0 or 1.

usage: bench_compare.py --program build/kvasir

The peers print what llama-bench prints with -o json, with a different speed each time. Kvasir is the real one, on
models/tales as GGUF, behind a script that logs each run.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COMPARE = os.path.join(ROOT, 'bench', 'compare')
PROMPT, GENERATE, DEPTH, PAIRS = 16, 4, 24, 5

# Each run's arguments go to a log; a speed is 100 + 7 for every line that the log had.
PEER = '''#!/usr/bin/env python3
import json, sys
log = {log!r}
with open(log) as file:
    runs = len(file.readlines())
with open(log, 'a') as file:
    file.write('{name} ' + ' '.join(sys.argv[1:]) + chr(10))
value = lambda flag: int(sys.argv[sys.argv.index(flag) + 1])
print('a line that is no JSON')
print(json.dumps([{{'build_commit': 'abc{name}', 'model_type': 'llama 3M BF16', 'n_prompt': value('-p'),
                    'n_gen': value('-n'), 'n_depth': 24, 'avg_ts': 100.0 + 7 * runs}}], indent=2))
'''
KVASIR = '''#!/bin/sh
echo "kvasir $*" >> '{log}'
exec '{program}' "$@"
'''
failures = 0


def check(good, what):
    global failures
    failures += not good
    if not good:
        print('FAIL:', what, flush=True)


def script(path, text):
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    os.chmod(path, 0o755)
    return path


def compare(*arguments):
    return subprocess.run([COMPARE, *arguments], capture_output=True, text=True, check=False)


def lines_of(path):
    with open(path, encoding='utf-8') as file:
        return file.read().splitlines()


def check_commands(log, model):
    """Checks the order (both peers' prefill, Kvasir, both peers' decode, repeated) and the arguments: the same file,
    threads, depth and KV types for all."""
    check([line.split()[0] for line in log] == ['one', 'two', 'kvasir', 'one', 'two'] * PAIRS, f'in turns: {log}')
    common = f'-m {model} -t 1 -p {{}} -n {{}} -r 1 -ctk f16 -ctv f16 -o json -d {DEPTH} -fa 1'
    for i, line in enumerate(log):
        want = [f'one {common.format(PROMPT, 0)}', f'two {common.format(PROMPT, 0)}',
                f'kvasir bench {model} -p {PROMPT} -n {GENERATE} -t 1 -d {DEPTH} -r 1 --kv-type f16 --json',
                f'one {common.format(0, GENERATE)}', f'two {common.format(0, GENERATE)}'][i % 5]
        check(line == want, f'{line!r} instead of {want!r}')


def check_peer(out, name, phase, place):
    """Recomputes every ratio and median of a peer from the numbers of the rounds. Returns the median ratio."""
    ratios = []
    for i, one in enumerate(out['rounds']):
        p, mine = one['peers'][name][phase], one['kvasir'][phase]
        check(p['tok_s'] == 100 + 7 * (5 * i + place), f'{name}, {phase}, round {i}: {p["tok_s"]}')
        ratios.append(mine['tok_s'] / p['tok_s'])
        check(abs(p['ratio'] / ratios[-1] - 1) < 1e-12, f'{name}, {phase}, ratio of round {i}')
        check(0 < p['of_limit'] and abs(mine['of_limit'] / p['of_limit'] / p['ratio'] - 1) < 1e-12,
              f'{name}, {phase}, fraction of the limit, round {i}')
    check(out['peers'][name][phase]['ratio'] ==
          {'median': statistics.median(ratios), 'min': min(ratios), 'max': max(ratios)},
          f'{name}, {phase}: range of the ratios')
    return statistics.median(ratios)


def check_numbers(out):
    check(len(out['rounds']) == PAIRS, 'rounds')
    for phase, first in (('prefill', 0), ('decode', 3)):
        medians = [check_peer(out, name, phase, first + i) for i, name in enumerate(('one', 'two'))]
        check(out['least_ratio'][phase] == min(medians), f'{phase}: the least ratio')
    for name in ('date', 'cpu', 'cpus', 'kvasir_cpu', 'read_bytes_s', 'flops', 'int8_ops', 'peers'):
        check(bool(out[name]), f'{name} is empty')
    check((out['threads'], out['depth'], out['kv_type']) == (1, DEPTH, 'f16'), 'settings')
    check([out['peers'][name]['commit'] for name in ('one', 'two')] == ['abcone', 'abctwo'], 'commits')


def check_markdown(path, out):
    lines = lines_of(path)
    check(len(lines) == 4 and all(line.count('|') == 7 for line in lines), f'a table of two tests: {lines}')
    for phase, line in zip(('prefill', 'decode'), lines[2:]):
        check(f'**{out["least_ratio"][phase]:.2f}**' in line, f'{phase}: the least ratio is bold in {line}')


def check_one_phase(peer, kvasir, model, folder):
    path = os.path.join(folder, 'decode.json')
    done = compare('--peer', peer, '--model', model, '--kvasir', kvasir, '-t', '1', '-p', '0', '-n', '2', '--json',
                   path)
    check(done.returncode == 0, done.stderr)
    with open(path, encoding='utf-8') as file:
        out = json.load(file)
    check(list(out['kvasir']) == ['decode'] and out['least_ratio']['decode'] > 0, 'decode alone')
    check(list(out['peers']) == [os.path.basename(folder)], 'a peer without a name has its folder\'s')


def check_refusals(peer, kvasir, model, folder):
    broken = script(os.path.join(folder, 'broken'), '#!/bin/sh\necho bad luck >&2\nexit 3\n')
    silent = script(os.path.join(folder, 'silent'), '#!/bin/sh\necho "| model | t/s |"\n')
    other = script(os.path.join(folder, 'other'), '#!/bin/sh\necho \'[{"n_prompt": 1, "n_gen": 1, "avg_ts": 5.0}]\'\n')
    unverified = script(os.path.join(folder, 'unverified'), '#!/bin/sh\necho \'{"verified": false, "tests": []}\'\n')
    good = {'--peer': peer, '--model': model, '--kvasir': kvasir, '-p': '4', '-n': '2'}
    for changed, needle in (({'--pairs': '4'}, 'fewer than 5'), ({'--model': folder + '/none.gguf'}, 'none.gguf'),
                            ({'--threads': '0'}, '--threads 1 or more'), ({'-p': '0', '-n': '0'}, 'one of -p and -n'),
                            ({'--json': folder + '/none/out'}, 'does not exist'),
                            ({'--markdown': folder + '/none/out'}, 'does not exist'),
                            ({'--peer': folder + '/none'}, 'No such file'), ({'--peer': broken}, 'bad luck'),
                            ({'--peer': silent}, 'not the JSON'), ({'--peer': other}, '0 results'),
                            ({'--kvasir': unverified}, 'not verified'), ({'--kvasir': broken}, 'exit code 3')):
        done = compare(*(word for item in (good | changed).items() for word in item))
        check(done.returncode == 2 and needle in done.stderr and 'Traceback' not in done.stderr,
              f'{changed}: exit code {done.returncode}, {done.stderr}')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--program', required=True)
    program = os.path.abspath(parser.parse_args().program)
    with tempfile.TemporaryDirectory() as folder:
        model, log, out = (os.path.join(folder, name) for name in ('tales.gguf', 'log', 'out.json'))
        subprocess.run([sys.executable, os.path.join(ROOT, 'tests', 'golden', 'to_gguf.py'),
                        os.path.join(ROOT, 'models', 'tales'), model], check=True, stdout=subprocess.DEVNULL)
        open(log, 'w', encoding='utf-8').close()
        peer, other = (script(os.path.join(folder, name), PEER.format(log=log, name=name)) for name in ('one', 'two'))
        table = os.path.join(folder, 'table.md')
        kvasir = script(os.path.join(folder, 'kvasir'), KVASIR.format(log=log, program=program))
        done = compare('--peer', 'one=' + peer, '--peer', 'two=' + other, '--model', model, '--kvasir', kvasir,
                       '--threads', '1', '-p', str(PROMPT), '-n', str(GENERATE), '--depth', str(DEPTH), '--pairs',
                       str(PAIRS), '--peer-args=-fa 1', '--json', out, '--markdown', table)
        check(done.returncode == 0, done.stderr)
        print(done.stdout)
        check_commands(lines_of(log), model)
        with open(out, encoding='utf-8') as file:
            numbers = json.load(file)
        check_numbers(numbers)
        check_markdown(table, numbers)
        check_one_phase(peer, kvasir, model, folder)
        check_refusals(peer, kvasir, model, folder)
    print('FAILED' if failures else 'passed')
    sys.exit(1 if failures else 0)


if __name__ == '__main__':
    main()

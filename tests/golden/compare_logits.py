"""Compares the program's logits with the oracle's, position by position. Exits 0 (close), 1 (not) or 77 (no model here).

usage: compare_logits.py --program build/kvasir --model M [--ids 1,2,3 | --count 300] --tolerance 1e-4 [--relative]
                         [--window W --sinks S]

M is a path, a name from models/, or data:PATH in the folder of outside data (KVASIR_DATA, else ../shared/data beside
the repository). --count N makes N ids spread over the vocabulary. A folder with gpt-nano's JSON files is converted
first, and then compared with the logits stored in it instead of the oracle's. --relative divides the difference by the
largest |logit| of the oracle. --window and --sinks are passed to both.
"""
import argparse
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np

    import oracle
except ImportError as error:
    sys.exit(f'compare_logits.py: {error} (try: scripts/install_packages.sh test, and /usr/bin/python3)')

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SKIPPED = 77
NANO = ('gpt-nano-sort-model.json', 'gpt-nano-sort-t0-partials.json')


def find_model(name):
    if name.startswith('data:'):
        data = os.environ.get('KVASIR_DATA') or os.path.join(ROOT, '..', 'shared', 'data')
        return os.path.abspath(os.path.join(data, name[len('data:'):]))
    shipped = os.path.join(ROOT, 'models', name)
    return shipped if os.path.isdir(shipped) else os.path.abspath(name)


def run_program(program, model, ids, out, options=()):
    command = [program, 'logits', model, '--ids', ','.join(map(str, ids)), '--out', out, *options]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f'{" ".join(command)}\nexit code {result.returncode}\n{result.stdout}{result.stderr}')
    return np.load(out)


def made_up_ids(count, vocab):
    return [(i * i * 131 + i * 17 + 5) % vocab for i in range(count)]


def cases(args, model, scratch):
    """Yields (model path, ids, expected logits)."""
    if os.path.exists(os.path.join(model, NANO[0])):
        folder = os.path.join(scratch, 'nano')
        oracle.convert_nano(*(os.path.join(model, name) for name in NANO), folder)
        ids = np.load(os.path.join(folder, 'partials', 'idx.npy')).astype(int)
        expected = np.load(os.path.join(folder, 'partials', 'lm_head.npy'))
        for row, want in zip(ids, expected):
            yield folder, row.tolist(), want
        return
    forward, vocab, context = oracle.load(model)
    ids = oracle.parse_ids(args.ids, vocab, context) if args.ids else made_up_ids(args.count, vocab)
    yield model, ids, forward(ids, oracle.Memory(args.window, args.sinks))


def compare(got, want, relative):
    """Returns (largest difference, its position and id, number of positions that disagree on the best id)."""
    if got.size != want.size:
        sys.exit(f'the program gave logits of shape {got.shape}, the oracle {want.shape}')
    got = got.reshape(want.shape).astype(np.float64)
    difference = np.abs(got - want)
    difference[~np.isfinite(got)] = np.inf
    if relative:
        difference /= np.abs(want).max()
    at = np.unravel_index(difference.argmax(), difference.shape)
    return float(difference[at]), at, int((got.argmax(-1) != want.argmax(-1)).sum())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', required=True)
    parser.add_argument('--model', required=True)
    parser.add_argument('--ids')
    parser.add_argument('--count', type=int, default=20)
    parser.add_argument('--tolerance', type=float, required=True)
    parser.add_argument('--relative', action='store_true')
    parser.add_argument('--window', type=int, default=0)
    parser.add_argument('--sinks', type=int, default=0)
    args = parser.parse_args()
    model = find_model(args.model)
    if not os.path.exists(model):
        print(f'skipped: {model} is absent')
        return SKIPPED
    window = ['--window', str(args.window), '--sinks', str(args.sinks)] if args.window else []
    good = True
    with tempfile.TemporaryDirectory() as scratch:
        for path, ids, want in cases(args, model, scratch):
            got = run_program(os.path.abspath(args.program), path, ids, os.path.join(scratch, 'logits.npy'), window)
            worst, (position, token), others = compare(got, want, args.relative)
            good = good and worst <= args.tolerance
            print(f'{args.model}: {len(ids)} positions, max {"relative " if args.relative else ""}|difference| '
                  f'{worst:.3g} (allowed {args.tolerance:.3g}) at position {position}, id {token}; '
                  f'the best id differs at {others} positions')
    return 0 if good else 1


if __name__ == '__main__':
    sys.exit(main())

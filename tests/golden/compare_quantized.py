"""GGUF files that `quantize` writes against the float64 oracle, which decodes the same files. Exits 0 or 1.

usage: compare_quantized.py --program build/kvasir

The text is what the model writes after the first prompts of models/prompts.txt. For a file of floats every logit must
be near the oracle's. For a file of integers the oracle uses the decoded weights and float64 activations, while the
program rounds activations to 8 bits (docs/numerics.md). The cost of that is the mean over positions of KL(oracle ||
program), and how often both have the same best id: over all positions, and over the clear ones, where the oracle's two
best probabilities are far enough apart.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

import oracle
from compare_logits import ROOT, compare, run_program

PROMPTS, TOKENS = 2, 300
MOST_RELATIVE = 1e-4     # largest difference / largest |logit|, for floats
CLEAR = 0.01
# For integers. Measured 2026-11-30 on this text, tales q8_0, q4_0, q4_k, then tiny-k: KL 2.2, 2.4, 2.3, 1.5e-4; the
# same best id at 0.990, 0.982, 0.980, 0.981 of all positions, at 1, 0.998, 0.998, 1 of the clear ones. tiny-k has
# random weights and few positions with a clear best id: 0.967 to 0.981 on 2026-12-03, 1 of the clear ones. On 17,230
# positions of TinyStories q8_0 has 3.0e-4 and 0.984; llama.cpp, which rounds activations in the same way, has the same.
MOST_KL, LEAST_CLEAR = 5e-4, 0.99
LEAST_SAME = {'tales': {'q8_0': 0.99, 'q4_0': 0.97, 'q4_k': 0.97, 'iq4_nl': 0.97},
              'tiny-k': dict.fromkeys(('q4_k', 'q4_k_m', 'q5_k', 'q6_k', 'q3_k', 'q2_k', 'iq4_xs'), 0.95)}
FLOATS = {'tales': ('f16', 'bf16'), 'tiny-k': ()}     # q4_k of tales: rows of 192 are q5_0 and q8_0


def call(program, *arguments):
    done = subprocess.run([program, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f'{program} {" ".join(arguments)}\nexit code {done.returncode}\n{done.stderr}')
    return done.stdout


def texts(program, model):
    """Token ids, one list for each prompt."""
    with open(os.path.join(ROOT, 'models', 'prompts.txt'), encoding='utf-8') as file:
        prompts = file.read().splitlines()[:PROMPTS]
    out = []
    for prompt in prompts:
        ids = json.loads(call(program, 'tokenize', model, prompt, '--json'))['ids']
        more = call(program, 'run', model, '-p', prompt, '-n', str(TOKENS), '--temp', '0.8', '--seed', '1',
                    '--ignore-eos', '--json')
        out.append(ids + json.loads(more)['tokens'])
    return out


def log_softmax(logits):
    logits = logits.astype(np.float64) - logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def losses(got, want):
    """Returns for each position: KL(want || got), whether the best id is the same, whether it is clear in `want`."""
    log_want, log_got = log_softmax(want), log_softmax(got)
    second, best = np.partition(np.exp(log_want), -2)[:, -2:].T
    return ((np.exp(log_want) * (log_want - log_got)).sum(-1), got.argmax(-1) == want.argmax(-1),
            best - second >= CLEAR)


def check(program, path, least_same, sequences, scratch):
    """Prints a line; returns True if the model stays within the bounds of its type. least_same None: floats."""
    forward = oracle.load(path)[0]
    worst, parts = 0.0, []
    for ids in sequences:
        got, want = run_program(program, path, ids, os.path.join(scratch, 'logits.npy')), forward(ids)
        worst = max(worst, compare(got, want, relative=True)[0])
        parts.append(losses(got, want))
    kl, same, clear = (np.concatenate(column) for column in zip(*parts))
    if least_same:
        good = kl.mean() <= MOST_KL and same.mean() >= least_same and same[clear].mean() >= LEAST_CLEAR
    else:
        good = worst <= MOST_RELATIVE
    print(f'{os.path.basename(path):<20}{len(kl)} positions: relative |difference| {worst:.2g}; KL {kl.mean():.3g}, at '
          f'most {kl.max():.2g}; same best id {same.mean():.4f}, of {clear.sum()} clear ones {same[clear].mean():.4f}'
          f'{"" if good else "   FAIL"}', flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', required=True)
    program = os.path.abspath(parser.parse_args().program)
    good = True
    with tempfile.TemporaryDirectory() as scratch:
        tiny = os.path.join(scratch, 'tiny-k')
        call(program, 'synth', 'tiny-k', tiny, '--seed', '1')
        for folder in (os.path.join(ROOT, 'models', 'tales'), tiny):
            name = os.path.basename(folder)
            sequences = texts(program, folder)
            good &= check(program, folder, None, sequences, scratch)
            for kind in (*FLOATS[name], *LEAST_SAME[name]):
                path = os.path.join(scratch, f'{name}-{kind}.gguf')
                call(program, 'quantize', folder, path, '--type', kind)
                good &= check(program, path, LEAST_SAME[name].get(kind), sequences, scratch)
    return 0 if good else 1


if __name__ == '__main__':
    sys.exit(main())

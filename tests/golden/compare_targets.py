"""The same receipts on this machine and on 64-bit Arm under qemu-user. Exits 0 or 1.

usage: compare_targets.py --program build/kvasir --arm RUNNER... neon_receipts      (cmake/neon.cmake)

The models: models/tales in several types that `kvasir quantize` writes; `synth tiny-k`, whose rows are whole blocks of
256, in types of such blocks; and for each block that Llama lacks a tiny model of a family that has it
(make_families.py), computed by this machine's own targets too. The first model also runs with K and V in integer types. All receipts must differ. 70 ids cross a tile of attention and 8 more follow. receipt_test.cc
checks that this machine's targets agree on Llama models.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

from compare_logits import ROOT, made_up_ids
from make_families import write_model

MODELS = (('tales', 4096, ('f16', 'bf16', 'q8_0', 'q4_0', 'q4_k')), ('tiny-k', 512, ('q4_k', 'q3_k', 'q2_k', 'iq4_xs')))
KV_TYPES = ('q8_0', 'q4_0h')     # of the first model, besides f32
# Soft caps and GELU; two thetas; layers without RoPE; multipliers; YaRN and temperature; norms after, of rows; LongRoPE;
# LayerNorm, parallel, rotated in part; experts by softmax, by sigmoid, by near scores; scores for nothing and MXFP4.
FAMILIES = ('gemma2', 'gemma3', 'smollm3', 'granite', 'ministral3', 'olmo2', 'phi4_long', 'phi', 'qwen3_moe', 'glm4_moe',
            'phimoe', 'gpt_oss_mxfp4')
VOCAB = 48     # of these
COUNT = '8'
HERE = ('scalar', 'avx2', 'avx512')
TARGETS = ('neon', 'neon_dotprod')


def has_target(program, cpu):
    """True if this machine can compute as that target."""
    return subprocess.run([program, 'run', 'tales', '--ids', '1', '-n', '1'], capture_output=True, check=False,
                          env={**os.environ, 'KVASIR_CPU': cpu}).returncode == 0


def start(command, scratch, cpu=None):
    """Returns a command's stdout. Each CPU target has its own folder of stored fingerprints, so that each computes
    them."""
    environment = {**os.environ, 'XDG_CACHE_HOME': os.path.join(scratch, f'cache of {cpu}')}
    if cpu:
        environment['KVASIR_CPU'] = cpu
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          env=environment)
    if done.returncode != 0:
        sys.exit(f'{" ".join(command)}: exit code {done.returncode}: {done.stderr.strip()}')
    return done.stdout


def write_models(program, scratch):
    """Returns [(name, ids, path)]."""
    start([program, 'synth', 'tiny-k', os.path.join(scratch, 'tiny-k')], scratch)
    models = []
    for name, vocab, types in MODELS:
        folder = os.path.join(ROOT, 'models', name) if name == 'tales' else os.path.join(scratch, name)
        for kind in types:
            path = os.path.join(scratch, f'{name}-{kind}.gguf')
            start([program, 'quantize', folder, path, '--type', kind], scratch)
            models.append((f'{name} {kind}', ','.join(map(str, made_up_ids(70, vocab))), path))
    return models


def write_families(scratch):
    ids = made_up_ids(70, VOCAB)
    return [(name, ','.join(map(str, ids)), write_model(name, scratch, ids, 1)[1]) for name in FAMILIES]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', required=True)
    parser.add_argument('--arm', required=True, nargs=argparse.REMAINDER)
    args = parser.parse_args()
    failures, seen = 0, set()
    with tempfile.TemporaryDirectory() as scratch:
        models, families = write_models(args.program, scratch), write_families(scratch)
        runs = [(*model, 'f32') for model in models + families] + [(*models[0], kind) for kind in KV_TYPES]
        here = [cpu for cpu in HERE if has_target(args.program, cpu)]
        for name, ids, path, kv_type in runs:
            command = [args.program, 'run', path, '--ids', ids, '-n', COUNT, '--greedy', '--ignore-eos', '--receipt',
                       '--json', '--kv-type', kv_type]
            answer = json.loads(start(command, scratch))
            for cpu in here if name in FAMILIES else ():
                receipt = json.loads(start(command, scratch, cpu))['receipt']
                failures += receipt != answer['receipt']
                if receipt != answer['receipt']:
                    print(f'{name:<12} {kv_type:<6} {receipt} on {cpu}   FAIL', flush=True)
            for cpu in TARGETS:
                target, receipt = start([*args.arm, ids, COUNT, kv_type, path], scratch, cpu).split()
                good = receipt == answer['receipt'] and target == cpu
                failures += not good
                print(f'{name:<12} {kv_type:<6} {answer["receipt"]} on {answer["stats"]["cpu"]}, {receipt} on {target}'
                      f'{"" if good else "   FAIL"}', flush=True)
            seen.add(answer['receipt'])
    if len(seen) != len(runs):
        sys.exit('FAIL: two of the runs have one receipt')
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())

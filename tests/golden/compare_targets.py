"""One receipt on every CPU target: this machine's own, and 64-bit Arm's under qemu-user. Exits 0 or 1.

usage: compare_targets.py --program build/kvasir --arm RUNNER... neon_receipts      (cmake/neon.cmake)

The models are models/tales in every type of fewer than 32 bits that `kvasir quantize` writes, and a random one whose
rows are whole blocks of 256, so that q4_k and q6_k are all of it; their receipts must differ. 70 ids cross a tile of
attention and 8 more follow.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

from compare_logits import ROOT, made_up_ids

TYPES = ('f16', 'bf16', 'q8_0', 'q4_0', 'q4_k')
NATIVE = ('scalar', 'avx2', 'avx512')
COUNT = '8'
WIDE = {'model_type': 'llama', 'architectures': ['LlamaForCausalLM'], 'hidden_act': 'silu', 'hidden_size': 256,
        'intermediate_size': 512, 'num_hidden_layers': 2, 'num_attention_heads': 4, 'num_key_value_heads': 2,
        'vocab_size': 1024, 'max_position_embeddings': 256, 'rms_norm_eps': 1e-5, 'rope_theta': 10000.0,
        'tie_word_embeddings': True}


def start(command, cpu, scratch):
    """Runs a command; what it knows of other runs is kept from it, so that each computes its own fingerprint."""
    environment = {**os.environ, 'KVASIR_CPU': cpu, 'XDG_CACHE_HOME': os.path.join(scratch, 'cache of ' + cpu)}
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          env=environment)


def checked(result):
    if result.returncode != 0:
        sys.exit(f'{" ".join(result.args)}: exit code {result.returncode}: {result.stderr.strip()}')
    return result.stdout


def write_models(program, scratch):
    """[(name, ids, path)]"""
    config, wide = os.path.join(scratch, 'config.json'), os.path.join(scratch, 'wide')
    with open(config, 'w', encoding='utf-8') as file:
        json.dump(WIDE, file)
    checked(start([program, 'synth', config, wide], '', scratch))
    models = []
    for folder, types in ((os.path.join(ROOT, 'models', 'tales'), TYPES), (wide, ('q4_k',))):
        name = os.path.basename(folder)
        vocab = 4096 if name == 'tales' else WIDE['vocab_size']
        for kind in types:
            path = os.path.join(scratch, f'{name}-{kind}.gguf')
            checked(start([program, 'quantize', folder, path, '--type', kind], '', scratch))
            models.append((f'{name} {kind}', ','.join(map(str, made_up_ids(70, vocab))), path))
    return models


def native_receipts(program, ids, path, scratch):
    """{target: receipt}; a target that this machine lacks is left out."""
    receipts = {}
    for cpu in NATIVE:
        result = start([program, 'run', path, '--ids', ids, '-n', COUNT, '--greedy', '--ignore-eos', '--receipt',
                        '--json', '--kv-type', 'f32'], cpu, scratch)
        if result.returncode != 0 and 'is not a CPU target of this machine' in result.stderr:
            continue
        answer = json.loads(checked(result))
        receipts[answer['stats']['cpu']] = answer['receipt']
    return receipts


def arm_receipts(arm, ids, path, scratch):
    """{target: receipt}"""
    target, receipt = checked(start([*arm, ids, COUNT, path], 'neon', scratch)).split()
    return {target: receipt}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', required=True)
    parser.add_argument('--arm', required=True, nargs=argparse.REMAINDER)
    args = parser.parse_args()
    failures, seen = 0, []
    with tempfile.TemporaryDirectory() as scratch:
        for name, ids, path in write_models(args.program, scratch):
            receipts = native_receipts(args.program, ids, path, scratch)
            receipts |= arm_receipts(args.arm, ids, path, scratch)
            good = len(set(receipts.values())) == 1 and {'scalar', 'neon'} <= set(receipts)
            failures += not good
            detail = f'{receipts["scalar"]} on {", ".join(receipts)}' if good else f'FAIL: {receipts}'
            print(f'{name:<12} {detail}', flush=True)
            seen.append(receipts['scalar'])
    if len(set(seen)) != len(seen):
        sys.exit('FAIL: two of the models have one receipt')
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())

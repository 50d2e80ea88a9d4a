"""The same weights in a Hugging Face folder and in GGUF give the same receipt, tokens and text. Exits 0 or 1.

usage: compare_receipts.py --program build/kvasir --models TINY      TINY: the folder that make_tiny.py wrote

The GGUF files are written here by to_gguf.py: for every tiny model, for models/tales and for models/tales-gpt2; for
some also split, of version 2, and aligned to 64 bytes. Different models must give different receipts.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

import to_gguf
from compare_logits import ROOT, made_up_ids
from make_tiny import VOCAB
from model_files import read_json

WRITTEN = {'split-3': {'split': 3}, 'version-2': {'version': 2}, 'aligned-64': {'alignment': 64},
           'split-2-aligned-64': {'split': 2, 'alignment': 64}}
VARIED = ('llama-v5', 'gpt2')     # the models written in all these ways
IDS = ['--ids', ','.join(map(str, made_up_ids(24, VOCAB)))]
failures = 0


def report(name, good, detail):
    global failures
    failures += not good
    print(f'{name:<44} {"" if good else "FAIL: "}{detail}', flush=True)


def run(program, model, arguments):
    """The JSON that the program prints; if it fails, its error under the same keys."""
    command = [program, 'run', model, '-n', '12', '--greedy', '--receipt', '--json', '--kv-type', 'f32', *arguments]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        return {'error': f'exit code {result.returncode}: {result.stderr.strip()}'}
    return json.loads(result.stdout)


def compare(name, want, got):
    """Whether two answers are one; an error is never equal to anything."""
    for answer in (want, got):
        if 'error' in answer:
            return report(name, False, answer['error'])
    different = [key for key in ('receipt', 'tokens', 'text', 'stop_reason') if want[key] != got[key]]
    detail = f'{got["receipt"]}, {len(got["tokens"])} tokens, {got["stop_reason"]}'
    report(name, not different, detail + ''.join(f'; {key}: {want[key]!r} in the folder' for key in different))


def stops_alike(program, folder, scratch, tokens):
    """Both files end the text at the second id of a list, here one that the model gives."""
    copy = os.path.join(scratch, 'stops')
    shutil.copytree(folder, copy)
    unseen = next(i for i in range(VOCAB) if i not in tokens)
    with open(os.path.join(copy, 'generation_config.json'), 'w', encoding='utf-8') as file:
        json.dump({'eos_token_id': [unseen, tokens[-1]]}, file)
    want = run(program, copy, IDS)
    compare('stops at the second end-of-text id', want, run(program, to_gguf.convert(copy, copy + '.gguf'), IDS))
    reason = want.get('stop_reason')
    report('stops before the limit', reason not in (None, 'length'), f'{reason}, {len(want.get("tokens", []))} tokens')


def compare_model(program, name, folder, scratch, arguments, pre=None):
    """The folder's answer, after all its other forms were compared with it."""
    arguments = [*arguments, '--ignore-eos']
    want = run(program, folder, arguments)
    gguf = to_gguf.convert(folder, os.path.join(scratch, name + '.gguf'), pre=pre)
    compare(f'{name}: gguf', want, run(program, gguf, arguments))
    for weights in ('resident', 'mapped', 'streamed'):
        for form, path in (('folder', folder), ('gguf', gguf)):
            compare(f'{name}: {form}, {weights}', want, run(program, path, [*arguments, '--weights', weights]))
    for way, options in WRITTEN.items() if name in VARIED else ():
        path = to_gguf.convert(folder, os.path.join(scratch, f'{name}-{way}.gguf'), **options)
        compare(f'{name}: gguf, {way}', want, run(program, path, arguments))
    return want


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', required=True)
    parser.add_argument('--models', required=True)
    args = parser.parse_args()
    program = os.path.abspath(args.program)
    tiny = {name: os.path.join(args.models, name) for name in sorted(os.listdir(args.models))
            if os.path.isdir(os.path.join(args.models, name))}
    if not tiny:
        sys.exit(f'{args.models} holds no model (try: make_tiny.py {args.models})')
    answers = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name, folder in tiny.items():
            answers[name] = compare_model(program, name, folder, scratch, IDS)
        tokens = answers.get('qwen3', {}).get('tokens')
        if tokens:
            stops_alike(program, tiny['qwen3'], scratch, tokens)
        for name in ('tales', 'tales-gpt2'):
            folder = os.path.join(ROOT, 'models', name)
            answers[name] = compare_model(program, name, folder, scratch, ['-p', 'Once upon a time'], pre='gpt-2')
            report(f'{name}: has text', bool(answers[name].get('text')), repr(answers[name].get('text')))
    receipts = [answer['receipt'] for answer in answers.values() if 'receipt' in answer]
    report('models and different receipts', len(set(receipts)) == len(answers), f'{len(answers)}, {len(set(receipts))}')
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())

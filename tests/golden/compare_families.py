"""The program's logits for tiny models of many families against the float64 oracle, and one receipt for both forms.

usage: compare_families.py PROGRAM OUT [NAME...] [--seed N] [--ids 1,2,3 | --count N]

Writes the models to OUT as make_families.py does. For each, as a folder and as GGUF: the largest difference, as a part
of the largest |logit|, is at most 1e-4; both forms have one fingerprint, one receipt, the same tokens. A line a model;
exits 1 if one fails, or is refused and is not known to be, by the word that is in the way.
"""
import argparse
import json
import os
import subprocess
import sys

import numpy as np

from make_families import add_arguments, ids_of, names_of, write_model

TOLERANCE = 1e-4
# Models that the program refuses, and a word that the error must have.
REFUSED = {('stablelm_12b', 'folder'): 'qk_layernorm', ('stablelm_12b', 'gguf'): 'use_parallel_residual',
           ('cohere_norms', 'folder'): 'use_qk_norm', ('cohere_norms', 'gguf'): 'use_qk_norm',
           ('gpt_oss', 'folder'): 'down_proj'}     # by column


class Refused(Exception):
    """The program's own words, for a model that it does not take."""


def ask(program, *arguments):
    """The standard output of the program."""
    command = [program, *arguments]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        said = (result.stderr.strip() or f'exit code {result.returncode}').splitlines()[-1]
        raise Refused(f'{arguments[0]}: {said}')
    return result.stdout


def difference(program, model, ids, want):
    out = model + '.got.npy'
    ask(program, 'logits', model, '--ids', ids, '--out', out)
    got = np.load(out).reshape(want.shape).astype(np.float64)
    os.remove(out)
    return float(np.abs(got - want).max() / np.abs(want).max()) if np.isfinite(got).all() else np.inf


def identity(program, model, ids):
    """The results that must be the same for a folder and a GGUF file."""
    answer = json.loads(ask(program, 'run', model, '--ids', ids, '-n', '12', '--greedy', '--receipt', '--json',
                            '--ignore-eos'))
    fingerprint = json.loads(ask(program, 'inspect', model, '--json'))['fingerprint']
    return {'fingerprint': fingerprint, 'receipt': answer['receipt'], 'tokens': answer['tokens']}


def compare(program, name, args):
    """(whether it is good, what to say)."""
    *models, want = write_model(name, args.out, ids_of(args), args.seed)
    ids, said, good, found = ','.join(map(str, ids_of(args))), [], True, []
    for form, model in zip(('folder', 'gguf'), models):
        if model is None:
            continue
        try:
            worst = difference(program, model, ids, want)
            good = good and worst <= TOLERANCE
            said.append(f'{form} {worst:.1e}' + ('' if worst <= TOLERANCE else ' too far'))
            found.append(identity(program, model, ids))
        except Refused as refusal:
            word = REFUSED.get((name, form))
            good = good and word is not None and word in str(refusal)
            said.append(f'{form} refused by {word}' if good else f'{form} refused ({refusal})')
        else:
            good = good and (name, form) not in REFUSED
    if len(found) == 2:
        other = [key for key in found[0] if found[0][key] != found[1][key]]
        good = good and not other
        said.append(f'another {", ".join(other)}' if other else found[0]['fingerprint'])
    return good, '  '.join(said)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program')
    parser.add_argument('out')
    add_arguments(parser)
    args = parser.parse_args()
    failed = 0
    for name in names_of(args):
        good, said = compare(os.path.abspath(args.program), name, args)
        failed += not good
        print(f'{name:<20} {"" if good else "FAIL: "}{said}', flush=True)
    if failed:
        print(f'{failed} of {len(names_of(args))} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())

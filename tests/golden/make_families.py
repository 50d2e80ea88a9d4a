"""Writes tiny random models of many families, as Hugging Face folders and as GGUF, and their logits in float64.

usage: make_families.py OUT [NAME...] [--seed N] [--ids 1,2,3 | --count N]

OUT/NAME/ (config.json, model.safetensors), OUT/NAME.gguf and OUT/NAME.npy [ids, vocabulary]; the GGUF file is read back
and must be equal. family_tiny.py has the models; without NAME all are written. The files are always the same.
"""
import argparse
import os
import sys

import numpy as np

import family_forward
import family_gguf
import family_mxfp4
from compare_logits import made_up_ids
from family_tensors import tensors_of
from family_tiny import FOLDER_ONLY, MODELS
from make_tiny import write_json
from model_files import write_safetensors

COUNT = 40


def add_arguments(parser):
    parser.add_argument('names', nargs='*', metavar='NAME')
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--ids')
    parser.add_argument('--count', type=int, default=COUNT)


def ids_of(args):
    return [int(item) for item in args.ids.split(',')] if args.ids else made_up_ids(args.count, 48)


def names_of(args):
    unknown = set(args.names) - set(MODELS)
    if unknown:
        sys.exit(f'no model is called {", ".join(sorted(unknown))}; these are: {", ".join(MODELS)}')
    return args.names or list(MODELS)


def read_back(name, gguf, weights, ids, want):
    """Checks that the file is equal, as far as float32 metadata and divisors allow."""
    stored, config = family_gguf.from_gguf(gguf)
    wrong = [key for key in {**stored, **weights} if not np.array_equal(stored.get(key), weights.get(key))]
    worst = np.abs(family_forward.logits(stored, config, ids) - want).max() / np.abs(want).max()
    if wrong or worst > 1e-5:
        sys.exit(f'{name}: GGUF gives other logits ({worst:.1e}) or other tensors: {", ".join(sorted(wrong))}')


def write_model(name, out, ids, seed=0):
    """Returns the paths (folder, gguf or None) and the logits."""
    config, folder = MODELS[name], os.path.join(out, name)
    weights = stored = tensors_of(name, config, seed)
    if 'quantization_config' in config:
        weights = family_mxfp4.rounded(weights)
        stored = family_mxfp4.folder_tensors(weights)
    os.makedirs(folder, exist_ok=True)
    write_json(os.path.join(folder, 'config.json'), config)
    write_safetensors(os.path.join(folder, 'model.safetensors'), stored)
    gguf = None if name in FOLDER_ONLY else folder + '.gguf'
    if gguf:
        family_gguf.to_gguf(config, weights, gguf)
    want = family_forward.logits(weights, config, ids)
    np.save(folder + '.npy', want)
    if gguf:
        read_back(name, gguf, weights, ids, want)
    return folder, gguf, want


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('out')
    add_arguments(parser)
    args = parser.parse_args()
    for name in names_of(args):
        write_model(name, args.out, ids_of(args), args.seed)
    return 0


if __name__ == '__main__':
    sys.exit(main())

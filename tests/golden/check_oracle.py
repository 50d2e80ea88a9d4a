"""Checks the oracle itself against numbers that other programs made. Exits 0 or 1; prints max |difference| per case.

The shipped models are compared with models/train/reference.py, a second float64 forward pass; the tiny models of
make_tiny.py with a third one, plain_llama.py, and with their own GGUF files; the models in the folder of outside data
(KVASIR_DATA, else ../shared/data beside the repository) with what their own runtimes printed. Without that folder those
cases are skipped, and a line says so.
"""
import json
import os
import sys
import tempfile

import numpy as np

import make_tiny
import model_files
import oracle
import plain_llama
import to_gguf

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.environ.get('KVASIR_DATA') or os.path.join(ROOT, '..', 'shared', 'data')
WINDOWS = {'llama3-scaled': ((7, 0), (6, 3), (1, 4))}     # and sinks, on models without a window of their own
failures = 0


def report(name, difference, tolerance):
    global failures
    good = difference <= tolerance     # False for a NaN too
    failures += not good
    print(f'{name:<40} max |difference| {difference:.3g}, allowed {tolerance:.3g}{"" if good else "   FAIL"}')


def biggest(a, b):
    return float(np.max(np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64))))


def shipped():
    sys.path.insert(0, os.path.join(ROOT, 'models', 'train'))
    sys.dont_write_bytecode = True
    import reference
    for name in ('tales', 'tales-gpt2'):
        path = os.path.join(ROOT, 'models', name)
        forward, vocab, _ = oracle.load(path)
        ids = [(i * i * 131 + i * 17 + 5) % vocab for i in range(90)]
        report(f'{name}: reference.py', biggest(forward(ids), reference.model(path)(ids)), 1e-10)


def permuted(weights, config):
    """Returns q and k with their rows reordered so that a rotation pair is adjacent, as in llama2.c and GGUF."""
    out = dict(weights)
    for name, rows in weights.items():
        for part, key in (('q_proj', 'num_attention_heads'), ('k_proj', 'num_key_value_heads')):
            if part in name:
                out[name] = to_gguf.pairs_together(rows, config[key])
    return out


def tiny():
    with tempfile.TemporaryDirectory() as out:
        for name in make_tiny.MODELS:
            folder = os.path.join(out, name)
            make_tiny.write_model(name, folder)
            config, stored = model_files.read_folder(folder)
            weights = {key: model_files.widen(*tensor) for key, tensor in stored.items()}
            ids = [(i * i * 131 + i * 17 + 5) % config['vocab_size'] for i in range(70)]
            logits = oracle.load(folder)[0](ids)
            if name != 'gpt2':
                some = 40 if any(model_files.layer_windows(config)) else 9
                plain = plain_llama.logits(weights, config, ids[:some])
                report(f'{name}: token by token', biggest(logits[:some], plain), 1e-10)
            if config['model_type'] in ('llama', 'mistral'):
                turned = oracle.llama(permuted(weights, config), config, ids, interleaved=True)
                report(f'{name}: pairs side by side', biggest(logits, turned), 1e-10)
            for window, sinks in WINDOWS.get(name, ()):
                plain = plain_llama.logits(weights, config, ids[:20], window, sinks)
                seen = oracle.llama(weights, config, ids[:20], oracle.Memory(window, sinks))
                report(f'{name}: window {window}, sinks {sinks}', biggest(seen, plain), 1e-10)
            other = oracle.load(to_gguf.convert(folder, folder + '.gguf'))[0](ids)
            report(f'{name}: its GGUF', biggest(logits, other), 1e-6)     # epsilon, RoPE's divisors are float32 there


def stories():
    folder = os.path.join(DATA, 'models', 'stories260K')
    with open(os.path.join(folder, 'reference_logits.json')) as file:
        prompts = json.load(file)['prompts']
    old = oracle.load(os.path.join(folder, 'stories260K.bin'))[0]
    new = oracle.load(os.path.join(folder, 'stories260K_v1.bin'))[0]
    for prompt in prompts:
        ids, label = prompt['ids_with_bos'], f'stories260K "{prompt["text"][:12]}..."'
        logits = old(ids)
        report(label + ' logits', biggest(logits[-1], prompt['last_logits']), 1e-4)
        report(label + ' v1 = v0', biggest(new(ids), logits), 0)
        nll = sum(np.log(np.exp(row).sum()) - row[after] for row, after in zip(logits[:-1], ids[1:]))
        report(label + ' nll', abs(nll - prompt['nll_sum']), 1e-3)
        grown, greedy = list(ids), prompt['greedy_next_ids']
        for _ in greedy:
            grown.append(int(old(grown)[-1].argmax()))
        report(label + ' greedy ids', biggest(grown[len(ids):], greedy), 0)


def tiny_gpt2():
    folder = os.path.join(DATA, 'models', 'tiny-random-gpt2')
    forward = oracle.load(folder)[0]
    with open(os.path.join(folder, 'reference_logits.json')) as file:
        for prompt in json.load(file)['prompts']:
            label = f'tiny-random-gpt2, {len(prompt["ids"])} ids'
            report(label, biggest(forward(prompt['ids'])[-1], prompt['last_logits']), 1e-6)


def nano():
    folder = os.path.join(DATA, 'models', 'gpt-nano-sort')
    with tempfile.TemporaryDirectory() as out:
        oracle.convert_nano(os.path.join(folder, 'gpt-nano-sort-model.json'),
                            os.path.join(folder, 'gpt-nano-sort-t0-partials.json'), out)
        with open(os.path.join(out, 'config.json')) as file:
            config = json.load(file)
        weights = model_files.read_safetensors(os.path.join(out, 'model.safetensors'))
        stored = {name[:-4]: np.load(os.path.join(out, 'partials', name))
                  for name in os.listdir(os.path.join(out, 'partials'))}
    worst = {}
    for row, ids in enumerate(stored['idx'].astype(int)):
        seen = {}
        seen['lm_head'] = oracle.gpt2(weights, config, ids, tap=seen.__setitem__)
        seen['probs'] = oracle.softmax(seen['lm_head'])
        for name, value in seen.items():
            same = np.isfinite(value)     # masked scores are -inf on both sides
            if not np.array_equal(same, np.isfinite(stored[name][row])):
                worst[name] = np.nan
            worst[name] = max(worst.get(name, 0), biggest(value[same], stored[name][row][same]))
    for name, difference in worst.items():
        report(f'gpt-nano-sort: {name}', difference, 1e-5)
    missing = set(stored) - set(worst) - {'idx', 'tok_emb', 'pos_emb'}
    report('gpt-nano-sort: stored but not compared', len(missing), 0)


def main():
    shipped()
    tiny()
    for name, check in (('stories260K', stories), ('tiny-random-gpt2', tiny_gpt2), ('gpt-nano-sort', nano)):
        if os.path.isdir(os.path.join(DATA, 'models', name)):
            check()
        else:
            print(f'{name:<40} left out: the folder of outside data is absent')
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())

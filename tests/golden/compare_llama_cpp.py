#!/usr/bin/env python3
"""GGUF files that Kvasir writes, opened by llama.cpp: the same ids for the same texts.

llama.cpp comes from npm as node-llama-cpp, whose package contains the built library; it is installed into the build
folder. Without Node.js, npm or the network this prints a line that begins with "skipped: " and passes."""
import argparse
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

VERSION = "3.14.2"
SHAPE = {"model_type": "mistral", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1,
         "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 512, "rms_norm_eps": 1e-5,
         "bos_token_id": 1, "eos_token_id": 2}
# No combining marks: llama.cpp does not normalise a text to NFC, as Qwen's tokenizer.json requires.
PARTS = ["Once upon a time", "in the end", " ", "  ", "    ", "\n", "\n\n", "\t", "the", " and", "1234", "3.5", "'s",
         "don't", "HELLO", "!?", "é", "Grüße", "日本", "中文。", "한국", "😀", "<0x0A>", "a world b", "▁", "user"]


def skip(why):
    print(f"skipped: {why}")
    sys.exit(0)


def install(folder):
    node, npm = shutil.which("node"), shutil.which("npm")
    if not node or not npm:
        skip("no node and npm (try: apt-get install nodejs npm)")
    marker = folder / f"installed-{VERSION}"
    if not marker.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "package.json").write_text('{"private": true}')
        names = [f"node-llama-cpp@{VERSION}", f"@node-llama-cpp/linux-x64@{VERSION}"]
        command = [npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--omit=optional", *names]
        try:
            subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=240)
        except (subprocess.SubprocessError, OSError) as error:
            skip(f"npm cannot install node-llama-cpp {VERSION} here ({type(error).__name__})")
        marker.touch()
    return node


def texts(special):
    rng = random.Random(11)
    made = ["", *special, *(f"{token}user" for token in special), *PARTS[:8]]
    while len(made) < 24:
        made.append("".join(rng.choice(special if special and rng.random() < 0.3 else PARTS)
                            for _ in range(rng.randint(1, 6))))
    return made


def folders(program, models, data, scratch):
    """Yields (name, folder, special pieces) for each kind of tokenizer that is present."""
    yield "tales", models / "tales", ["<|endoftext|>"]
    yield "tales-gpt2", models / "tales-gpt2", ["<|endoftext|>"]
    kinds = [("mistral-v1", "mistral/tokenizer.model.v1", 32000, ["<s>", "</s>", "<unk>"]),
             ("mistral-v3", "mistral/mistral_instruct_tokenizer_240323.model.v3", 32768, ["<s>", "[INST]", "[/INST]"]),
             ("gpt2", "gpt2/tokenizer.json", 50257, []),
             ("smollm2", "smollm2/tokenizer.json", 49152, ["<|im_start|>", "<|im_end|>"]),
             ("qwen3", "qwen3/tokenizer.json", 151936, ["<|im_start|>", "<|im_end|>", "<think>"])]
    for name, file, vocab, special in kinds:
        source = data / "tokenizers" / file
        if not source.exists():
            continue
        shape, folder = scratch / f"{name}.json", scratch / name
        shape.write_text(json.dumps({**SHAPE, "vocab_size": vocab}))
        subprocess.run([program, "synth", shape, folder, "--dtype", "f16"], check=True, stdout=subprocess.DEVNULL)
        for old in folder.glob("tokenizer*"):
            old.unlink()
        shutil.copy(source, folder / ("tokenizer.json" if source.suffix == ".json" else "tokenizer.model"))
        if name == "mistral-v1":
            added = {"<|im_end|>": 32000, "<|im_start|>": 32001}
            (folder / "added_tokens.json").write_text(json.dumps(added))
            special = [*special, *added]
            resize(program, shape, folder, vocab + 2)
        yield name, folder, special


def resize(program, shape, folder, vocab):
    """Writes the same shape with more rows; the tokenizer stays."""
    shape.write_text(json.dumps({**SHAPE, "vocab_size": vocab}))
    other = folder.with_suffix(".more")
    subprocess.run([program, "synth", shape, other, "--dtype", "f16"], check=True, stdout=subprocess.DEVNULL)
    for name in ("config.json", "model.safetensors"):
        shutil.copy(other / name, folder / name)


def ours(program, file, text):
    done = subprocess.run([program, "tokenize", file, "--stdin", "--no-bos", "--json"], input=text.encode(),
                          capture_output=True)
    return json.loads(done.stdout)["ids"] if done.returncode == 0 else done.stderr.decode()


def main():
    parser = argparse.ArgumentParser()
    for name in ("program", "install"):
        parser.add_argument("--" + name, required=True, type=pathlib.Path)
    args = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parents[2]
    data = pathlib.Path(os.environ.get("KVASIR_DATA") or root.parent / "shared/data")
    node = install(args.install)
    script = pathlib.Path(__file__).with_name("llama_cpp_ids.mjs")
    wrong = 0
    with tempfile.TemporaryDirectory() as temporary:
        scratch = pathlib.Path(temporary)
        for name, folder, special in folders(args.program, root / "models", data, scratch):
            file = scratch / f"{name}.gguf"
            subprocess.run([args.program, "quantize", folder, file, "--type", "f16"], check=True,
                           stdout=subprocess.DEVNULL)
            all_texts = texts(special)
            done = subprocess.run([node, script], cwd=args.install, capture_output=True, check=True,
                                  input=json.dumps({"file": str(file), "texts": all_texts}).encode())
            same = 0
            for text, theirs in zip(all_texts, json.loads(done.stdout), strict=True):
                mine = ours(args.program, file, text)
                same += mine == theirs
                if mine != theirs:
                    print(f"{name}: {text!r}: Kvasir {mine}, llama.cpp {theirs}")
            print(f"{name}: {same} of {len(all_texts)} texts have llama.cpp's ids")
            wrong += len(all_texts) - same
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

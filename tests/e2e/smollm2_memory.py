#!/usr/bin/env python3
"""dense against grow on a synthetic SmolLM2-135M: peak RSS differs by the KV bytes, receipts agree, decode steps execute
the same instructions within 3 %.

usage: smollm2_memory.py --program build/kvasir --table scripts/kv_table.py
Exits 0 or 1; 77 (skipped) where valgrind is absent. callgrind counts at KVASIR_CPU=avx2: valgrind has no AVX-512.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile


def instructions(program, model, layout, tokens, folder):
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", program, model, "-p", "Hello", "-n",
               str(tokens), "--greedy", "--ignore-eos", "--threads", "1", "--cache", layout, "--ctx", "8192"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"KVASIR_CPU": "avx2"})
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not found:
        sys.exit(done.stderr)
    return int(found.group(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--table", required=True)
    a = parser.parse_args()
    if not shutil.which("valgrind"):
        print("skipped: valgrind is absent")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        model = folder + "/smollm2-135m"
        subprocess.run([a.program, "synth", "smollm2-135m", model, "--dtype", "f16", "--seed", "1"], check=True)
        subprocess.run([sys.executable, a.table, "--program", a.program, "--model", model, "--repeats", "1"], check=True)
        few, many = 2, 5
        per_step = {}
        for layout in ("dense", "grow"):
            extra = (instructions(a.program, model, layout, many, folder) -
                     instructions(a.program, model, layout, few, folder))
            per_step[layout] = extra / (many - few)
        ratio = per_step["grow"] / per_step["dense"]
        print(f"instructions a decode step: dense {per_step['dense']:,.0f}, grow {per_step['grow']:,.0f}, ratio {ratio:.4f}")
        sys.exit(0 if 0.97 <= ratio <= 1.03 else 1)


if __name__ == "__main__":
    main()

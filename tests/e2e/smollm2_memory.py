#!/usr/bin/env python3
"""dense against grow on a synthetic SmolLM2-135M: peak RSS differs by the KV bytes, receipts agree. Streamed weights
run in 40 MB; with the dense layout KV is most of the memory. After 4,096 positions, decode steps of grow and paged take
the same number of instructions as dense within 3 %. With KVASIR_TEST_ALL=1: the same after a short prompt, and 200 runs
within a budget of 300 MiB.

usage: smollm2_memory.py --program build/kvasir --table scripts/kv_table.py --budget-runs build/budget_runs
Exits 0 or 1; 77 (skipped) where valgrind is absent. callgrind counts at KVASIR_CPU=avx2: valgrind has no AVX-512.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time


def instructions(program, model, layout, prompt, tokens, folder):
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", program, model, *prompt, "-n",
               str(tokens), "--greedy", "--ignore-eos", "--threads", "1", "--cache", layout, "--ctx", "8192"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"KVASIR_CPU": "avx2"})
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not found:
        sys.exit(done.stderr)
    return int(found.group(1))


def timed(program, model, *arguments):
    """Returns the answer of a run and its peak RSS in bytes, by /usr/bin/time -v."""
    done = subprocess.run(["/usr/bin/time", "-v", program, model, "-p", "Hello", "-n", "16", "--greedy", "--threads", "2",
                           "--json", *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout), int(re.search(r"Maximum resident set size \(kbytes\): (\d+)", done.stderr).group(1)) * 1024


def check_streamed(program, model):
    """Checks peak RSS with two layers in memory, and that receipts equal the resident run's."""
    want, _ = timed(program, model, "--weights", "resident")
    grow, grow_peak = timed(program, model, "--weights", "streamed", "--cache", "grow")
    dense, dense_peak = timed(program, model, "--weights", "streamed", "--cache", "dense", "--ctx", "8192")
    share = dense["stats"]["kv_bytes"] / dense_peak
    print(f"streamed: grow {grow_peak:,} B, dense {dense_peak:,} B of which KV {100 * share:.1f} %")
    good = {answer["receipt"] for answer in (want, grow, dense)} == {want["receipt"]}
    return good and grow_peak <= 40e6 and grow["stats"]["kv_bytes"] == 2949120 and share >= 0.79


def same_steps(program, model, prompt, folder):
    """True if a decode step costs the same instructions in every layout, within 3 %."""
    few, many, dense, good = 2, 5, 0, True
    for layout in ("dense", "grow", "paged"):
        count = (instructions(program, model, layout, prompt, many, folder) -
                 instructions(program, model, layout, prompt, few, folder)) / (many - few)
        dense = dense or count
        print(f"instructions a decode step: {layout} {count:,.0f}, of dense {count / dense:.4f}")
        good &= 0.97 <= count / dense <= 1.03
    return good


def after_4096(program, folder):
    """The same for a small model with SmolLM2's heads, where a step reads almost only the history."""
    with open(folder + "/config.json", "w") as file:
        json.dump({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 9, "num_key_value_heads": 3,
                   "head_dim": 64, "num_hidden_layers": 2, "intermediate_size": 64, "vocab_size": 300,
                   "max_position_embeddings": 8192, "rms_norm_eps": 1e-6, "hidden_act": "silu"}, file)
    subprocess.run([program, "synth", folder + "/config.json", folder + "/small", "--dtype", "f16"], check=True)
    prompt = ["--ids", ",".join(str(i * i % 300) for i in range(4096))]
    known = ["--load-cache", folder + "/4096.kv"]  # not computed under valgrind
    subprocess.run([program, folder + "/small", *prompt, "-n", "1", "--save-cache", known[1]], check=True,
                   stdout=subprocess.DEVNULL)
    time.sleep(2.5)  # a fingerprint is stored once the files are two seconds old; no counted run must compute it
    subprocess.run([program, folder + "/small", *prompt, *known, "-n", "1"], check=True, stdout=subprocess.DEVNULL)
    return same_steps(program, folder + "/small", prompt + known, folder)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--table", required=True)
    parser.add_argument("--budget-runs", required=True)
    a = parser.parse_args()
    if not shutil.which("valgrind"):
        print("skipped: valgrind is absent")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        model = folder + "/smollm2-135m"
        subprocess.run([a.program, "synth", "smollm2-135m", model, "--dtype", "f16", "--seed", "1"], check=True)
        subprocess.run([sys.executable, a.table, "--program", a.program, "--model", model, "--repeats", "1"], check=True)
        good = check_streamed(a.program, model)
        if os.environ.get("KVASIR_TEST_ALL"):
            good &= subprocess.run([a.budget_runs, model, str(300 << 20), "200", "1"]).returncode == 0
            good &= same_steps(a.program, model, ["-p", "Hello"], folder)
        good &= after_4096(a.program, folder)
        sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()

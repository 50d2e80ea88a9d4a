#!/usr/bin/env python3
"""dense against grow on a synthetic SmolLM2-135M: peak RSS differs by the KV bytes, receipts agree, decode steps execute
the same instructions within 3 %. Streamed, it runs in 40 MB, and with dense KV is most of what there is. With
KVASIR_TEST_ALL=1: 200 runs that keep to a budget of 300 MiB.

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


def instructions(program, model, layout, tokens, folder):
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", program, model, "-p", "Hello", "-n",
               str(tokens), "--greedy", "--ignore-eos", "--threads", "1", "--cache", layout, "--ctx", "8192"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"KVASIR_CPU": "avx2"})
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not found:
        sys.exit(done.stderr)
    return int(found.group(1))


def timed(program, model, *arguments):
    """The answer of a run and its peak RSS by /usr/bin/time -v."""
    done = subprocess.run(["/usr/bin/time", "-v", program, model, "-p", "Hello", "-n", "16", "--greedy", "--threads", "2",
                           "--json", *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout), int(re.search(r"Maximum resident set size \(kbytes\): (\d+)", done.stderr).group(1)) * 1024


def check_streamed(program, model):
    """Peak RSS with two layers in memory; the receipt of the resident run."""
    want, _ = timed(program, model, "--weights", "resident")
    grow, grow_peak = timed(program, model, "--weights", "streamed", "--cache", "grow")
    dense, dense_peak = timed(program, model, "--weights", "streamed", "--cache", "dense", "--ctx", "8192")
    share = dense["stats"]["kv_bytes"] / dense_peak
    print(f"streamed: grow {grow_peak:,} B, dense {dense_peak:,} B of which KV {100 * share:.1f} %")
    good = {answer["receipt"] for answer in (want, grow, dense)} == {want["receipt"]}
    return good and grow_peak <= 40e6 and grow["stats"]["kv_bytes"] == 2949120 and share >= 0.79


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
        few, many = 2, 5
        per_step = {}
        for layout in ("dense", "grow"):
            extra = (instructions(a.program, model, layout, many, folder) -
                     instructions(a.program, model, layout, few, folder))
            per_step[layout] = extra / (many - few)
        ratio = per_step["grow"] / per_step["dense"]
        print(f"instructions a decode step: dense {per_step['dense']:,.0f}, grow {per_step['grow']:,.0f}, ratio {ratio:.4f}")
        sys.exit(0 if good and 0.97 <= ratio <= 1.03 else 1)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Prints the table of docs/kv-cache.md: the cost of dense and grow on one model, each run in its own process.

usage: kv_table.py --program build/kvasir --model MODEL [--ctx 8192] [--threads 2] [--repeats 5]

Runs `kvasir MODEL -p Hello -n 16 --greedy` with each layout in turn (A B A B ...), takes the medians, and compares the
program's own peak RSS with /usr/bin/time's.
"""
import argparse
import json
import re
import statistics
import subprocess
import sys


def run(a, layout):
    command = ["/usr/bin/time", "-v", a.program, a.model, "-p", "Hello", "-n", "16", "--greedy", "--ignore-eos", "--json",
               "--threads", str(a.threads), "--cache", layout, "--ctx", str(a.ctx)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    result = json.loads(done.stdout)
    peak = int(re.search(r"Maximum resident set size \(kbytes\): (\d+)", done.stderr).group(1)) * 1024
    own = result["stats"]["peak_rss_bytes"]
    if abs(own - peak) > 0.01 * peak:
        sys.exit(f"the program says {own} bytes of peak RSS, /usr/bin/time {peak}")
    return result | {"peak": peak}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--ctx", type=int, default=8192)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    a = parser.parse_args()
    runs = {"dense": [], "grow": []}
    for _ in range(a.repeats):
        for layout, results in runs.items():
            results.append(run(a, layout))
    print("| layout | KV bytes | peak RSS | KV share of peak | decode tok/s | TTFT ms |")
    print("|---|---|---|---|---|---|")
    for layout, results in runs.items():
        stats = [r["stats"] for r in results]
        kv = stats[0]["kv_bytes"]
        peak = statistics.median(r["peak"] for r in results)
        speed = statistics.median(s["decode_tok_s"] for s in stats)
        ttft = statistics.median(s["ttft_ms"] for s in stats)
        print(f"| {layout} | {kv:,} | {int(peak):,} | {100 * kv / peak:.1f} % | {speed:.1f} | {ttft:.1f} |")
    receipts = {r["receipt"] for results in runs.values() for r in results}
    difference = statistics.median(r["peak"] for r in runs["dense"]) - statistics.median(r["peak"] for r in runs["grow"])
    predicted = runs["dense"][0]["stats"]["kv_bytes"] - runs["grow"][0]["stats"]["kv_bytes"]
    print(f"\npeak RSS dense - grow: {int(difference):,} of {predicted:,} bytes of KV; receipts: {', '.join(sorted(receipts))}")
    sys.exit(0 if len(receipts) == 1 and difference >= 0.95 * predicted else 1)


if __name__ == "__main__":
    main()

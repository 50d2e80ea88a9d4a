#!/bin/sh
# Runs every fuzz target of a build: run.sh BUILD_FOLDER [SECONDS_EACH]. Exit 1 if any of them finds a fault.
# The corpus in the tree is a seed: each run works on a copy, and keeps that copy only when it has found something.
set -u
build=${1:?usage: run.sh BUILD_FOLDER [SECONDS_EACH]}
seconds=${2:-60}
here=$(cd "$(dirname "$0")" && pwd)
failed=0
ran=0
for target in "$build"/fuzz_*; do
  [ -f "$target" ] && [ -x "$target" ] || continue
  name=$(basename "$target")
  work=$(mktemp -d)
  mkdir "$work/corpus"
  [ -d "$here/corpus/$name" ] && cp "$here/corpus/$name"/* "$work/corpus/"
  echo "$name: $seconds s"
  if "$target" "$work/corpus" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=8192 \
      -artifact_prefix="$work/" -print_final_stats=1 >"$work/log" 2>&1; then
    grep -E 'number_of_executed_units|DONE' "$work/log"
    rm -r "$work"
  else
    tail -n 40 "$work/log"
    echo "$name: FAILED, see $work" >&2
    failed=1
  fi
  ran=$((ran + 1))
done
if [ "$ran" -eq 0 ]; then
  echo "no fuzz_* program in $build; configure with clang++ and -DKVASIR_FUZZ=ON" >&2
  exit 2
fi
exit $failed

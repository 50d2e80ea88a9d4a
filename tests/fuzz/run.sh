#!/bin/sh
# Runs every fuzz target of a build, one per core: run.sh BUILD_FOLDER [SECONDS_EACH]. Exit code 1 if one finds a fault.
# The corpus in the tree is a seed: each run works on a copy, and keeps that copy only if it finds something.
set -u
build=${1:?usage: run.sh BUILD_FOLDER [SECONDS_EACH]}
seconds=${2:-60}
here=$(cd "$(dirname "$0")" && pwd)

if [ "$build" = --one ]; then  # --one TARGET SECONDS: called by xargs below
  target=$2
  seconds=$3
  name=$(basename "$target")
  work=$(mktemp -d)
  mkdir "$work/corpus"
  [ -d "$here/corpus/$name" ] && cp "$here/corpus/$name"/* "$work/corpus/"
  if "$target" "$work/corpus" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=8192 \
      -artifact_prefix="$work/" -print_final_stats=1 >"$work/log" 2>&1; then
    echo "$name: $seconds s, $(sed -n 's/^stat::number_of_executed_units: *//p' "$work/log") inputs, nothing found"
    rm -r "$work"
    exit 0
  fi
  tail -n 40 "$work/log"
  echo "$name: FAILED, see $work" >&2
  exit 1
fi

targets=$(find "$build" -maxdepth 1 -name 'fuzz_*' -type f -perm -u+x | sort)
if [ -z "$targets" ]; then
  echo "no fuzz_* program in $build; configure with clang++ and -DKVASIR_FUZZ=ON" >&2
  exit 2
fi
echo "$targets" | xargs -P "$(nproc)" -I '{}' "$0" --one '{}' "$seconds" || exit 1

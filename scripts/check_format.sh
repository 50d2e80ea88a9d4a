#!/usr/bin/env bash
# Checks that every tracked source is formatted as by clang-format 14 (.clang-format), except the trainer of the shipped
# models, which is not part of the program.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

git ls-files -z '*.h' '*.cc' ':!models/train' | xargs -0 -P "$(nproc)" -n 16 clang-format --dry-run -Werror || {
  echo "check_format.sh: not as clang-format writes them (try: clang-format -i FILE)" >&2
  exit 1
}

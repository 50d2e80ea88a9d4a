#!/usr/bin/env bash
# Checks that objects compiled for one CPU contain no weak symbols: the linker keeps one copy of such a function for the
# whole program, and could keep the one that an older CPU cannot run. usage: scripts/check_objects.sh [BUILD_FOLDER]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder="${1:-build}"
mapfile -t objects < <(find "$folder" -name '*_avx2*.cc.o' -o -name '*_avx512*.cc.o' | sort)
if ((${#objects[@]} == 0)); then
  case "$(uname -m)" in
    x86_64) echo "check_objects.sh: no per-CPU objects in $folder (try: cmake --preset release && cmake --build $folder)" >&2 && exit 1 ;;
    *) echo "check_objects.sh: no per-CPU objects on $(uname -m)" && exit 0 ;;
  esac
fi

status=0
for object in "${objects[@]}"; do
  # DW.ref.* is the pointer to the exception personality, the same in every object; undefined weak symbols (w, v) are
  # not code.
  weak="$(nm -C --defined-only "$object" | grep -E '^[0-9a-f]* [WVu] ' | grep -v ' DW\.ref\.' || true)"
  if [[ -n "$weak" ]]; then
    echo "$object: weak symbols (try: static or an unnamed namespace, and no inline function that stays out of line):" >&2
    echo "$weak" >&2
    status=1
  fi
done
((status)) || echo "check_objects.sh: ${#objects[@]} per-CPU objects, no weak symbols"
exit "$status"

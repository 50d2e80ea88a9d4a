#!/usr/bin/env bash
# Checks locks with clang: variables guarded by a mutex are accessed only while it is held
# (src/base/thread_annotations.h). Every mutex is a Mutex (src/base/mutex.h), since clang does not follow the standard
# library's. usage: scripts/check_threads.sh [BUILD_FOLDER] a configured one, for its generated headers
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build="${1:-build-dev}"

plain="$(grep -rnE 'std::(mutex|shared_mutex|recursive_mutex|lock_guard|scoped_lock|condition_variable)' src include \
  --include='*.h' --include='*.cc' | grep -vE '^src/base/mutex\.h:|_test\.cc:' || true)"
if [[ -n "$plain" ]]; then
  printf '%s\n' "$plain" "check_threads.sh: clang follows Mutex, MutexLock and Condition only (try: \"base/mutex.h\")"
  exit 1
fi

# Guarded variables are members, so these files suffice: sources that include the mutex, and sources whose header does.
files=()
while read -r file; do
  source="${file%.h}.cc"
  if [[ -f "$source" ]]; then files+=("$source"); else files+=("$file"); fi
done < <(grep -rlE '"base/mutex\.h"' src --include='*.h' --include='*.cc')
mapfile -t files < <(printf '%s\n' "${files[@]}" | sort -u)

# The build defines KVASIR_SOURCE_DIR for its tests.
printf '%s\0' "${files[@]}" | xargs -0 -P "$(nproc)" -n 1 clang++ -x c++ -std=c++20 -fsyntax-only -Wthread-safety \
  -Werror -Wno-unused-command-line-argument -Wno-pragma-once-outside-header -I include -I src -I "$build" \
  '-DKVASIR_SOURCE_DIR=""'
echo "check_threads.sh: ${#files[@]} files, every guarded variable is touched under its mutex"

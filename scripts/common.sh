# Shared by ./demo and ./test (sourced, from the repository's root): steps that stay quiet unless they fail.
# shellcheck shell=bash

log_dir="build-logs"

# step NAME COMMAND...: prints one line with the time taken; on failure the end of the log, and returns a false status.
step() {
  local name="$1" begin=$SECONDS log
  shift
  mkdir -p "$log_dir"
  log="$log_dir/${name//[^A-Za-z0-9]/_}.log"
  if "$@" </dev/null >"$log" 2>&1; then
    printf '%-34s ok, %d s\n' "$name" $((SECONDS - begin))
  else
    local status=$?
    printf '%-34s FAILED (exit code %d); the end of %s:\n' "$name" "$status" "$log"
    tail -n "${step_tail:-60}" "$log"
    return "$status"
  fi
}

# build PRESET [cmake --build options]
build() {
  local preset="$1"
  shift
  cmake --preset "$preset" && cmake --build --preset "$preset" -j "$(nproc)" "$@"
}

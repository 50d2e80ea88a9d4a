#!/usr/bin/env bash
# Installs the missing packages of scripts/packages.txt and reports them; prints nothing if none is missing. usage:
# scripts/install_packages.sh [build|test|all] test adds to build, all adds to test
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case "${1:-build}" in
  build) sections="build" ;;
  test) sections="build test" ;;
  all) sections="build test all" ;;
  *)
    echo "install_packages.sh: unknown section '$1' (try: build, test or all)" >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query >/dev/null; then
  echo "install_packages.sh: not a Debian system, so nothing was checked; scripts/packages.txt lists what is needed" >&2
  exit 0
fi

missing=()
section=""
while read -r word _; do
  case "$word" in
    "" | "#"*) ;;
    "["*"]") section="${word:1:-1}" ;;
    *)
      [[ " $sections " == *" $section "* ]] || continue
      # An installed package may still wait for a trigger; in all three states its files are present.
      status="$(dpkg-query -W -f '${db:Status-Status}' "$word" 2>/dev/null || true)"
      [[ "$status" == installed || "$status" == triggers-* ]] || missing+=("$word")
      ;;
  esac
done <scripts/packages.txt
((${#missing[@]})) || exit 0

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "install_packages.sh: neither root nor sudo; as root, run:" >&2
    echo "  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

log="$(mktemp)"
trap 'rm -f "$log"' EXIT
echo "installing ${missing[*]}"
if ! {
  "${as_root[@]}" apt-get -qq update &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${missing[@]}"
} </dev/null >"$log" 2>&1; then
  tail -n 30 "$log" >&2
  echo "install_packages.sh: apt-get could not install them (its last lines are above)" >&2
  exit 1
fi

#!/usr/bin/env bash
# Configures and builds one preset of CMakePresets.json; does nothing where all is up to date.
#
#   scripts/build.sh [PRESET] [NINJA ARGUMENTS...]      PRESET: default, debug, runtime, tsan, asan
set -euo pipefail
cd "$(dirname "$0")/.."

preset=${1:-default}
[ $# -gt 0 ] && shift
case "$preset" in
  default) dir=build ;;
  debug | runtime | tsan | asan) dir=build-$preset ;;
  *) echo "build.sh: unknown preset '$preset', expected default, debug, runtime, tsan or asan" >&2; exit 1 ;;
esac

if [ ! -f "$dir/build.ninja" ]; then
  echo "configure: preset $preset in $dir/"
  mkdir -p "$dir"
  if ! cmake --preset "$preset" >"$dir/configure.log" 2>&1; then
    cat "$dir/configure.log" >&2
    exit 1
  fi
  grep 'dualpipe:' "$dir/configure.log" | sed 's/^-- dualpipe: /  /'
fi
echo "build: $dir/"
exec ninja -C "$dir" "$@"

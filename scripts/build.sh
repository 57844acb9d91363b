#!/usr/bin/env bash
# Configures and builds one preset of CMakePresets.json; does nothing where all is up to date.
#
#   scripts/build.sh [--tests] [PRESET] [NINJA ARGUMENTS...]
#
# PRESET: default, debug, runtime, tsan or asan. With --tests the unit tests and the benchmarks are
# part of the build; without, a new build folder leaves them out and needs neither GoogleTest nor
# Google Benchmark.
set -euo pipefail
cd "$(dirname "$0")/.."

tests=OFF
if [ "${1:-}" = --tests ]; then
  tests=ON
  shift
fi
preset=${1:-default}
[ $# -gt 0 ] && shift
benchmarks=$tests
case "$preset" in
  default) dir=build ;;
  debug | runtime) dir=build-$preset ;;
  tsan | asan) dir=build-$preset benchmarks=OFF ;;
  *) echo "build.sh: unknown preset '$preset', expected default, debug, runtime, tsan or asan" >&2; exit 1 ;;
esac

# A folder that was configured without the tests gets them when they are asked for, never the other way round.
has_tests=$(sed -n 's/^DUALPIPE_BUILD_TESTS:BOOL=//p' "$dir/CMakeCache.txt" 2>/dev/null || true)
if [ ! -f "$dir/build.ninja" ] || { [ $tests = ON ] && [ "$has_tests" != ON ]; }; then
  echo "configure: preset $preset in $dir/"
  mkdir -p "$dir"
  if ! cmake --preset "$preset" -DDUALPIPE_BUILD_TESTS=$tests -DDUALPIPE_BUILD_BENCHMARKS=$benchmarks \
      >"$dir/configure.log" 2>&1; then
    cat "$dir/configure.log" >&2
    exit 1
  fi
  grep 'dualpipe:' "$dir/configure.log" | sed 's/^-- dualpipe: /  /'
fi
echo "build: $dir/"
exec ninja -C "$dir" "$@"

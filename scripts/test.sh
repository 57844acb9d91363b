#!/usr/bin/env bash
# Installs, builds and runs every test; closes with one line 'N passed, N failed, N skipped'.
#
#   scripts/test.sh              everything
#   scripts/test.sh AREA...      some of: unit lit end-to-end numerics tsan asan format fuzz
#
# Results stand in build/test-results/ as JUnit XML.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

areas=("$@")
[ ${#areas[@]} -gt 0 ] || areas=(format unit lit end-to-end numerics tsan asan fuzz)
for area in "${areas[@]}"; do
  case "$area" in
    unit | lit | end-to-end | numerics | tsan | asan | format | fuzz) ;;
    *) echo "test.sh: unknown area '$area'" >&2; exit 1 ;;
  esac
done

scripts/install-deps.sh --tests
scripts/build.sh --tests default
results=$root/build/test-results
rm -rf "$results"
mkdir -p "$results"

# A program that dies leaves no report, which would read as "no tests": say so in its place.
record_crash() { # name exit-code
  python3 scripts/summarize-tests.py --crashed "$1" "$2" >"$results/$1-crash.xml"
}
run_unit_tests() { # build-dir name-prefix
  local program name code ran=0
  for program in "$1"/bin/unit/*; do
    [ -x "$program" ] || continue
    ran=1
    name=$2$(basename "$program")
    echo "== $name"
    code=0
    "$program" --gtest_brief=1 --gtest_output="xml:$results/$name.xml" || code=$?
    [ -f "$results/$name.xml" ] || record_crash "$name" "$code"
    # A sanitizer report after the last test changes the exit code only.
    if [ "$code" -gt 1 ]; then record_crash "$name" "$code"; fi
  done
  [ $ran = 1 ] || record_crash "$2unit-tests" "no program in $1/bin/unit"
}
run_pytest() { # name path
  local code=0
  echo "== $1"
  /usr/bin/python3 -m pytest -q -p no:cacheprovider -rs --junit-xml="$results/$1.xml" "$2" || code=$?
  [ -f "$results/$1.xml" ] || record_crash "$1" "$code"
}

export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
for area in "${areas[@]}"; do
  case "$area" in
    format)
      echo "== format"
      code=0
      python3 scripts/check-format.py --junit-xml "$results/format.xml" || code=$?
      [ -f "$results/format.xml" ] || record_crash format "$code"
      ;;
    unit) run_unit_tests build "" ;;
    lit)
      echo "== lit"
      code=0
      /usr/lib/llvm-22/bin/lit -sv --xunit-xml-output="$results/lit.xml" build/test || code=$?
      [ -f "$results/lit.xml" ] || record_crash lit "$code"
      ;;
    end-to-end) run_pytest end-to-end test/end-to-end ;;
    numerics) run_pytest numerics test/numerics ;;
    fuzz)
      echo "== fuzz"
      code=0
      scripts/fuzz.sh --slice || code=$?
      python3 scripts/summarize-tests.py --ran fuzz "$code" >"$results/fuzz.xml"
      ;;
    tsan | asan)
      scripts/build.sh --tests "$area" --quiet
      if [ "$area" = tsan ]; then
        export TSAN_OPTIONS="halt_on_error=0 exitcode=66"
      else
        export ASAN_OPTIONS="exitcode=67" UBSAN_OPTIONS="print_stacktrace=1"
      fi
      run_unit_tests "build-$area" "$area-"
      ;;
  esac
done

exec python3 scripts/summarize-tests.py "$results"

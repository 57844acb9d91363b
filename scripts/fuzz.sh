#!/usr/bin/env bash
# Feeds random texts to the front end and the formatter, then to the reader of PyTorch's grammar, under
# sanitizers.
#
#   scripts/fuzz.sh [SECONDS]     for each of the two; default 600
#   scripts/fuzz.sh --slice       the same texts every time, from the seeds alone: what the tests run.
#                                 Whether they pass then depends on the sources, not on luck
#
# Everything stands in build-fuzz/: the programs, the corpus (it grows; the examples and the tests are
# its seeds), and findings/, one file for each text that made the program fail. Such a text belongs,
# once it is small, in test/Frontend/fuzz-regressions/. Exit code 1 where one was found.
set -euo pipefail
cd "$(dirname "$0")/.."

slice_pipe=60000
slice_csv=60000
seconds=${1:-600}
case "$seconds" in
  --slice) ;;
  *[!0-9]* | "") echo "fuzz.sh: the time is '$seconds', expected seconds or --slice" >&2; exit 1 ;;
esac

dir=build-fuzz
mkdir -p $dir
if [ ! -f $dir/build.ninja ]; then
  if ! cmake -S . -B $dir -G Ninja -DDUALPIPE_FUZZ=ON -DCMAKE_BUILD_TYPE=None \
      -DCMAKE_CXX_FLAGS=-gline-tables-only \
      -DCMAKE_C_COMPILER=clang-22 -DCMAKE_CXX_COMPILER=clang++-22 >$dir/configure.log 2>&1; then
    cat $dir/configure.log >&2
    exit 1
  fi
fi
ninja -C $dir fuzz-pipe fuzz-csv

mkdir -p $dir/findings
rm -rf $dir/seeds
mkdir -p $dir/seeds/pipe $dir/seeds/csv
while read -r file; do
  cp "$file" "$dir/seeds/pipe/$(printf '%s' "$file" | tr / -)"
done < <(find examples test -name '*.pipe' | sort)
# The first byte says how a file is read: '@' for the defaults.
while read -r file; do
  { printf '@'; cat "$file"; } >"$dir/seeds/csv/$(printf '%s' "$file" | tr / -)"
done < <(find examples test -name '*.csv' | sort)
sed -nE 's/^(KEYWORD\([A-Za-z]+, |PUNCTUATION\([A-Za-z]+, |CONTEXTUAL\()("[^"]+")\)$/\2/p' \
  lib/Frontend/TokenKinds.def >$dir/pipe.dict
printf '"%s"\n' F I W B BW SEND_F RECV_F SEND_B RECV_B UNSHARD REDUCE_GRAD OVERLAP_F_B >$dir/csv.dict

for kind in pipe csv; do
  if [ "$seconds" = --slice ]; then
    runs=slice_$kind
    length=(-seed=1 -runs="${!runs}" -max_total_time=600)
    corpus=$dir/slice/$kind
    rm -rf $corpus
  else
    length=(-max_total_time="$seconds")
    corpus=$dir/corpus/$kind
  fi
  mkdir -p $corpus
  before=$(find $dir/findings -type f | wc -l)
  code=0
  nice $dir/bin/fuzz-$kind "${length[@]}" -dict=$dir/$kind.dict \
    -artifact_prefix=$dir/findings/$kind- -timeout=10 -rss_limit_mb=2048 -max_len=8192 -print_final_stats=1 \
    $corpus $dir/seeds/$kind >$dir/fuzz-$kind.log 2>&1 || code=$?
  if [ $code != 0 ] || [ "$(find $dir/findings -type f | wc -l)" != "$before" ]; then
    tail -n 40 $dir/fuzz-$kind.log >&2
    newest=$(find $dir/findings -type f -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d ' ' -f 2)
    if [ -n "$newest" ]; then
      echo "fuzz.sh: $newest in base64:" >&2
      base64 "$newest" >&2
    fi
    echo "fuzz.sh: fuzz-$kind failed with exit code $code; the text stands in $dir/findings/, the log in" \
      "$dir/fuzz-$kind.log" >&2
    exit 1
  fi
  sed -n "s/^stat::number_of_executed_units: */fuzz: $kind texts tried: /p" $dir/fuzz-$kind.log
done

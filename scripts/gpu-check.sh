#!/usr/bin/env bash
# Shows on a machine with GPUs, a CUDA toolkit and no network that the runtime computes there what it
# must, and measures it: in under 5 minutes, without LLVM.
#
#   scripts/gpu-check.sh --pack FILE.tar.gz    where the compiler was built: puts program files, sources
#                                              and headers into one file to carry over
#   scripts/gpu-check.sh [--out DIR]           in the unpacked folder there: builds the runtime, runs all
#                                              checks, prints one table, leaves DIR/gpu-check.json
#                                              (DIR: gpu-check/results)
#   scripts/gpu-check.sh --launcher FILE ...   with a launcher that was built before
#   scripts/gpu-check.sh --quick ...           small sizes, few programs and no compute-sanitizer, as the tests
#                                              run it
#
# Exit code 0 where all checks pass, 1 where one fails, 2 where no GPU is found. Needed there: g++ 12 or
# later, CMake 3.25, make or ninja, CUDA 12.0 or later with nvcc, python3.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { echo "gpu-check.sh: $1" >&2; exit "${2:-1}"; }

pack() { # FILE
  [ -x build/bin/dualpipe-opt ] || fail "--pack needs build/bin/dualpipe-opt; build it with scripts/build.sh"
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  mkdir "$folder/dualpipe"
  git ls-files -z --cached --others --exclude-standard | tar -c --null -T - | tar -x -C "$folder/dualpipe"
  python3 scripts/gpu_check.py --compile build/bin/dualpipe-opt "$folder/dualpipe/gpu-check/programs"
  cmake -DOUT="$folder/dualpipe/gpu-check/prefix" -DSCHEMA=runtime/program/program.fbs -P cmake/BringHeaders.cmake
  tar -czf "$1" -C "$folder" dualpipe
  echo "gpu-check.sh: $1: unpack it on the machine with the GPU and run dualpipe/scripts/gpu-check.sh"
}

build() {
  local prefix=$PWD/gpu-check/prefix generator=()
  [ -d "$prefix" ] || fail "there is no $prefix; make a pack with --pack where the compiler is, or give --launcher"
  command -v ninja >/dev/null && generator=(-G Ninja)
  mkdir -p gpu-check/build
  echo "gpu-check.sh: building the runtime (gpu-check/build/build.log)"
  if ! { cmake -S . -B gpu-check/build "${generator[@]}" -DDUALPIPE_BUILD_COMPILER=OFF -DDUALPIPE_BUILD_TESTS=OFF \
           -DDUALPIPE_BUILD_BENCHMARKS=OFF -DCMAKE_PREFIX_PATH="$prefix" -DDUALPIPE_SCHEMA_HEADERS="$prefix/generated" \
         && cmake --build gpu-check/build --parallel --target launcher; } >gpu-check/build/build.log 2>&1; then
    tail -n 20 gpu-check/build/build.log >&2
    fail "the runtime was not built (above)"
  fi
  launcher=gpu-check/build/bin/launcher
}

launcher= out=gpu-check/results options=()
while [ $# -gt 0 ]; do
  case "$1" in
    --pack) pack "${2:?gpu-check.sh: --pack needs a file}"; exit ;;
    --launcher) launcher=${2:?gpu-check.sh: --launcher needs a file}; shift 2 ;;
    --out) out=${2:?gpu-check.sh: --out needs a folder}; shift 2 ;;
    --programs) options+=("$1" "${2:?gpu-check.sh: --programs needs a folder}"); shift 2 ;;
    --quick) options+=("$1"); shift ;;
    -h | --help) sed -n '2,/^set/p' "$0" | sed '$d; s/^# \{0,1\}//'; exit ;;
    *) fail "unknown option '$1'; --help lists them" ;;
  esac
done
[ -n "$launcher" ] || build
exec python3 scripts/gpu_check.py --run "$launcher" --out "$out" "${options[@]}"

#!/usr/bin/env bash
# From a fresh Debian 12 machine to a checked training step: installs, builds, compiles DualPipe for
# 8 ranks and 20 micro-batches, runs it on the CPU and compares it with one device.
set -euo pipefail
cd "$(dirname "$0")/.."

echo "1. Packages"
scripts/install-deps.sh
echo
echo "2. Compiler and runtime"
scripts/build.sh default dualpipe-opt launcher
echo
echo "3. Compile examples/dualpipe.pipe for 8 ranks and 20 micro-batches"
mkdir -p build/quickstart
set -x
build/bin/dualpipe-opt examples/dualpipe.pipe --ranks=8 --microbatches=20 -o build/quickstart/dualpipe.dpx
{ set +x; } 2>/dev/null
echo
echo "4. Train one step with it on the CPU, and compare with the same step on one device"
set -x
build/bin/launcher build/quickstart/dualpipe.dpx --model=mlp --set hidden=64 --set seq=32 --set batch=2 --check
{ set +x; } 2>/dev/null
cat <<'NEXT'

What to try next
  build/bin/launcher build/quickstart/dualpipe.dpx --dump | less      what each rank runs
  build/bin/dualpipe-opt examples/dualpipe.pipe --ranks=7 --microbatches=20 -o x.dpx
                                                                     an error that names the line
  build/bin/dualpipe-opt examples/1f1b.pipe --ranks=4 --microbatches=8 --emit=torch-csv
                                                                     an order for PyTorch
  docs/language.md        write a schedule of your own
  docs/architecture.md    how it becomes streams and events
NEXT

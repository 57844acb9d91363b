#!/usr/bin/env bash
# Installs what the project needs from Debian's packages, and nothing that is there already.
#
#   scripts/install-deps.sh           what building and running need
#   scripts/install-deps.sh --tests   and what the tests need
set -euo pipefail

build=(
  g++ cmake ninja-build ccache
  llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools
  zlib1g-dev libxml2-dev libffi-dev
  libfmt-dev libflatbuffers-dev flatbuffers-compiler libcli11-dev libdlpack-dev libxxhash-dev
  nlohmann-json3-dev
  libdnnl-dev libopenblas-dev
)
tests=(
  libgtest-dev libgmock-dev libbenchmark-dev clang-format-22 python3 python3-pytest python3-torch
  clang-22 libclang-rt-22-dev
  chromium chromium-driver python3-selenium
)

wanted=("${build[@]}")
case "${1:-}" in
  "") ;;
  --tests) wanted+=("${tests[@]}") ;;
  *) echo "usage: install-deps.sh [--tests]" >&2; exit 1 ;;
esac

missing=()
for package in "${wanted[@]}"; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "packages: all ${#wanted[@]} are installed"
  exit 0
fi

as_root=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || { echo "install-deps.sh: run it as root, or install: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
echo "packages: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { "${as_root[@]}" apt-get -o DPkg::Lock::Timeout=300 update && "${as_root[@]}" apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "install-deps.sh: apt-get failed (above); needed are Debian 12 packages and, for LLVM 22, Debian's LLVM packages" >&2
  exit 1
fi

#!/usr/bin/env bash
# Builds the check into .cache/engine-check, one static program that needs nothing where it runs:
# engine/native/check/build.sh [COMPILER]
set -euo pipefail
cd "$(dirname "$0")"
compiler=${1:-g++} out=$(realpath -m ../../../.cache/engine-check)
mkdir -p "$out"
flags=(-std=gnu++20 -O3 -ffp-contract=off -fno-math-errno -Wall -Wextra -Wno-psabi)  # those of ../CMakeLists.txt
objects=()
for source in ../{instructions,threads,linear_{avx2,avx512,decode,experts,matrix,portable}}.cpp ./*.cpp; do
    objects+=("$out/$(basename "$source" .cpp).o")
    "$compiler" "${flags[@]}" -c "$source" -o "${objects[-1]}"
done
"$compiler" -static -pthread "${objects[@]}" -o "$out/check"
strip "$out/check"
ls -l "$out/check"

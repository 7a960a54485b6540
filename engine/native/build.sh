#!/usr/bin/env bash
# Builds the kernels into the source tree, for work on them: engine/native/build.sh [PYTHON]
set -euo pipefail
cd "$(dirname "$0")"
python=${1:-../../.venv/bin/python}
cmake -S . -B build -G Ninja -DPython_EXECUTABLE="$(realpath -s "$python")" > build.log 2>&1 || { cat build.log; exit 1; }
cmake --build build
cp build/_native.*.so ../pascal_engine/backend/cpu/

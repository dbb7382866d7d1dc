#!/usr/bin/env bash
# Build, tests and measurements on a machine with a card, in one command:
#
#   bench/card.sh [FOLDER]     writes what it prints to FOLDER as well (default: build/card)
#
# Installs into a folder of its own beside the build, so that nothing of the machine's Python is changed; with
# CUDAMOD_WHEELS=FOLDER it takes what is missing (cffi, pycparser, nvidia-cuda-runtime, hypothesis) from
# wheels there, for machines without a network.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=${1:-build/card}
mkdir -p "$out"
site=$PWD/build/card-site
python=${PYTHON:-python3}

if [ -n "${CUDAMOD_WHEELS:-}" ]; then
    "$python" -m pip install -q --no-index --no-deps --upgrade --target "$site" "$CUDAMOD_WHEELS"/*.whl
    export PYTHONPATH=$site
    "$python" -m pip install -q --no-build-isolation --no-index --no-deps --upgrade --target "$site" .
else
    "$python" -m pip install -q --upgrade --target "$site" '.[test]'
    export PYTHONPATH=$site
fi
# Without it, python would find this checkout's own folder, which has no extension.
export PYTHONSAFEPATH=1 CUDAMOD_DRIVER=auto
cudamod() { "$python" -c 'import sys; from cudamod.command import main; sys.exit(main())' "$@"; }

status=0
cudamod demo 2>&1 | tee "$out/demo.txt" || status=1
"$python" -m pytest bench --driver=hardware -q -o cache_dir="$PWD/build/card-cache" --benchmark-json="$out/bench.json" 2>&1 |
    tee "$out/bench.txt" || status=1
"$python" bench/report.py "$out/bench.json" "$out" || status=1
"$python" -m pytest tests --driver=hardware -q -o cache_dir="$PWD/build/card-cache" 2>&1 | tee "$out/tests.txt" || status=1
exit $status

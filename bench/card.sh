#!/usr/bin/env bash
# Build, tests and measurements on a machine with a card, in one command or in parts:
#
#   bench/card.sh [FOLDER [PART...]]     writes what it prints to FOLDER as well (default: build/card)
#
# A part is `demo`, `bench` (all benchmarks) or `bench:launch` (bench/test_launch.py), `tests` or `tests:1/3` (the first
# third of the test files), `long` (what shows in a minute that something never happens), or `report` (the page and the
# plots of the benchmarks that lie in FOLDER). Without any: all of them, what matters first. A part ends after
# CUDAMOD_PART_SECONDS (default: 540) as if by Ctrl-C, so that what it found until then is kept.
#
# Installs into a folder of its own beside the build, so that nothing of the machine's Python is changed; what a part
# before has installed of the same tree is used again. With CUDAMOD_WHEELS=FOLDER it takes what is missing (cffi, pycparser,
# nvidia-cuda-runtime, hypothesis) from wheels there, for machines without a network.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=${1:-build/card}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- demo bench:launch bench:threads tests:1/2 tests:2/2 bench:sequences bench:objects bench:start long report
mkdir -p "$out"
site=$PWD/build/card-site
python=${PYTHON:-python3}

# Of what is compiled or shipped: another tree is installed anew.
tree=$(find CMakeLists.txt pyproject.toml cffi_build cpp cudamod -type f ! -path '*/__pycache__/*' -print0 | sort -z |
    xargs -0 cat | cksum)
export PYTHONPATH=$site
if [ "$(cat "$site/tree" 2>/dev/null)" != "$tree" ]; then
    if [ -n "${CUDAMOD_WHEELS:-}" ]; then
        "$python" -m pip install -q --no-index --no-deps --upgrade --target "$site" "$CUDAMOD_WHEELS"/*.whl
        "$python" -m pip install -q --no-build-isolation --no-index --no-deps --upgrade --target "$site" .
    else
        "$python" -m pip install -q --upgrade --target "$site" '.[test]'
    fi
    echo "$tree" >"$site/tree"
fi
# Without it, python would find this checkout's own folder, which has no extension.
export PYTHONSAFEPATH=1 CUDAMOD_DRIVER=auto

status=0
run() { # NAME COMMAND...: what it prints goes to FOLDER/NAME.txt; never longer than a part may take
    local name=$1
    shift
    echo "== $name"
    timeout --signal=INT --kill-after=30 "${CUDAMOD_PART_SECONDS:-540}" "$@" 2>&1 | tee "$out/$name.txt" || status=1
}
test_with() {
    local name=$1
    shift
    run "$name" "$python" -m pytest --driver=hardware -q -o cache_dir="$PWD/build/card-cache" --durations=15 "$@"
}

for part; do
    case $part in
    demo) run demo "$python" -c 'import sys; from cudamod.command import main; sys.exit(main())' demo ;;
    bench) test_with bench bench --benchmark-json="$out/bench.json" ;;
    bench:*) test_with "bench-${part#*:}" "bench/test_${part#*:}.py" --benchmark-json="$out/bench-${part#*:}.json" ;;
    tests) test_with tests tests ;;
    tests:*/*) test_with "tests-$(tr / - <<<"${part#*:}")" tests --part="${part#*:}" ;;
    long) test_with long tests/test_torn.py --long -s ;;
    report) run report "$python" bench/report.py "$out"/bench*.json --to "$out" ;;
    *) echo "unknown part: $part" >&2 && exit 2 ;;
    esac
done
exit $status

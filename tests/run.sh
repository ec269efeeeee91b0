#!/bin/sh
# Installs what is missing, builds a preset (release, unless another is named) and runs every test in it, then prints
# the counts. Further arguments go to ctest: ./tests/run.sh asan -R host
set -eu
cd "$(dirname "$0")/.."
preset=${1:-release}
[ $# -eq 0 ] || shift

./samples/setup.sh --tests
cmake --preset "$preset" --log-level=WARNING -DHALFSTEP_WINDOW=ON # setup.sh --tests installs what that takes
cmake --build --preset "$preset"
# Two at a time: the longest take one core for most of their time, and up to 10 GB under the sanitizers.
ctest --test-dir "build/$preset" --output-on-failure --parallel 2 --no-tests=error "$@" || failed=1
# Every test program ends with a line of counts.
echo "Counts:"
grep -hE '^\[doctest\] (test cases|assertions):|^[0-9]+ checks passed' "build/$preset/Testing/Temporary/LastTest.log" |
  sed 's/^\[doctest\] /  /; s/^\([0-9]\)/  \1/'
exit "${failed:-0}"

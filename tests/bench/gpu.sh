#!/bin/sh
# Everything there is to learn from a machine with a GPU, in one run: the benchmark, PyTorch beside it where python3 has
# it, the self-test, and the whole suite, which takes longest and so is last. Results go to a folder: text to read, JSON
# and HTML to keep.
#
#   tests/bench/gpu.sh [FOLDER]     default: gpu-results
#   HALFSTEP_DEVICE=NAME            the device, where the machine has several
#   HALFSTEP_BUILD=FOLDER           programs that are built already (default: build/release, built first)
#   HALFSTEP_SMALL=1                small products and models only, to try this script on a software driver
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
results=${1:-gpu-results}
build=${HALFSTEP_BUILD:-$root/build/release}
mkdir -p "$results"
failed=""

# run NAME COMMAND...: its output on the terminal and in NAME.txt; a failure does not stop the rest.
run() {
  name=$1
  shift
  echo "== $name: $*"
  { "$@" 2>&1 || echo "exit code $?" >"$results/$name.failed"; } | tee "$results/$name.txt"
  if [ -e "$results/$name.failed" ]; then
    failed="$failed $name"
    rm "$results/$name.failed"
  fi
}

if [ -z "${HALFSTEP_BUILD:-}" ]; then
  (cd "$root" && cmake --preset release --log-level=WARNING && cmake --build --preset release) || exit 1
fi
largest=8192
sizes="1024 4096 8192"
models="lenet5 fashion_cnn resnet20 bert_mini gpt"
if [ -n "${HALFSTEP_SMALL:-}" ]; then
  largest=1024
  sizes=1024
  models="lenet5 fashion_cnn"
fi

# What hangs does not stop the rest.
bench() { timeout 60 "$build/bin/bench" "$@"; }

# Four tests for each process, and a process for each core: drivers spend most of the time compiling.
device_tests() {
  count=$("$build/bin/device_tests" --count | sed -n 's/.*filters: //p')
  # shellcheck disable=SC2016 # expanded by the inner shell
  seq 1 4 "$count" | xargs -P "$(nproc)" -I '{}' timeout 240 sh -c \
    '"$0" --first="$1" --last="$(($1 + 3))" >"$2/tests.$1" 2>&1' "$build/bin/device_tests" '{}' "$results"
  code=$?
  grep -hv '^\[doctest\] \(doctest version\|run with\|test cases\|assertions\|Status: SUCCESS\)\|^=*$' "$results"/tests.*
  cat "$results"/tests.* | awk -v tests="$count" '/test cases:/ { failed += $9 } /assertions:/ { checks += $3 }
    END { print tests " tests, " failed + 0 " of them failed, " checks + 0 " assertions" }'
  rm "$results"/tests.*
  return "$code"
}

run devices "$build/bin/devices"
run peaks bench peaks --json "$results/peaks.json"
for dtype in f32 f16; do
  for n in $sizes; do
    run "gemm-$dtype-$n" bench gemm --m "$n" --n "$n" --k "$n" --dtype "$dtype" --json "$results/gemm-$dtype-$n.json"
  done
  run "conv-$dtype" bench conv --dtype "$dtype" --json "$results/conv-$dtype.json"
  run "memory-$dtype" bench memory --dtype "$dtype" --json "$results/memory-$dtype.json"
  run "reduce-$dtype" bench reduce --dtype "$dtype" --json "$results/reduce-$dtype.json"
done
run overhead bench overhead --json "$results/overhead.json"
for model in $models; do
  for precision in float32 mixed; do
    run "step-$model-$precision" bench --repeats 10 step --model "$model" --precision "$precision" --batch 64 \
      --operators 15 --json "$results/step-$model-$precision.json" --trace "$results/trace-$model-$precision.json"
  done
done
run tune bench tune --json "$results/tune.json"
for precision in float32 mixed; do
  run "shaders-$precision" bench shaders --model resnet50 --precision "$precision" \
    --json "$results/shaders-$precision.json"
done
if python3 -c 'import torch' 2>/dev/null; then
  precisions=float32
  if python3 -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then precisions="float32 mixed"; fi
  # shellcheck disable=SC2086 # a list of words
  run pytorch timeout 240 python3 "$root/tests/bench/compare_pytorch.py" --bench "$build/bin/bench" --kernels --precisions \
    $precisions --largest-product "$largest" --json "$results/pytorch.json"
else
  echo "python3 has no PyTorch here: not compared"
fi
run selftest timeout 240 "$build/bin/selftest" --html "$results/selftest.html"
run tests device_tests

echo "results are in $results"
if [ -n "$failed" ]; then
  echo "failed:$failed" >&2
  exit 1
fi

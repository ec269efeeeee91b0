#!/bin/sh
# Compiles the kernels of every model for AMD's GPUs with RADV, on a device that does not exist, and fails where a
# pipeline does not compile or spills registers to memory, or where a large product, convolution or elementwise operator
# is predicted to fall short of its part of the GPU's peak. It needs no GPU.
#
#   tests/bench/compiler.sh BENCH [GPU...]    default: navi21 vega10, which the RADV of Debian 12 knows
#   HALFSTEP_RADV="COMMAND"                   runs "COMMAND GPU BENCH ..." on that device, as with a newer RADV in a
#                                             root of its own; default: this machine's RADV
#   HALFSTEP_IMAGINARY_GPU=LIBRARY            shows RADV a GPU by that library, libimaginary_gpu.so, since RADV from Mesa
#                                             26 on has no RADV_FORCE_FAMILY
#   HALFSTEP_EVERY_VARIANT=1                  all models in all precisions, and every variant of every kernel, which may
#                                             spill: tuning measures such a candidate before it is taken
# Exit code: 0, 1 where something was found, 77 where the machine has no RADV.
set -u
[ $# -ge 1 ] || { sed -n '2,14p' "$0" | cut -c3-; exit 2; }
bench=$1
shift
[ $# -gt 0 ] || set -- navi21 vega10
icd=$(find /usr/share/vulkan/icd.d -name 'radeon_icd*.json' 2>/dev/null | head -n 1)
if [ -z "${HALFSTEP_RADV:-}" ] && [ -z "$icd" ]; then
  echo "skipped: this machine has no RADV (Debian's mesa-vulkan-drivers)"
  exit 77
fi
models="resnet20 bert_tiny image_fit"
precisions=mixed
if [ "${HALFSTEP_EVERY_VARIANT:-}" = 1 ]; then
  models="bert_base bert_mini bert_tiny convolution fashion_cnn fashion_conv gpt image_fit image_fit_16 image_fit_32
          image_fit_128 lenet5 mlp mobilenet_v2 movement product resnet20 resnet50 resnet8"
  precisions="float32 autocast mixed float16 bfloat16 bfloat16_weights float8"
fi
# In the folder that it is called from, which another root shares.
results=compiler-results.$$
mkdir "$results" || exit 1
trap 'rm -rf "$results"' EXIT
failures=0
checks=0

# compile GPU ARGUMENTS...
compile() {
  gpu=$1
  shift
  if [ -n "${HALFSTEP_RADV:-}" ]; then
    $HALFSTEP_RADV "$gpu" "$bench" shaders "$@" --json "$results/kernels.json"
  else
    if [ -n "${HALFSTEP_IMAGINARY_GPU:-}" ]; then
      chosen="HALFSTEP_AMD_GPU=$gpu LD_PRELOAD=$HALFSTEP_IMAGINARY_GPU"
    else
      chosen="RADV_FORCE_FAMILY=$gpu"
    fi
    # shellcheck disable=SC2086 # one or two assignments
    env VK_DRIVER_FILES="$icd" VK_ICD_FILENAMES="$icd" HALFSTEP_VALIDATION= $chosen \
      "$bench" shaders "$@" --json "$results/kernels.json"
  fi >"$results/output" 2>&1 </dev/null
}

# check_compiles GPU ARGUMENTS...
check_compiles() {
  checks=$((checks + 1))
  compile "$@" && return
  echo "FAILED $*"
  tail -n 3 "$results/output"
  failures=$((failures + 1))
  return 1
}

# check GPU ARGUMENTS...
check() {
  check_compiles "$@" || return
  if grep -qE '"Spilled [SV]GPRs": [1-9]' "$results/kernels.json"; then
    echo "SPILLS $*"
    failures=$((failures + 1))
  fi
}

# Sums of f16 are computed in f16: by matrix units, or in pairs.
check_half() {
  check "$1" --model product --use-float16-partials
  if ! grep -qE '"(matrix|packed16)": [1-9]' "$results/kernels.json"; then
    echo "NO ARITHMETIC IN F16 $1"
    failures=$((failures + 1))
  fi
}

# Percent of the peak, of memory where an operator only moves data: see `bench shaders --help`.
check_peaks() {
  check "$1" --model product --precision float32 --least 70
  check "$1" --model product --precision mixed --least 60
  for precision in float32 mixed; do
    check "$1" --model convolution --precision $precision --least 50
    check "$1" --model movement --precision $precision --least 80
  done
}

for gpu in "$@"; do
  for model in $models; do
    for precision in $precisions; do check "$gpu" --model "$model" --precision "$precision"; done
  done
  [ "${HALFSTEP_EVERY_VARIANT:-}" = 1 ] || check "$gpu" --model bert_tiny --precision float8
  check_half "$gpu"
  check_peaks "$gpu"
  [ "${HALFSTEP_EVERY_VARIANT:-}" != 1 ] || check_compiles "$gpu" --every-variant
done
echo "$checks checks passed, $failures failed" | sed "s/^$checks/$((checks - failures))/"
[ "$failures" -eq 0 ]

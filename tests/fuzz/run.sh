#!/bin/bash
# Builds the fuzz targets and runs each for a while from the seeds: ./tests/fuzz/run.sh [SECONDS [TARGET...]]
# (120 seconds, every target).
# What is found is left in build/fuzz; the exit code says whether anything was.
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:-120}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- idx cifar npy safetensors tokenizer png jpeg
cmake --preset fuzz --log-level=WARNING
cmake --build --preset fuzz >/dev/null
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

seeds() { # seeds TARGET: makes its first inputs
  mkdir -p "$place/$1"
  cp tests/fuzz/seeds/*."$1" "$place/$1" 2>/dev/null || true
  local tensor='{"a":{"dtype":"F16","shape":[2,1],"data_offsets":[0,4]},"__metadata__":{"b":"c"}}  '
  case $1 in
  idx)
    printf '\0\0\10\3\0\0\0\1\0\0\0\2\0\0\0\2abcd' >"$place/idx/plain"
    gzip -c "$place/idx/plain" >"$place/idx/packed"
    ;;
  cifar)
    head -c 3074 /dev/zero >"$place/cifar/ten"
    { printf '\1'; head -c 3074 /dev/zero; } >"$place/cifar/hundred"
    ;;
  npy)
    local header="{'descr': '<i8', 'fortran_order': False, 'shape': (2, 1), }"
    { printf "\\223NUMPY\\1\\0\\x$(printf %x ${#header})\\0%s" "$header"; head -c 16 /dev/zero; } >"$place/npy/integers"
    header="{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }"
    { printf "\\223NUMPY\\2\\0\\x$(printf %x ${#header})\\0\\0\\0%s" "$header"; printf abcd; } >"$place/npy/bytes"
    ;;
  safetensors) { printf "\\x$(printf %x ${#tensor})\0\0\0\0\0\0\0%s" "$tensor"; printf '\0\74\0\174'; } >"$place/safetensors/seed" ;;
  esac
}

failed=0
for target in "$@"; do
  seeds "$target"
  echo "$target: $seconds s"
  if "build/fuzz/bin/fuzz_$target" -max_total_time="$seconds" -max_len=8192 -timeout=60 -rss_limit_mb=4096 \
    -artifact_prefix="build/fuzz/$target-" -print_final_stats=1 "$place/$target" >"$place/log" 2>&1; then
    grep -E "^(stat::number_of_executed_units|stat::average_exec_per_sec)" "$place/log" | sed 's/^stat::/  /'
  else
    failed=1
    tail -n 30 "$place/log"
  fi
done
exit "$failed"

#!/bin/bash
# The self-test on a driver whose faults are known, and on faults that are planted: run.sh SELFTEST MODE [CASE...].
#   quick    exactly the cases named are wrong
#   planted  each planted fault changes what its case finds, and nothing is found without
#   loop     the same of the fault that Mesa 22's lavapipe has by itself
#   newest   quick, and the planted faults of matrix units, on another driver: HALFSTEP_LAUNCHER is a command that runs a
#            program there, such as "chroot ROOT", with the project's folder where it is here. Skipped without it.
set -u
program=("$1") mode=$2
shift 2
if [ "$mode" = newest ]; then
  [ -n "${HALFSTEP_LAUNCHER:-}" ] || exit 77
  cd "$(dirname "$0")/../.." || exit 1
  TMPDIR=$(dirname "${program[0]}")
  export TMPDIR
  # shellcheck disable=SC2206 # words of a command
  program=($HALFSTEP_LAUNCHER "${program[0]}")
fi
. "$(dirname "$0")/../harness/checks.sh"
: >"$place/error"

quick() { # quick [CASE...]: exactly these are wrong
  "${program[@]}" --quick --json "$place/report.json" --html "$place/report.html" --spirv "$place/spirv" >"$place/error" 2>&1
  local code=$?
  check "the exit code says whether something is wrong, got $code" test "$code" = $(($# > 0 ? 1 : 0))
  printf '%s\n' "$@" | sed '/^$/d' | sort >"$place/expected"
  grep -E '^(wrong|crashed)' "$place/error" | sed -E 's/^[a-z]+ +//; s/ \([0-9.]+ s\)$//' | sort >"$place/wrong"
  check "wrong are '$*', got '$(paste -sd, "$place/wrong")'" cmp -s "$place/expected" "$place/wrong"
  check "the page is whole" grep -q '</html>' "$place/report.html"
  "${program[@]}" --compare "$place/report.json" "$place/report.json" >"$place/same"
  check "a report differs in nothing from itself" grep -q '^no difference$' "$place/same"
  grep -E '^[0-9]+ s$' "$place/error"
}

planted() { # planted PATTERN...: the faults whose names grep finds with these arguments
  "${program[@]}" --list-planted | grep "$@" >"$place/faults"
  cut -f2 "$place/faults" | sort -u >"$place/cases"
  local arguments=()
  while read -r name; do arguments+=(--case "$name"); done <"$place/cases"
  "${program[@]}" "${arguments[@]}" --spirv "$place/spirv" >"$place/error" 2>&1
  check "nothing is wrong without a fault" test $? = 0
  while IFS=$'\t' read -r fault name what; do
    "${program[@]}" --plant "$fault" --case "$name" --spirv "$place/spirv" >"$place/error" 2>&1 </dev/null
    check "$fault ($what) is found by '$name'" test $? = 1
  done <"$place/faults"
}

kept() { # kept WANTED FAULT CASE: the dispatches that a case keeps give this exit code by themselves, without the fault
  local wanted=$1 fault=$2 case=$3 folder=$place/kept.$1 files
  "${program[@]}" ${fault:+--plant "$fault"} --case "$case" --keep --spirv "$folder" >"$place/error" 2>&1
  check "'$case' with '$fault' ends with $wanted" test $? = "$wanted"
  files=$(sed -n 's/.*selftest --kernel //p' "$place/error") # the first that is wrong
  [ "$wanted" != 0 ] || files=$(ls "$folder"/*.json)          # one in each type
  for file in $files; do
    "${program[@]}" --kernel "$file" >"$place/error" 2>&1
    check "the dispatches of ${file##*/} with '$fault' end with $wanted" test $? = "$wanted"
  done
}

changed() { # kernels that are named by hand, and what is left of them
  local folder=$place/changed
  HALFSTEP_CACHE=$folder/cache "${program[@]}" --plant max.min --case f32/order --spirv "$folder" >"$place/error" 2>&1
  check "a wrong kernel of f32/order is kept" test -s "$folder/arithmetic.max.spv"
  check "no cache is written with a planted fault" test ! -e "$folder/cache"
  "${program[@]}" --replace "none=$folder/arithmetic.max.spv" --case f32/exact >"$place/error" 2>&1
  check "a kernel that there is none of is not replaced" test $? = 2
  "${program[@]}" --replace "arithmetic.max=$folder/arithmetic.max.spv" --case f32/exact >"$place/error" 2>&1
  check "a kernel that a case does not use is told" grep -q 'the driver was not given arithmetic.max=' "$place/error"
}

several() { # of several cases, each is told of as if it were alone
  local sum="operator/sum: sum and mean over any axes" softmax="operator/softmax: softmax and its logarithm"
  "${program[@]}" --plant sum.stale --case "$sum" --spirv "$place/spirv" --json "$place/one.json" >"$place/error" 2>&1
  "${program[@]}" --plant sum.stale --case "$softmax" --case "$sum" --spirv "$place/spirv" --json "$place/two.json" \
    >"$place/error" 2>&1
  check "a wrong case names its kernels" grep -q '"kernel": "sum' "$place/one.json"
  grep -h '"kernel"' "$place/one.json" >"$place/kernels"
  check "the same after another case" cmp "$place/kernels" <(grep '"kernel"' "$place/two.json" | tail -1)
  check "its command plants the fault" grep -qF -- "--plant 'sum.stale' --case" "$place/two.json"
  "${program[@]}" --replace "arithmetic.max=$place/changed/arithmetic.max.spv" --case f32/order --case f32/exact \
    --spirv "$place/spirv" >"$place/error" 2>&1
  check "a kernel that the second case does not use is told" test "$(grep -c 'was not given' "$place/error")" = 1
  check "the command replaces the kernel" grep -qF -- "--replace 'arithmetic.max=" "$place/error"
}

unwritten() { # a report that a case's process cannot write is no verdict
  (
    trap '' XFSZ
    ulimit -f 0
    "${program[@]}" --quick --spirv "$place/spirv" 2>&1
  ) | cat >"$place/error"
  check "a report that is not written ends the self-test" test "${PIPESTATUS[0]}" = 2
  check "and it says why" grep -q '^\[file\] cannot write ' <(tail -1 "$place/error")
}

odd_texts() { # names that are no UTF-8 or have an apostrophe, and errors without a newline
  "${program[@]}" --plant neg.keeps --case f32/exact --spirv "$place"/$'\xff' \
    --json "$place/bytes.json" >"$place/error" 2>&1
  check "a report is written whose texts are no UTF-8" test "$? $(grep -c '"spirv"' "$place/bytes.json")" = "1 1"
  "${program[@]}" --case "operator/custom_operator: an application's own operator: a workspace may be a scalar" \
    --json "$place/quoted.json" >"$place/error" 2>&1
  check "the command for a case is quoted" grep -qF "an application'\\\\''s own" "$place/quoted.json"
  HALFSTEP_DEVICE=none "${program[@]}" --quick >"$place/error" 2>&1
  check "why no case runs is told to its end" grep -q 'bin/devices lists them$' "$place/error"
}

lost() { # a kernel ends its process; later cases cannot be run any more: as with a driver that does not survive one
  cp "$place/changed/arithmetic.max.spv" "$place/one.spv"
  : >"$place/error" # which has what ran before until the next has begun
  "${program[@]}" --quick --plant crash.floor --replace "subgroup.vote=$place/one.spv" --json "$place/lost.json" \
    --spirv "$place/lost" >"$place/error" 2>&1 &
  until grep -q '^right' "$place/error" || ! kill -0 $! 2>/dev/null; do sleep 0.1; done
  rm "$place/one.spv"
  wait $!
  check "what was found before is kept" test "$? $(grep -q '"right"' "$place/lost.json" && echo right)" = "1 right"
  check "the kernel that ended its process is told" grep -q '"kernel": "arithmetic.floor"' "$place/lost.json"
  check "its SPIR-V is kept, and no other" test "$(ls "$place/lost")" = arithmetic.floor.spv
}

case $mode in
quick) quick "$@" ;;
planted)
  planted -v -E '^(loop|matrix|crash)\.'
  kept 0 "" "operator/losses: gradient of cross-entropy"
  kept 1 loss.gradient "operator/losses: gradient of cross-entropy"
  echo '{"what": 1}' >"$place/damaged.json"
  "${program[@]}" --kernel "$place/damaged.json" >"$place/error" 2>&1
  check "a damaged description is refused" test $? = 2
  echo old >"$place/old.json"
  chmod 444 "$place/old.json"
  "${program[@]}" --case f32/exact --json "$place/old.json" >"$place/error" 2>&1
  check "a report is not written over a read-only file" test "$? $(cat "$place/old.json")" = "2 old"
  "${program[@]}" --case f32/exact 2>"$place/error" >/dev/full
  check "output that is lost is an error" test $? = 2
  "${program[@]}" --case f32/exact --json "$place/one" --html "$place/one" >"$place/error" 2>&1
  check "two reports are not written to one file" test $? = 2
  for other in "--list" "--list-planted" "--kernel $place/damaged.json" "--compare $place/damaged.json $place/damaged.json"; do
    "${program[@]}" $other --json "$place/none.json" >"$place/error" 2>&1
    check "$other writes no report, and says so" grep -q -- '--json excludes\|excludes --json' "$place/error"
  done
  "${program[@]}" --case f32/exact --case none >"$place/error" 2>&1
  check "an unknown case is refused before others run" grep -q '^\[selftest\] expected a case' <(head -1 "$place/error")
  odd_texts
  changed
  several
  unwritten
  lost
  ;;
loop) planted '^loop\.' ;;
newest)
  quick "$@"
  planted '^matrix\.'
  ;;
esac
finish

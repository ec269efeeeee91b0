#!/bin/bash
# The self-test on a driver whose faults are known, and on faults that are planted: run.sh SELFTEST quick|planted|loop
# [CASE...]. `quick` expects that exactly the cases named are wrong; `planted` that each planted fault changes what its
# case finds, and nothing is found without; `loop` does so for the fault that Mesa 22's lavapipe has by itself.
set -u
program=$1 mode=$2
shift 2
. "$(dirname "$0")/../harness/checks.sh"
: >"$place/error"

case $mode in
quick)
  "$program" --quick --json "$place/report.json" --html "$place/report.html" --spirv "$place/spirv" >"$place/error" 2>&1
  code=$?
  check "the exit code says whether something is wrong, got $code" test "$code" = $(($# > 0 ? 1 : 0))
  printf '%s\n' "$@" | sed '/^$/d' | sort >"$place/expected"
  grep -E '^(wrong|crashed)' "$place/error" | sed -E 's/^[a-z]+ +//; s/ \([0-9.]+ s\)$//' | sort >"$place/wrong"
  check "wrong are '$*', got '$(paste -sd, "$place/wrong")'" cmp -s "$place/expected" "$place/wrong"
  check "the page is whole" grep -q '</html>' "$place/report.html"
  "$program" --compare "$place/report.json" "$place/report.json" >"$place/same"
  check "a report differs in nothing from itself" grep -q '^no difference$' "$place/same"
  ;;
planted | loop)
  "$program" --list-planted | if [ $mode = loop ]; then grep '^loop\.'; else grep -v '^loop\.'; fi >"$place/faults"
  cut -f2 "$place/faults" | sort -u >"$place/cases"
  arguments=()
  while read -r name; do arguments+=(--case "$name"); done <"$place/cases"
  "$program" "${arguments[@]}" --spirv "$place/spirv" >"$place/error" 2>&1
  check "nothing is wrong without a fault" test $? = 0
  while IFS=$'\t' read -r fault name what; do
    "$program" --plant "$fault" --case "$name" --spirv "$place/spirv" >"$place/error" 2>&1 </dev/null
    check "$fault ($what) is found by '$name'" test $? = 1
  done <"$place/faults"
  ;;
esac
finish

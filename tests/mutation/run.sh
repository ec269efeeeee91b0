#!/bin/bash
# Mutation tests: makes one small change to the product at a time, and says whether the tests that should notice do.
#     tests/mutation/run.sh [--list] [--build FOLDER] [PATTERN...]     (--list: names them, if all still apply)
# Prints "caught NAME (TESTS)" or "SURVIVED NAME" for each mutation whose name matches a pattern (*: any text), or for
# all. Exit code: 0 where all were caught, 1 where one survived, 2 where a mutation no longer applies, builds or has
# tests that pass without it, 77 where this machine cannot run them.
#
# The mutations are blocks of tests/mutation/*.txt, apart by an empty line:
#     NAME | FILE | PROGRAM | TEST CASES
#     - text to replace, once in the file; more such lines for several lines
#     + new text
# FILE is the name of a file that only one folder of engine/ or shaders/ has. PROGRAM is host_tests or device_tests.
#
# The source and a finished build (FOLDER, build/release if not given) are copied to a scratch folder, and the copies
# mounted in the place of both, for this process alone. So nothing is compiled but what a mutation changes.
set -u
export HALFSTEP_EVERY_VARIANT=1 # a mutation may show in one of a kernel's variants only
export GALLIVM_PERF=nopt        # lavapipe then compiles kernels in half the time
source=$(cd "$(dirname "$0")/../.." && pwd -P) || exit 2
build=$source/build/release
list=""
patterns=()
while [ $# -gt 0 ]; do
  case $1 in
    --list) list=yes ;;
    --build) build=$2 && shift ;;
    -*) echo "expected --list, --build FOLDER or patterns, got $1" >&2 && exit 2 ;;
    *) patterns+=("$1") ;;
  esac
  shift
done
[ ${#patterns[@]} -gt 0 ] || patterns=('*')
seconds=300 # for the tests of a mutation; one that makes them hang is caught

error() {
  echo "ERROR $1: $2" >&2
  errors=$((errors + 1))
}

wanted() {
  local pattern
  # shellcheck disable=SC2053 # a pattern
  for pattern in "${patterns[@]}"; do [[ $1 == $pattern ]] && return; done
  return 1
}

# Runs the test cases $2 of the program $1; by a shell of its own, whose report of a crash goes to the log.
tests_pass() {
  (
    timeout "$seconds" "$build/bin/$1" "--test-case=$2" --no-version
    exit
  ) >"$log" 2>&1 </dev/null
}

# passed_before NAME PROGRAM TESTS: without a mutation, and that there are such tests
declare -A passed
passed_before() {
  [ -n "${passed["$2 $3"]-}" ] && return
  if ! tests_pass "$2" "$3"; then
    error "$1" "its tests fail without it: $3"
    tail -n 20 "$log" >&2
    return 1
  fi
  grep -q 'test cases: *[1-9]' "$log" || { error "$1" "no test case is called $3" && return 1; }
  passed["$2 $3"]=yes
}

# Puts back what a mutation changed, in the source and in the build.
restore() {
  local changed
  cp -p "$scratch/original_source/${file#"$source"/}" "$file"
  while IFS= read -r -d '' changed; do
    # A program that still runs can be replaced, but not written to.
    cp -p --remove-destination "$scratch/original_build/$changed" "$build/$changed" 2>/dev/null ||
      rm -f "${build:?}/$changed"
  done < <(cd "$build" && find . -newer "$scratch/start" -type f -print0)
}

make_program() {
  cmake --build "$build" --target "$1" >"$log" 2>&1 </dev/null && return
  tail -n 30 "$log" >&2
  return 1
}

# applies NAME FILE OLD: finds `file` and its `text`, which has OLD once
applies() {
  local files after
  mapfile -t files < <(find "$source/engine" "$source/shaders" -path "*/$2")
  [ ${#files[@]} = 1 ] || { error "$1" "expected one file called $2, got ${#files[@]}" && return 1; }
  file=${files[0]}
  text=$(<"$file")
  after=${text#*"$3"}
  [[ $after != "$text" && $after != *"$3"* ]] || { error "$1" "expected its text once in $2" && return 1; }
}

# run_one NAME FILE PROGRAM TESTS OLD NEW
run_one() {
  local name=$1 program=$3 tests=$4 old=$5 new=$6 file text
  chosen=$((chosen + 1))
  applies "$name" "$2" "$old" || return
  passed_before "$name" "$program" "$tests" || return
  printf '%s\n' "${text/"$old"/"$new"}" >"$file"
  if ! make_program "$program"; then
    error "$name" "does not build"
  else
    tests_pass "$program" "$tests"
    case $? in
      0)
        echo "SURVIVED $name"
        survived=$((survived + 1))
        ;;
      137 | 143) error "$name" "its tests were ended from outside" ;;
      *) echo "caught $name ($tests)" ;;
    esac
  fi
  restore
}

# Calls $1 with the six parts of each mutation that is wanted.
for_each() {
  local head="" old="" new="" line name file program tests newline=$'\n'
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in
      '#'*) continue ;;
      '- '*) old+=${line#- }$newline ;;
      '+ '*) new+=${line#+ }$newline ;;
      '')
        [ -n "$head" ] || continue
        IFS='|' read -r name file program tests <<<"${head// | /|}"
        ! wanted "$name" || "$1" "$name" "$file" "$program" "$tests" \
          "${old%"$newline"}" "${new%"$newline"}"
        head="" old="" new=""
        ;;
      *) head=$line ;;
    esac
  done < <(for file in "$source"/tests/mutation/*.txt; do cat "$file" && echo; done)
}

# copied FROM TO PATH...: copies a folder's files but for these PATHs in it. What tests write that run beside this one is
# among these: a file that is gone before it is copied is an error.
copied() {
  local from=$1 to=$2 path omitted=(-name __pycache__)
  for path in "${@:3}"; do omitted+=(-o -path "./$path"); done
  (
    cd "$from" || exit
    find . \( "${omitted[@]}" \) -prune -o \( -type f -o -type l \) -print0 | xargs -0 cp -a --parents -t "$to"
  ) && return
  echo "cannot copy $from to $to, where $(df -h --output=avail "$to" | tail -n 1) are left" >&2
  return 1
}

# names TESTS: each of these patterns is of a test case (a * may span several here)
names() {
  local pattern patterns
  IFS=, read -ra patterns <<<"$1"
  # shellcheck disable=SC2053 # a pattern
  for pattern in "${patterns[@]}"; do [[ $test_cases == *$'\n'$pattern$'\n'* ]] || return; done
}

show() {
  local file text
  applies "$1" "$2" "$5" || return
  names "$4" || { error "$1" "no test case is called $4" && return; }
  echo "$1 ($2): $4"
}

chosen=0
survived=0
errors=0
if [ -n "$list" ]; then
  test_cases=$(grep -rhoPz --include='test_*.cpp' 'TEST_CASE[A-Z_]*\([^"]*"\K[^"]*' "$source/tests" | tr '\0' '\n')
  test_cases=$'\n'$test_cases$'\n'
  for_each show
  [ "$errors" = 0 ] || exit 2
  exit
fi

# Begins again with mounts of its own.
if [ -z "${HALFSTEP_MUTATION_SCRATCH-}" ]; then
  build=$(cd "$build" 2>/dev/null && pwd -P) || { echo "expected a finished build, got no folder $build" >&2 && exit 2; }
  isolate=(unshare --mount)
  [ "$(id -u)" = 0 ] || isolate=(unshare --map-root-user --mount)
  "${isolate[@]}" mount --bind "$source" "$source" 2>/dev/null || { echo "cannot mount on this machine" && exit 77; }
  scratch=$(mktemp -d) || exit 2
  trap 'rm -rf "$scratch"' EXIT
  trap 'exit 130' INT TERM HUP
  mkdir "$scratch"/{,original_}{source,build}
  cmake --build "$build" --target host_tests device_tests >"$scratch/log" 2>&1 || { cat "$scratch/log" && exit 2; }
  copied "$source" "$scratch/source" build '.*' || exit 2
  copied "$build" "$scratch/build" Testing tests/cache tests/reference 'tests/compiler-results.*' 'bin/tmp.*' || exit 2
  touch "$scratch/start"
  HALFSTEP_MUTATION_SCRATCH=$scratch "${isolate[@]}" "$0" --build "$build" "${patterns[@]}"
  exit
fi
scratch=$HALFSTEP_MUTATION_SCRATCH
log=$scratch/log
export HALFSTEP_CACHE=$scratch/cache
case $build in "$source"/*) mkdir -p "$scratch/source/${build#"$source"/}" ;; esac
mount --bind "$source" "$scratch/original_source" && mount --bind "$build" "$scratch/original_build" || exit 77
mount --bind "$scratch/source" "$source" && mount --bind "$scratch/build" "$build" || exit 77
cd "$source" || exit 2
for_each run_one
[ "$chosen" != 0 ] || error "${patterns[*]}" "no mutation has such a name"
[ "$errors" = 0 ] || exit 2
[ "$survived" = 0 ]

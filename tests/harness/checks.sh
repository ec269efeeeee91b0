# What the tests written in shell share: a folder of their own, and counted checks. Sourced, not run.
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
passed=0
failed=0

check() { # check WHAT COMMAND...: the command succeeds
  local what=$1
  shift
  if "$@"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $what"
    sed 's/^/    /' "$place/error" | head -5
  fi
}

finish() { # prints the counts; fails where a check has
  echo "$passed checks passed, $failed failed"
  test "$failed" = 0
}

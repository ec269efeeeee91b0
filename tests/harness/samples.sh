# What the tests of the samples share: running $program, and a data set of IDX files in $data. Sourced after checks.sh.

run() { # run ARGUMENTS...: leaves code, $place/output and $place/error
  "$program" "$@" >"$place/output" 2>"$place/error"
  code=$?
}

fails() { # fails CODE TEXT ARGUMENTS...: that exit code, and one line with TEXT on standard error
  local wanted=$1 text=$2
  shift 2
  run "$@"
  check "'$*': exit code $wanted, got $code" test "$code" = "$wanted"
  check "'$*': one line on standard error" test "$(wc -l <"$place/error")" = 1
  check "'$*': the line says '$text'" grep -qF -- "$text" "$place/error"
}

refused() { # refused TEXT ARGUMENTS...: exit code 2, and one line with TEXT on standard error
  fails 2 "$@"
}

trains() { # trains ARGUMENTS...
  run "$@"
  check "'$*': exit code 0, got $code" test "$code" = 0
  check "'$*': nothing on standard error" test ! -s "$place/error"
}

started() { # started ARGUMENTS...: in the background, as $pid. What an earlier run printed is gone.
  : >"$place/output"
  "$program" "$@" >"$place/output" 2>"$place/error" &
  pid=$!
}

until_true() { # until_true COMMAND...: waits for it to succeed, as long as $pid runs
  until "$@" >"$place/until" 2>&1 || ! kill -0 $pid 2>"$place/until"; do sleep 0.02; done
}

differ() { # differ A B: both are there, with other bytes
  cmp -s "$1" "$2"
  test $? = 1
}

stops() { # stops SIGNAL CODE SECONDS: $pid ends with the code, soon after the signal
  local before=${EPOCHREALTIME//[.,]/} # by locale
  kill -"$1" $pid
  wait $pid
  code=$?
  local took=$((${EPOCHREALTIME//[.,]/} - before))
  check "SIG$1: exit code $2, got $code" test "$code" = "$2"
  check "SIG$1: within $3 s, took $took us" test "$took" -lt "$(($3 * 1000000))"
}

# on_full_disk FOLDER COMMAND...: runs it with FOLDER on a disk of its own, with room for what is there and 64 KiB more;
# leaves code, $place/output and $place/error, and in FOLDER what was left there. Fails where this machine mounts nothing.
# A limit on the size of files would not do: drivers keep memory in files, too.
on_full_disk() {
  local own=()
  [ "$(id -u)" = 0 ] || own=(--map-root-user)
  if ! unshare "${own[@]}" --mount mount -t tmpfs none "$1" 2>/dev/null; then
    echo "skipped: a disk that fills up, as this machine mounts none"
    return 1
  fi
  # shellcheck disable=SC2016 # of the inner shell
  unshare "${own[@]}" --mount bash -c '
    folder=$1 disk=$2 output=$3 error=$4
    shift 4
    mount -t tmpfs -o size=$(($(du -sk "$folder" | cut -f 1) + 64))k none "$disk"
    cp -a "$folder/." "$disk"
    mount --bind "$disk" "$folder"
    "$@" >"$output" 2>"$error"
    code=$?
    umount "$folder"
    find "$folder" -mindepth 1 -delete
    cp -a "$disk/." "$folder"
    exit "$code"' on_full_disk "$1" "$(mktemp -d -p "$place")" "$place/output" "$place/error" "${@:2}"
  code=$?
}

entries() { find "$1" -mindepth 1 | wc -l; }

# bytes NUMBER...: bytes of the given values
bytes() {
  local byte
  for byte in "$@"; do printf "\\x$(printf %02x "$byte")"; done
}

# ends_whole FILE: a PNG file that has its last chunk
ends_whole() { cmp -s <(tail -c 8 "$1") <(bytes 0x49 0x45 0x4e 0x44 0xae 0x42 0x60 0x82); }

# idx TYPE COUNT [HEIGHT WIDTH]: the header of an IDX file
idx() {
  bytes 0 0 "$1" $(($# - 1))
  shift
  local extent
  for extent in "$@"; do bytes $((extent >> 24 & 255)) $((extent >> 16 & 255)) $((extent >> 8 & 255)) $((extent & 255)); done
}

noise() { head -c "$1" /dev/urandom; }

# A data set of our own, small enough to break in every way: 96 images of 8 by 8 to train on, 40 to test on.
write_data() {
  rm -rf "$data"
  mkdir -p "$data"
  { idx 8 96 8 8; noise $((96 * 64)); } >"$data/train-images-idx3-ubyte"
  { idx 8 96; for i in $(seq 96); do bytes $((i % 10)); done; } >"$data/train-labels-idx1-ubyte"
  { idx 8 40 8 8; noise $((40 * 64)); } | gzip >"$data/t10k-images-idx3-ubyte.gz"
  { idx 8 40; for i in $(seq 40); do bytes $((i % 10)); done; } | gzip >"$data/t10k-labels-idx1-ubyte.gz"
}

#!/bin/bash
# Training on several ranks over MPI: the same bits as one process, half the bytes in f16, ranks that differ, one that is
# killed, and checkpoints that go on with another number of ranks. Usage: ranks.sh FOLDER_OF_PROGRAMS [OTHER_ICD_FILE]
# With the file of a second driver, one rank trains on each. HALFSTEP_MPIRUN is what starts ranks, where it is not mpirun.
set -u
bin=$1
other=${2-}
mpirun=${HALFSTEP_MPIRUN:-mpirun}
command -v "$mpirun" >/dev/null || { echo "skipped: $mpirun is not installed (samples/setup.sh --tests installs it)" && exit 77; }
nm "$bin/float32_master_weights" 2>/dev/null | grep -q MPI_Init || { echo "skipped: built without MPI" && exit 77; }
. "$(dirname "$0")/../harness/checks.sh"
. "$(dirname "$0")/../harness/samples.sh"

data=$place/data
write_data
small=(mixed --data "$data" --batch-size 8 --quiet) # 12 steps an epoch
# Ranks share this machine's processors, and a user's memory need not be another's to read.
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Under the address sanitizer: what a library leaves behind is known by the library's name, which it must not lose at the end.
if nm "$bin/float32_master_weights" | grep -q __asan_init; then
  cat "$(dirname "$0")"/../harness/leaks_of_{drivers,mpi}.supp >"$place/leaks.supp"
  echo 'int dlclose(void *library) { return library == 0; }' | cc -shared -fPIC -x c - -o "$place/kept.so"
  export LSAN_OPTIONS=suppressions=$place/leaks.supp:print_suppressions=0 ASAN_OPTIONS=verify_asan_link_order=0
  export LD_PRELOAD=$place/kept.so
fi
# Under the thread sanitizer, which sees no locks of MPI's and the driver's own.
export TSAN_OPTIONS=ignore_noninstrumented_modules=1
flags=()
"$mpirun" --version 2>/dev/null | grep -q "Open MPI" && flags=(-q --oversubscribe)
start_ranks() { # start_ranks ARGUMENTS...: of mpirun. What MPICH adds to a message of Halfstep's is left out
  local code
  "$mpirun" "${flags[@]}" "$@" 2>"$place/said"
  code=$?
  grep -v '^Abort(' "$place/said" >&2
  return $code
}
program=start_ranks
signal_one() { # signal_one SIGNAL WORD: to one of the ranks with that word on their command lines
  local process words ranks=()
  for process in /proc/[0-9]*; do
    mapfile -d '' -t words 2>"$place/until" <"$process/cmdline" || continue
    [ "${words[0]-}" = "$bin/float32_master_weights" ] || continue
    ! printf '%s\n' "${words[@]}" | grep -qxF -- "$2" || ranks+=("${process#/proc/}")
  done
  check "there is a rank with $2" test ${#ranks[@]} != 0
  [ ${#ranks[@]} != 0 ] || ranks=("$pid") # so that nothing is waited for in vain
  kill -"$1" "${ranks[RANDOM % ${#ranks[@]}]}"
}
on() { # on COUNT ARGUMENTS...: what runs float32_master_weights on so many ranks
  ranks=(-n "$1" "$bin/float32_master_weights" "${small[@]}")
}
same_tensors() { # same_tensors A B: files of equal values, whatever flags they note
  python3 - "$@" <<'PYTHON'
import struct, sys
def values(name):
    data = open(name, "rb").read()
    return data[8 + struct.unpack("<Q", data[:8])[0]:]
sys.exit(values(sys.argv[1]) != values(sys.argv[2]) or not values(sys.argv[1]))
PYTHON
}
number() { sed -n "s/.*\"$1\": \([0-9.e+-]*\).*/\1/p" "$2"; } # number NAME FILE: of a report

# As one process with as many micro-batches, to the bit; one rank prints.
alone() { "$bin/float32_master_weights" "${small[@]}" "$@" >"$place/output" 2>"$place/error"; }
check "one process trains" alone --epochs 1 --accumulate 4 --save "$place/alone"
on 2
trains "${ranks[@]}" --epochs 1 --accumulate 2 --balance 3:1 --save "$place/three_one"
check "3 of 4 micro-batches on one rank" grep -q '^ranks: micro-batches 3:1$' "$place/output"
check "2 ranks of unequal parts end with them too" same_tensors "$place/alone" "$place/three_one"
on 4
trains "${ranks[@]}" --epochs 1 --save "$place/four"
check "4 ranks end with the weights of one process" same_tensors "$place/alone" "$place/four"
check "one rank prints" test "$(grep -c '^epoch 1/1' "$place/output")" = 1
on 2
trains "${ranks[@]}" --epochs 1 --save "$place/two" --json "$place/f32.json" --log "$place/log" --watch 'conv1/*gradient'
check "the report has ranks" test "$(number ranks "$place/f32.json")" = 2
check "the log has each step once" test "$(grep -c '"kind":"step"' "$place/log")" = 12
trains "${ranks[@]}" --epochs 1 --json "$place/f16.json" --exchange f16 --exchange-rounding stochastic
share=$((100 * $(number bytes_sent "$place/f16.json") / $(number bytes_sent "$place/f32.json")))
check "f16 sends half the bytes, got $share%" test "$share" -ge 50 -a "$share" -le 52

# A checkpoint of 2 ranks goes on with 1 and 4, to the same bits.
on 4
trains "${ranks[@]}" --epochs 2 --resume "$place/two" --save "$place/four"
check "one process goes on" alone --epochs 2 --accumulate 4 --resume "$place/two" --save "$place/alone"
check "4 ranks go on as one process does" same_tensors "$place/alone" "$place/four"

# Ranks that share out what the optimizer keeps: the same file, and three quarters of the bytes, but for those of the save.
on 2
trains "${ranks[@]}" --epochs 1 --shard-state --save "$place/sharded" --json "$place/sharded.json"
check "2 ranks with a part each end with the same weights" same_tensors "$place/two" "$place/sharded"
share=$((100 * $(number bytes_sent "$place/sharded.json") / $(number bytes_sent "$place/f32.json")))
check "they send fewer bytes, got $share%" test "$share" -ge 75 -a "$share" -le 90
on 4
trains "${ranks[@]}" --epochs 2 --resume "$place/sharded" --shard-state --save "$place/sharded"
check "4 ranks with a part each go on as one process does" same_tensors "$place/alone" "$place/sharded"

# Ranks that step by themselves: few bytes, and a checkpoint between two synchronisations goes on to the same bits.
on 2
local=(--sync-every 5 --exchange f16)
trains "${ranks[@]}" --epochs 1 "${local[@]}" --json "$place/local.json"
share=$((100 * $(number bytes_sent "$place/local.json") / $(number bytes_sent "$place/f32.json")))
check "they send few bytes, got $share%" test "$share" -le 15
trains "${ranks[@]}" --epochs 2 "${local[@]}" --save "$place/local"
trains "${ranks[@]}" --epochs 1 "${local[@]}" --save "$place/half"
trains "${ranks[@]}" --epochs 2 "${local[@]}" --resume "$place/half" --save "$place/half"
check "ranks that step by themselves go on as they would have" same_tensors "$place/local" "$place/half"

# Batch norm over all ranks: as one process with the whole batch, but for rounding, and not as each rank by itself.
loss() { number loss "$1" | head -n 1; } # of a report's first epoch
near() { python3 -c 'import sys; a, b, most = map(float, sys.argv[1:]); sys.exit(not abs(a - b) < most * a)' "$@"; }
mkdir "$place/cifar"
for file in data_batch_1 test_batch; do
  for i in $(seq 24); do
    bytes $((i % 10))
    noise $((128 * i)) # some are darker
    head -c $((3072 - 128 * i)) /dev/zero
  done >"$place/cifar/$file.bin"
done
norms=(--data "$place/cifar" --batch-size 8 --epochs 1 --quiet --json "$place/norms.json")
shallow=("$bin/stochastic_rounding" float32 8 "${norms[@]}")
deep=("$bin/stochastic_rounding" float32 14 "${norms[@]}")
check "one process trains a network with norms" "${shallow[@]}" >"$place/output" 2>"$place/error"
whole=$(loss "$place/norms.json")
trains -n 2 "${shallow[@]}" --sync-batch-norm
check "2 ranks with statistics of both come to a loss of $whole" near "$whole" "$(loss "$place/norms.json")" 1e-4
trains -n 2 "${shallow[@]}"
check "with statistics of their own to another" test "$(near "$whole" "$(loss "$place/norms.json")" 1e-4 || echo no)"
refused "expected equal parts of ranks that exchange every step with Ranks::sync_batch_norm, got sync_every" \
  -n 2 "${shallow[@]}" --sync-batch-norm --sync-every 5
refused "expected one model on all ranks, got 'resnet8'" \
  -n 1 "${shallow[@]}" : -n 1 "${deep[@]}"

# Ranks that differ, and programs that are no ranks.
python3 - "$bin/float32_master_weights" "$place/newer" <<'PYTHON'
import re, sys
changed, count = re.subn(rb"\0(\d+\.\d+\.)\d\0", rb"\0\g<1>x\0", open(sys.argv[1], "rb").read())
open(sys.argv[2], "wb").write(changed)
sys.exit(count != 1)
PYTHON
check "a program of another version is made" test $? = 0
chmod +x "$place/newer"
refused "expected one version on all ranks, got " \
  -n 1 "$bin/float32_master_weights" "${small[@]}" : -n 1 "$place/newer" "${small[@]}"
rm "$place/newer"
cp -r "$data" "$place/other_data"
printf x | dd of="$place/other_data/train-images-idx3-ubyte" bs=1 seek=999 conv=notrunc 2>"$place/error"
refused "expected one training set on all ranks" -n 1 "$bin/float32_master_weights" "${small[@]}" \
  : -n 1 "$bin/float32_master_weights" mixed --data "$place/other_data" --batch-size 8 --quiet
refused "expected one seed on all ranks, got 42 on rank 0 and 7 on rank 1" \
  -n 1 "$bin/float32_master_weights" "${small[@]}" : -n 1 "$bin/float32_master_weights" "${small[@]}" --seed 7
on 3
refused "expected a multiple of 3" "${ranks[@]}"
refused "expected one process of this program, got 2" -n 2 "$bin/devices"
on 2
refused "--trace" "${ranks[@]}" --trace "$place/trace"

# A rank that is killed ends the job, and the last checkpoint is whole and goes on, with another number of ranks too: once,
# at another moment each time with HALFSTEP_EVERY_VARIANT=1, 50 times.
kills=1
slowest=0
[ "${HALFSTEP_EVERY_VARIANT:-}" != 1 ] || kills=50
for ((kill = 0; kill < kills; kill++)); do
  rm -f "$place/killed"
  on $((2 + kill % 2 * 2))
  started "${ranks[@]}" --epochs 100000 --save "$place/killed" --save-every 3
  until_true test -s "$place/killed"
  sleep "$(printf 0.%03d $((RANDOM % 1000)))"
  signal_one KILL "$place/killed"
  before=${EPOCHREALTIME//[.,]/}
  wait $pid
  check "the job fails" test $? != 0
  took=$(((${EPOCHREALTIME//[.,]/} - before) / 1000))
  check "within 10 s, took $took ms" test $took -le 10000
  [ $took -le $slowest ] || slowest=$took
  check "the checkpoint is whole" alone --epochs 1 --resume "$place/killed"
  if [ $((kill % 5)) = 1 ]; then
    trains -n 4 "$bin/float32_master_weights" "${small[@]}" --epochs 1 --resume "$place/killed"
  fi
done

echo "$kills killed: the jobs ended within $slowest ms"

# A signal to one rank stops all after the same step, and rank 0 saves.
started "${ranks[@]}" --epochs 100000 --save "$place/stopped"
until_true test -s "$place/stopped"
signal_one TERM "$place/stopped"
wait $pid
check "SIGTERM to one rank: exit code 143" test $? = 143
check "all stop, and one saves" grep -q '^stopped after [0-9]* steps, saved in ' "$place/output"

# One rank on each of two drivers, which compare all of their weights after every step, in parts by their speed.
if [ -n "$other" ]; then
  each=("$bin/float32_master_weights" "${small[@]}" --epochs 2 --compare-every 1 --accumulate 2 --balance measured)
  trains -n 1 "${each[@]}" : -n 1 env "VK_DRIVER_FILES=$other" "VK_ICD_FILENAMES=$other" "${each[@]}"
  check "the drivers are named" grep -q "^ranks: rank 0 computes on .*, rank 1 on " "$place/output"
  # Reproducible arithmetic leaves nothing to differ.
  each=("$bin/float32_master_weights" "${small[@]}" --epochs 1 --reproducible)
  trains -n 1 "${each[@]}" --save "$place/two" : \
    -n 1 env "VK_DRIVER_FILES=$other" "VK_ICD_FILENAMES=$other" "${each[@]}" --save "$place/two"
  check "one process trains reproducibly" alone --epochs 1 --accumulate 2 --reproducible --save "$place/alone"
  check "two drivers end with its weights" same_tensors "$place/alone" "$place/two"
fi

finish

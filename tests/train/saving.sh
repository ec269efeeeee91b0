#!/bin/bash
# Checkpoints as the samples' users meet them: what a resumed run says and counts, saving while training goes on, signals,
# disks that fill up, files that must not be overwritten. Usage: saving.sh FOLDER_OF_PROGRAMS
set -u
programs=$1
program=$1/float32_master_weights
. "$(dirname "$0")/../harness/checks.sh"
. "$(dirname "$0")/../harness/samples.sh"

data=$place/data
write_data
mkdir "$place/saved"
model=$place/saved/model
small=(mixed --data "$data" --epochs 1)

says() { # says TEXT: standard output has a line with it
  check "it says '$1'" grep -qF -- "$1" "$place/output"
}

edited() { # edited FROM TO: $place/edited is the checkpoint with one text for another of the same length
  LC_ALL=C sed "s/$1/$2/" "$model" >"$place/edited"
  check "'$1' became '$2'" test "$(cmp "$model" "$place/edited" | wc -l)" = 1
}

# What a resumed run says, and what it counts.
trains "${small[@]}" --save "$model"
trains "${small[@]}" --resume "$model"
says "resumed from $model after 3 steps, with 0 of the 3 steps of epoch 2 done"
check "nothing differs" test "$(grep -c "counts for" "$place/output")" = 0
trains mixed --data "$data" --epochs 2 --batch-size 16 --learning-rate 0.02 --seed 7 --resume "$model" --json "$place/report" \
  --save "$place/resized" --quiet
says "with 0 of the 6 steps of epoch 2 done"
says "--batch-size 16 (checkpoint: 32)"
says "--learning-rate 0.02 (checkpoint: 0.01)"
says "the checkpoint counts for --seed 42 (command line: 7)"
check "one epoch of 6 steps more than 3" grep -q '"steps": 9,' "$place/report"
trains mixed --data "$data" --epochs 3 --batch-size 16 --resume "$place/resized" --json "$place/report"
says "after 9 steps, with 0 of the 6 steps of epoch 3 done"
check "another epoch of 6 steps" grep -q '"steps": 15,' "$place/report"
trains float32 --data "$data" --epochs 2 --limit 64 --dynamic-loss-scaling --loss-scaling-factor 8 --resume "$model" \
  --json "$place/report" --save "$place/dynamic"
says "precision float32 (checkpoint: mixed)"
says "--limit 64 (checkpoint: none)"
says "--loss-scaling-factor 8 (checkpoint: 256)"
check "a fixed loss scale does not go on as a dynamic one" grep -q '"loss_scale": 8' "$place/report"
trains float32 --data "$data" --epochs 3 --limit 64 --dynamic-loss-scaling --loss-scaling-factor 4 \
  --resume "$place/dynamic" --json "$place/report"
says "the checkpoint counts for its loss scale (command line: --loss-scaling-factor 4)"
check "a dynamic loss scale goes on" grep -q '"loss_scale": 8' "$place/report"
cp -r "$data" "$place/other"
{ idx 8 96 8 8; noise $((96 * 64)); } >"$place/other/train-images-idx3-ubyte"
trains mixed --data "$place/other" --epochs 1 --resume "$model"
says "the data in $place/other (checkpoint: other data)"
edited '"flags"' '"flagz"'
trains "${small[@]}" --resume "$place/edited"
says "an older version wrote it"
edited '"epoch"' '"epocx"'
trains "${small[@]}" --resume "$place/edited"
says "with 0 of the 3 steps of epoch 2 done"
edited '"epoch_step":"0"' '"epoch_step":"3"'
refused "expected 'epoch_step' from 0 to 2 in its metadata, got '3'" "${small[@]}" --resume "$place/edited"
edited 'halfstep 1' 'halfstep 2'
refused "expected a checkpoint of format halfstep 1 or earlier, got 'halfstep 2'" "${small[@]}" --resume "$place/edited"
refused "10" mixed --data "$data" --classes 12 --resume "$model"
{ idx 8 96 8 9; noise $((96 * 72)); } >"$place/other/train-images-idx3-ubyte"
{ idx 8 40 8 9; noise $((40 * 72)); } | gzip >"$place/other/t10k-images-idx3-ubyte.gz"
refused "expected a checkpoint of samples of 8x9x1" mixed --data "$place/other" --resume "$model"
program=$programs/lenet5
trains --data random --limit 64 --epochs 1 --save "$place/lenet" --quiet
program=$programs/float32_master_weights
{ idx 8 96 32 32; noise $((96 * 1024)); } >"$place/other/train-images-idx3-ubyte"
{ idx 8 40 32 32; noise $((40 * 1024)); } | gzip >"$place/other/t10k-images-idx3-ubyte.gz"
refused "expected a checkpoint of model fashion_conv, got one of lenet5" mixed --data "$place/other" --resume "$place/lenet"

# Files that must not be overwritten, and files that are refused before any training.
refused "--json" "${small[@]}" --save "$place/x" --json "$place/saved/../x"
ln -s "$place/saved" "$place/link"
refused "--json" "${small[@]}" --save "$place/saved/x" --json "$place/link/x"
refused "--json" "${small[@]}" --resume "$model" --json "$place/link/model"
for flag in --save --resume --json --device --seed; do refused "$flag" "${small[@]}" "$flag" ""; done
for flag in --save --json; do
  refused "expected a file that is none of the data set" "${small[@]}" "$flag" "$data/train-images-idx3-ubyte"
  refused "$flag" "${small[@]}" "$flag" "$place/data/../data/t10k-labels-idx1-ubyte.gz"
done
trains "${small[@]}" --save "$data/model" --quiet
trains "${small[@]}" --save "$data/model" --quiet
ln -s "$place/saved/through" "$place/dangling"
trains "${small[@]}" --save "$place/dangling" --quiet
check "a link stays one" test -L "$place/dangling"
check "its target is written" test -f "$place/saved/through"
ln -s loop "$place/loop"
refused "$place/loop" "${small[@]}" --save "$place/loop"
cp "$model" "$place/protected"
chmod 444 "$place/protected"
refused "read-only" "${small[@]}" --save "$place/protected"
refused "--save-every requires --save" "${small[@]}" --save-every 5
for value in 0 -1 1.5 5x 0s nans s ""; do refused "--save-every" "${small[@]}" --save "$place/x" --save-every "$value"; done
program=$programs/train_cifar10
refused "--best" --save "$place/x" --best "$place/x"
program=$programs/finetune_resnet18
refused "--save" --weights "$model" --save "$model" --data "$data"
refused "got two of them" --weights "$model" --resume "$model" --data "$data"
program=$programs/lenet5
refused "--explain excludes --save" --explain --save "$place/x"
refused "--explain excludes --graph" --explain --graph "$place/x.svg"
refused "--momentum" --momentum ""
program=$programs/classify
refused "expected another file than that of model" "$model" "$model" --sheet "$model"
edited 'halfstep 1' 'halfstep 2'
refused "format" "$place/edited" "$data/train-images-idx3-ubyte"
edited '"mean":"0","' '"mean":"","z'
refused "metadata" "$place/edited" "$data/train-images-idx3-ubyte"
program=$programs/float32_master_weights

# Saving while training goes on: what was saved within an epoch resumes to the same bits.
within_epoch() { "$programs/inspect" "$place/copy" | grep -q "epoch_step = [1-9]"; }
copied_within_epoch() { test -f "$model" && cp "$model" "$place/copy" && within_epoch; }
for interval in 7 0.1s; do
  rm -f "$model"
  started mixed --data "$data" --batch-size 1 --epochs 100000 --save "$model" --save-every "$interval"
  until_true copied_within_epoch
  kill -KILL $pid
  wait $pid 2>"$place/until"
  check "--save-every $interval saves within an epoch" within_epoch
done
epoch=$("$programs/inspect" "$place/copy" | sed -n 's/^ *epoch = //p')
trains mixed --data "$data" --batch-size 1 --epochs "$((epoch + 1))" --resume "$place/copy" --save "$place/continued" --quiet
trains mixed --data "$data" --batch-size 1 --epochs "$((epoch + 1))" --save "$place/straight" --quiet
check "a run goes on from the middle of an epoch as if it had not been killed" cmp "$place/continued" "$place/straight"
trains mixed --data "$data" --batch-size 1 --epochs "$((epoch + 1))" --resume "$place/copy"
check "the steps of a part of an epoch are said" grep -qE ': loss [0-9.]+ of the last [0-9]+ steps, ' "$place/output"

# What a killed process left behind goes with the next save; what a living one writes stays.
dead=$(bash -c 'echo $$')
touch "$place/saved/.halfstep-$dead-0.tmp" "$place/saved/.halfstep-$$-0.tmp" "$place/saved/.halfstep-x-0.tmp"
trains "${small[@]}" --save "$model" --quiet
check "a dead process's temporary is gone" test ! -e "$place/saved/.halfstep-$dead-0.tmp"
check "a living process's is not" test -e "$place/saved/.halfstep-$$-0.tmp"
check "nor is what no process wrote" test -e "$place/saved/.halfstep-x-0.tmp"
rm "$place"/saved/.halfstep-*

# Signals while it trains: the step is finished and the checkpoint written. What nohup has started ignores SIGHUP, and so
# do the programs then.
program="env"
for signal in TERM:143 HUP:129; do
  started --default-signal=HUP "$programs/float32_master_weights" mixed --data "$data" --epochs 100000 --save "$place/stopped"
  until_true grep -q "epoch 1/" "$place/output"
  stops ${signal/:*/} ${signal/*:/} 60
  check "SIG${signal/:*/}: it says where it stopped" grep -q "^stopped after [0-9]* steps, saved in" "$place/output"
  check "SIG${signal/:*/}: nothing on standard error" test ! -s "$place/error"
done
program=$programs/float32_master_weights

# While it tests, which takes minutes here: within a batch.
cp -r "$data" "$place/much"
{ idx 8 400000 8 8; noise $((400000 * 64)); } | gzip -1 >"$place/much/t10k-images-idx3-ubyte.gz"
{ idx 8 400000; head -c 400000 /dev/zero; } | gzip >"$place/much/t10k-labels-idx1-ubyte.gz"
started mixed --data "$place/much" --batch-size 1 --epochs 5 --save "$place/tested" --save-every 95
until_true test -f "$place/tested"
sleep 2
stops INT 130 60
says "stopped after 96 steps, saved in $place/tested"
check "an epoch that was not tested has no result" test "$(grep -c "test accuracy" "$place/output")" = 0
tested=(mixed --data "$data" --batch-size 1)
trains "${tested[@]}" --epochs 1 --resume "$place/tested" --save "$place/ended"
says "epoch 2 done; the test that is due then comes first"
check "the test is made" grep -qE '^epoch 1/1: loss [0-9.]+, [0-9.]+ s, [0-9]+ images/s, test accuracy ' "$place/output"
trains "${tested[@]}" --epochs 1 --resume "$place/ended"
says "nothing left to train"
check "a test that was made is not due" test "$(grep -c 'due\|^epoch' "$place/output")" = 0
trains "${tested[@]}" --epochs 2 --resume "$place/tested" --trace "$place/trace"
check "both tests are made" test "$(grep -c '^epoch [12]/2: loss [0-9.]*, ' "$place/output")" = 2

# Ctrl-C ends a pipeline's other programs as well, and what is printed to them is lost; the checkpoint is not.
"$program" mixed --data "$data" --epochs 100000 --save "$place/piped" > >(head -n 1 >"$place/output") 2>"$place/error" &
pid=$!
until_true test -f "$place/piped"
sleep 0.2
stops INT 130 60
trains mixed --data "$data" --epochs 1 --resume "$place/piped"

# Before there is anything to save, and in programs that save nothing, a signal ends the program at once. A shell starts
# jobs with SIGINT ignored, which would lose one that comes before the program has a handler.
export HALFSTEP_CACHE=off
ends_at_once() { # ends_at_once PROGRAM ARGUMENTS...
  program="env"
  started --default-signal=INT "$programs/$1" "${@:2}"
  sleep 0.3
  stops INT 130 10
}
ends_at_once float32_master_weights mixed --data "$data" --epochs 100000
ends_at_once numerics_tour
ends_at_once plot_numerics --data "$place/other" --out "$place/plot.svg" --steps 10000
program=$programs/plot_numerics
for flag in "--save $place/x" "--json $place/x" "--resume $model" --quiet; do refused "${flag/ *}" $flag; done
program=$programs/float32_master_weights
unset HALFSTEP_CACHE

# A disk that fills up. Training goes on, and the last save decides.
cp "$model" "$place/before"
if on_full_disk "$place/saved" "$program" mixed --data "$data" --epochs 3 --save "$model" --json "$place/report"; then
  check "no room: exit code 1, got $code" test "$code" = 1
  check "no room: two lines" test "$(wc -l <"$place/error")" = 2
  check "no room: a warning at first" grep -q "^warning: .*cannot write $model.*training goes on" "$place/error"
  check "no room: an error at last" grep -q "^error: .*cannot write $model" "$place/error"
  check "no room: all epochs were trained" grep -q '"steps": 9,' "$place/report"
  check "no room: the old checkpoint is as it was" cmp "$model" "$place/before"
  check "no room: nothing else is left" test "$(entries "$place/saved")" = 2
fi
"$program" mixed --data "$data" --epochs 1 --save "$place/full" >/dev/full 2>"$place/error"
code=$?
check "full output: exit code 1, got $code" test "$code" = 1
check "full output: one line" test "$(grep -c "cannot write standard output" "$place/error")" = 1
check "full output: it was saved all the same" test -f "$place/full"
for arguments in "inspect $model" "inspect --help" devices; do
  "$programs/"$arguments >/dev/full 2>"$place/error"
  code=$?
  check "$arguments, full output: exit code 1, got $code" test "$code" = 1
done

# Drivers and caches. Of the loader's two names for its list, which ctest both sets, the newer one wins.
unset VK_DRIVER_FILES
echo '{ broken' >"$place/manifest.json"
echo '{}' >"$place/empty.json"
for manifest in manifest empty nowhere; do
  VK_ICD_FILENAMES=$place/$manifest.json fails 1 "expected a driver's manifest in JSON" "${small[@]}"
done
program=$programs/devices
VK_ICD_FILENAMES=$place/manifest.json fails 1 "in $place/manifest.json, named by VK_ICD_FILENAMES"
program=$programs/bench
VK_ICD_FILENAMES=$place/manifest.json fails 1 "in $place/manifest.json, named by VK_ICD_FILENAMES" peaks
for value in 0x10 010x 0 1.5; do refused "expected a whole number from 1 to" gemm --m "$value"; done
refused "cannot write $place/nowhere/j" peaks --json "$place/nowhere/j"
refused "expected no file with --predict" exchange --predict --json "$place/j"
refused "--stop excludes --trace" step --stop --trace "$place/trace"
refused "expected a whole number from 2 to" reproducible --steps 1
trains --repeats 1 step --stop --steps 1 --batch 1 --json "$place/j"
check "a step that stops at infinities is timed" test -s "$place/j"
program=$programs/float32_master_weights
HALFSTEP_CACHE=$place/cache trains "${small[@]}" --quiet
for file in "$place"/cache/*; do rm "$file" && mkdir "$file"; done
HALFSTEP_CACHE=$place/cache trains "${small[@]}" --quiet

finish

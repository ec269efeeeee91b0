#!/bin/bash
# The samples as their users meet them: bad input gets one clear line and exit code 2, nothing is left half-written, and
# a run that was stopped goes on as if it had not been. saving.sh has more on checkpoints. Usage: command_line.sh
# FOLDER_OF_PROGRAMS
set -u
programs=$1
program=$programs/float32_master_weights
. "$(dirname "$0")/../harness/checks.sh"
. "$(dirname "$0")/../harness/samples.sh"

data=$place/data
write_data
small=(mixed --data "$data" --epochs 1)

# Flags.
refused "precision is required" --epochs 1
refused "half" half
refused "--nonsense" mixed --nonsense
for value in 0 -1 99999999999999999999 1.5 many ""; do
  for flag in --batch-size --epochs --limit; do
    refused "$flag" mixed --data "$data" "$flag" "$value"
  done
done
for value in 0 -0.1 nan inf 1e30 fast; do
  refused "--learning-rate" mixed --data "$data" --learning-rate "$value"
  refused "--loss-scaling-factor" mixed --data "$data" --loss-scaling-factor "$value"
done
refused "--seed" "${small[@]}" --seed -1
refused "--seed" "${small[@]}" --seed 99999999999999999999999
refused "got 10 samples" "${small[@]}" --limit 010
refused "--limit" "${small[@]}" --limit 0x40
refused "--weights" "${small[@]}" --weights heavy
refused "expected mixed or bfloat16 with --weights stochastic" float32 --data "$data" --weights stochastic
refused "expected mixed with --use-float16-partials" float32 --data "$data" --use-float16-partials
refused "batch" "${small[@]}" --batch-size 97
refused "batch" "${small[@]}" --limit 20
run --help
check "--help is no error" test "$code" = 0
check "--help lists the flags" grep -q -- --loss-scaling-factor "$place/output"

# An application in C.
embedded() {
  "$programs/embed_in_c" "$@" >"$place/output" 2>"$place/error"
  code=$?
}
embedded --frames 50 --budget 5
check "embed_in_c draws and trains" test "$code" = 0
check "embed_in_c says how long frames take" grep -q '^with training  *median .* ms' "$place/output"
check "embed_in_c draws with no message" test ! -s "$place/error"
for flags in "--frames 0" "--budget x" "--budget nan" "--other" extra; do
  # shellcheck disable=SC2086 # a list of words
  embedded $flags
  check "embed_in_c $flags exits with 2" test "$code" = 2
done

# One in C++, whose buffers the network reads and writes.
applied() {
  "$programs/embed_in_app" --frames 30 --budget 1000 --width 64 --batch-size 128 --out "$place/app.png" "$@" \
    >"$place/output" 2>"$place/error"
  code=$?
}
applied --json "$place/app.json"
check "embed_in_app renders and trains, got $code" test "$code" = 0
check "embed_in_app renders with no message" test ! -s "$place/error"
check "embed_in_app says how long frames take" grep -q '"p99_ms"' "$place/app.json"
"$programs/embed_in_app" --frames 1 --budget 0.001 --width 16 --batch-size 16 --out "$place/app.png" \
  --json "$place/frame.json" >"$place/output" 2>"$place/error"
check "embed_in_app counts the steps of its frames" grep -qE '"steps": [01],' "$place/frame.json"
check "embed_in_app shows the network learning" \
  awk '/"psnr"/ { good = $2 + 0 > 10 } END { exit !good }' "$place/app.json"
for flags in "--frames 0" "--budget nan" "--device none" "--out $place/nowhere/app.png"; do
  # shellcheck disable=SC2086 # a list of words
  applied $flags
  check "embed_in_app $flags exits with 2" test "$code" = 2
done

# Devices.
refused "no such device" "${small[@]}" --device "no such device"
refused "1000" "${small[@]}" --device 1000

# Data.
refused "expected a folder" mixed --data "$place/nowhere"
mkdir "$place/empty"
refused "expected train-images-idx3-ubyte" mixed --data "$place/empty"
broken() { # broken TEXT: what was done to the data set is found; then it is whole again
  refused "$1" "${small[@]}"
  write_data
}
rm "$data"/t10k-labels*
broken "expected t10k-labels-idx1-ubyte"
truncate -s 6000 "$data/train-images-idx3-ubyte"
broken "train-images-idx3-ubyte: expected 6144 elements"
echo >>"$data/train-images-idx3-ubyte"
broken "got more"
{ idx 9 96 8 8; noise $((96 * 64)); } >"$data/train-images-idx3-ubyte"
broken "type 08"
noise 64 | tr '\0' x >"$data/train-images-idx3-ubyte"
broken "expected an IDX file"
{ idx 8 0 8 8; } >"$data/train-images-idx3-ubyte"
broken "got 0 on axis 0"
{ idx 8 4294967295 4294967295 4294967295; } >"$data/train-images-idx3-ubyte"
broken "expected at most"
{ idx 8 96; for i in $(seq 96); do bytes 10; done; } >"$data/train-labels-idx1-ubyte"
broken "labels below 10, got 10 for sample 0"
{ idx 8 95; noise 95; } >"$data/train-labels-idx1-ubyte"
broken "expected as many labels as images, got 95"
{ idx 8 40 8 9; noise $((40 * 72)); } | gzip >"$data/t10k-images-idx3-ubyte.gz"
broken "both halves"
head -c 500 "$data/t10k-images-idx3-ubyte.gz" >"$data/cut"
mv "$data/cut" "$data/t10k-images-idx3-ubyte.gz"
broken "truncated"

# Files to write, known to be impossible before any training.
refused "$place/nowhere/w" "${small[@]}" --save "$place/nowhere/w"
refused "$place/nowhere/j" "${small[@]}" --json "$place/nowhere/j"
refused "got the folder" "${small[@]}" --save "$place"
refused "/dev/full" "${small[@]}" --save /dev/full
check "nothing was trained" test ! -s "$place/output"

# Checkpoints.
saved=$place/saved
mkdir "$saved"
model=$saved/model.safetensors
trains "${small[@]}" --save "$model" --json "$place/report" --quiet
check "the checkpoint is all there is" test "$(entries "$saved")" = 1
for key in device precision parameters epochs loss seconds samples_per_second test_accuracy steps skipped_steps \
  tensor_updates_skipped loss_scale dispatches_per_step barriers_per_step peak_arena_bytes host_us_per_step; do
  check "the report has $key" grep -q "\"$key\":" "$place/report"
done
check "3 steps were made" grep -q '"steps": 3,' "$place/report"
refused "there is no such file" "${small[@]}" --resume "$place/nowhere"
noise 100 >"$place/noise"
refused "$place/noise" "${small[@]}" --resume "$place/noise"
head -c 3000 "$model" >"$place/cut"
refused "$place/cut" "${small[@]}" --resume "$place/cut"
refused "expected a checkpoint of 12 classes, got one of 10" mixed --data "$data" --classes 12 --resume "$model"

# The list of a checkpoint's tensors.
"$1/inspect" "$model" >"$place/output" 2>"$place/error"
check "inspect: exit code 0, got $?" test $? = 0
check "inspect lists the weights" grep -qE '^conv1\.weight +F32 +\{32, 1, 3, 3\} +-[0-9]' "$place/output"
check "inspect warns of nothing" test ! -s "$place/error"
"$1/inspect" "$place/noise" >"$place/output" 2>"$place/error"
check "inspect, no checkpoint: exit code 2, got $?" test $? = 2
check "inspect, no checkpoint: one line" test "$(wc -l <"$place/error")" = 1
nan='{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
{ bytes ${#nan} 0 0 0 0 0 0 0; printf %s "$nan"; bytes 0 0 192 127 0 0 128 63; } >"$place/nan"
"$1/inspect" "$place/nan" >"$place/output" 2>"$place/error"
check "inspect, NaN: a warning" grep -qF "warning: $place/nan: 'w' has values that are not finite: 1" "$place/error"

# Two epochs at once and with a stop between them end in the same bits.
trains mixed --data "$data" --epochs 2 --save "$place/whole"
trains mixed --data "$data" --epochs 2 --resume "$model" --save "$place/resumed"
check "a resumed run ends as an uninterrupted one" cmp "$place/whole" "$place/resumed"
trains mixed --data "$data" --epochs 2 --resume "$place/whole"
check "a finished run has nothing left to do" grep -q "nothing left to train" "$place/output"

# A disk that fills up while saving.
cp "$model" "$place/before"
if on_full_disk "$saved" "$program" mixed --data "$data" --epochs 2 --resume "$model" --save "$model"; then
  check "no room to save: exit code 1, got $code" test "$code" = 1
  check "no room to save: one line" test "$(wc -l <"$place/error")" = 1
  check "no room to save: the line names the file" grep -q "cannot write $model" "$place/error"
  check "no room to save: the old checkpoint is as it was" cmp "$model" "$place/before"
  check "no room to save: nothing else is left" test "$(entries "$saved")" = 1
fi

# Ctrl-C: the step is finished, the checkpoint written, the exit code 130; then the run goes on from there.
started mixed --data "$data" --epochs 100000 --save "$place/stopped"
until_true grep -q "epoch 1/" "$place/output"
stops INT 130 60
check "Ctrl-C: nothing on standard error" test ! -s "$place/error"
steps=$(sed -n 's/^stopped after \([0-9]*\) steps, saved in .*/\1/p' "$place/output")
check "Ctrl-C: it says where it stopped" test -n "$steps"
epochs=$((steps / 3 + 1))
trains mixed --data "$data" --epochs "$epochs" --resume "$place/stopped" --save "$place/continued" --quiet
trains mixed --data "$data" --epochs "$epochs" --save "$place/straight" --quiet
check "Ctrl-C: the run goes on as if it had not been stopped" cmp "$place/continued" "$place/straight"

# The residual network with stochastic rounding, on images of a CIFAR-10 of our own.
program=$1/stochastic_rounding
mkdir "$place/cifar"
for file in data_batch_1 test_batch; do
  for i in $(seq 16); do
    bytes $((i % 10))
    noise 3072
  done >"$place/cifar/$file.bin"
done
for depth in 9 7 2 0 -8 many "" 1208 9999998; do refused "depth" float16 "$depth" --data "$place/cifar"; done
refused "depth is required" float16
refused "half" half 8
refused "expected float16 with --use-float16-partials" float32 8 --data "$place/cifar" --use-float16-partials
refused "bin" float16 8 --data "$place"
refused "expected float16 or bfloat16 with --rounding" float32 8 --data "$place/cifar" --rounding nearest
refused "--rounding" float16 8 --data "$place/cifar" --rounding up
trains float16 8 --data "$place/cifar" --batch-size 8 --epochs 1 --rounding nearest
trains float16 8 --data "$place/cifar" --batch-size 8 --epochs 1
check "it says what the epoch came to" grep -qE "^epoch 1/1: loss .* images/s, test accuracy" "$place/output"

# Training with augmentation, the best weights kept; and fitting the last layer of a larger network.
program=$1/train_cifar10
refused "resnet8, resnet14" --model vgg --data "$place/cifar"
refused "resnet8, resnet14" --model resnet9 --data "$place/cifar"
refused "expected --fp16 with --loss_scaling" --loss_scaling --data "$place/cifar"
for flag in --lr --steps --batch-size; do refused "$flag" "$flag" 0 --data "$place/cifar"; done
trains --fp16 -s -m resnet8 -n 2 --batch-size 8 --data "$place/cifar" --best "$place/best"
refused "expected a multiple of 3" --batch-size 8 --accumulate 3 --data "$place/cifar"
refused "a scope that matches" --recompute "block*" --data "$place/cifar"
refused "average" --average 1 --data "$place/cifar"
trains -m resnet8 -n 1 --batch-size 8 --accumulate 2 --average 0.9 --recompute "layer?/?" --data "$place/cifar"
check "the best weights are kept under PyTorch's names" grep -q '"layer3.0.bn2.running_var"' "$place/best"
resnet8=(-m resnet8 --batch-size 8 --data "$place/cifar")
trains "${resnet8[@]}" -n 1 --save "$place/first" --best "$place/kept"
cp "$place/kept" "$place/before"
LC_ALL=C sed 's/"best_accuracy":"[01]/"best_accuracy":"9/' "$place/first" >"$place/unbeaten"
check "a checkpoint notes the best accuracy" test "$(cmp -l "$place/first" "$place/unbeaten" | wc -l)" = 1
trains "${resnet8[@]}" -n 2 --resume "$place/unbeaten" --best "$place/kept"
check "a resumed run keeps better weights of the run before" cmp "$place/kept" "$place/before"
trains "${resnet8[@]}" -n 2 --resume "$place/unbeaten" --save "$place/between"
trains "${resnet8[@]}" -n 3 --resume "$place/between" --best "$place/kept"
check "also where a run between them had no --best" cmp "$place/kept" "$place/before"
trains "${resnet8[@]}" -n 2 --resume "$place/unbeaten" --best "$place/kept" --limit 8
check "other test images begin anew" grep -q "tested on another set: $place/kept begins anew" "$place/output"
check "and replace the weights" test "$(cmp -l "$place/kept" "$place/before" 2>&1 | wc -l)" -gt 0
trains "${resnet8[@]}" -n 2 --resume "$place/unbeaten" --best "$place/anew"
check "a resumed run keeps its own best weights where there are none" test -s "$place/anew"

# Saying what images show, by the best weights.
program=$1/classify
image=$(dirname "$0")/../fuzz/seeds/colours.png
trains "$place/best" "$image" "$image" --sheet "$place/sheet.png"
check "five classes an image, by their names" test "$(grep -cE '^ +[0-9.]+%  (airplane|automobile|bird|cat|deer|dog|frog|horse|ship|truck)$' "$place/output")" = 10
trains "$place/best" "$place/sheet.png"
refused "$place/noise" "$place/best" "$image" "$place/noise"
check "the other image is classified all the same" test "$(grep -c % "$place/output")" = 5
refused "no.png" "$place/best" no.png
refused "images is required" "$place/best"
LC_ALL=C sed 's/"model":"resnet8","optimizer"/"model":"resnet9999998","opt"/' "$place/best" >"$place/deep"
refused "up to 1202, got 9999998" "$place/deep" "$image"
refused "nowhere" "$place/best" "$image" --sheet "$place/nowhere/sheet.png"
refused "expected a checkpoint whose metadata says the model" "$place/nan" "$image"
refused "$place/noise" "$place/noise" "$image"

# Folders of images by class: with a part to test on, and without one.
program=$1/train_images
photos=$place/photos
for class in cat dog; do
  mkdir -p "$photos/$class"
  for file in colours.png colours.jpeg grey.jpeg progressive.jpeg transparent.png; do
    cp "$(dirname "$0")/../fuzz/seeds/$file" "$photos/$class"
  done
done
mkdir -p "$place/parts/val"
cp -r "$photos" "$place/parts/train"
cp -r "$photos/dog" "$place/parts/val"
tiny=(-m resnet8 --size 8 --epochs 1 --batch-size 4)
trains "$photos" "${tiny[@]}" --save "$place/photos.safetensors"
check "a share of each class is tested on" grep -qF "2 classes, 8 images to train on, 2 to test on" "$place/output"
refused "none of the data set" "$photos" "${tiny[@]}" --best "$photos/cat/colours.png"
refused "--pictures] expected a folder that is no class" "$photos" "${tiny[@]}" --pictures "$photos/pictures"
refused "--tensorboard] expected a folder that is no class" "$photos" "${tiny[@]}" --tensorboard "$photos/events"
refused "--plot] expected a folder that is no class" "$photos" "${tiny[@]}" --plot "$photos/cat/plot.png"
refused "--pictures] expected a folder that is no class" "$place/parts" "${tiny[@]}" --pictures "$place/parts/val/dog/more"
check "no folder was made" test "$(ls "$photos")" = $'cat\ndog'
cp "$place/noise" "$photos/cat/noise.png"
refused "CorruptFiles::skip" "$photos" "${tiny[@]}"
rm "$photos/cat/noise.png"
mkdir -p "$place/broken/cat" "$place/broken/dog"
for i in 1 2 3 4 5; do cp "$place/noise" "$place/broken/cat/$i.png" && cp "$place/noise" "$place/broken/dog/$i.png"; done
refused "there must be one at least" "$place/broken" "${tiny[@]}" --skip-corrupt
trains "$place/parts" "${tiny[@]}" --grey --pictures "$place/parts/pictures" --log "$place/parts/log.jsonl"
check "what is in val is tested on" grep -qF "2 classes, 10 images to train on, 5 to test on" "$place/output"
trains "$place/parts" "${tiny[@]}" --limit 4
check "--limit is for both parts" grep -qF "2 classes, 4 images to train on, 4 to test on" "$place/output"
refused "cannot read the folder" "$place/nowhere"
refused "for each class in $photos/cat" "$photos/cat"
refused "two or more classes" "$place/parts/val"
refused "expected images to test on, got none of 10" "$photos" --test-share 0.01
mkdir "$place/parts/val/fish"
refused "known classes in $place/parts/val, got 'fish'" "$place/parts"
mv "$place/parts/val/fish" "$place/parts/train"
refused "for the class fish, got none in" "$place/parts"
noise 100 >"$place/parts/train/cat/noise.jpg"
run "$place/parts" "${tiny[@]}" --skip-corrupt
check "--skip-corrupt: exit code 0, got $code" test "$code" = 0
check "--skip-corrupt: a warning for the file" grep -qF "warning: left out $place/parts/train/cat/noise.jpg" "$place/error"
check "--skip-corrupt: a warning for the class" grep -qF "warning: no image to train on of the class fish" "$place/error"
check "--skip-corrupt: the class counts" grep -qF "3 classes, 10 images" "$place/output"
mkdir "$photos/fish"
cp "$photos"/dog/* "$photos/fish"
refused 'was trained on, ["cat","dog"], got ["cat","dog","fish"]' "$photos" "${tiny[@]}" --resume "$place/photos.safetensors"
program=$1/classify
trains "$place/photos.safetensors" "$photos/dog/grey.jpeg"
check "the folder's classes are what images show" test "$(grep -cE '^ +[0-9.]+%  (cat|dog)$' "$place/output")" = 2

# A file more leaves the draw of the others as it was. What cannot be decoded is named, what is trained on first.
program=$1/train_images
mkdir -p "$place/grown/cat"
cp -r "$photos/dog" "$place/grown"
for i in $(seq 101 200); do cp "$place/noise" "$place/grown/cat/$i.png"; done
draws() { # draws FILE ARGUMENTS...: the 20 cats that are tested on
  run "$place/grown" "${tiny[@]}" --skip-corrupt "${@:2}"
  check "all cats are named" test "$(grep -c 'warning: left out .*/cat/' "$place/error")" -ge 100
  grep -o 'cat/[0-9]*' "$place/error" | tail -n 20 | sort >"$1"
}
same() { comm -12 "$place/first_draw" "$1" | wc -l; }
draws "$place/first_draw"
draws "$place/other_seed" --seed 7
check "another seed draws others" test "$(same "$place/other_seed")" -le 12
cp "$place/noise" "$place/grown/cat/100.png"
draws "$place/one_more"
check "a file more takes the place of one at the most" test "$(same "$place/one_more")" -ge 19

mkdir "$place/named"
cp -r "$photos/cat" "$place/named/grün 猫"
cp -r "$photos/dog" "$place/named/"$'a\e[1mb\xff\xc2\x9b'
trains "$place/named" "${tiny[@]}" --save "$place/named.safetensors"
trains "$place/named" -m resnet8 --size 8 --epochs 2 --batch-size 4 --resume "$place/named.safetensors"
program=$1/classify
cp "$photos/dog/grey.jpeg" "$place/"$'two\nlines.jpg'
trains "$place/named.safetensors" "$place/"$'two\nlines.jpg'
check "names in UTF-8 are printed as they are" grep -qE '^ +[0-9.]+%  grün 猫$' "$place/output"
check "what is no text is not" grep -qF '%  a\x1b[1mb' "$place/output"
check "a file's name is one line" grep -qxF "$place/"'two\x0alines.jpg' "$place/output"

# Programs for other sets take such a folder too. What a seed drew to test on is not trained on after a resume.
program=$1/lenet5
trains --data "$photos" --batch-size 4 --epochs 1 --save "$place/half"
trains --data "$photos" --batch-size 4 --epochs 2 --resume "$place/half" --seed 7 --save "$place/resumed"
trains --data "$photos" --batch-size 4 --epochs 2 --save "$place/whole_lenet"
check "a resumed run draws the same images to test on" cmp "$place/resumed" "$place/whole_lenet"
programs=$1
program=$programs/float32_master_weights
trains mixed --data "$photos" --batch-size 4 --epochs 1
mkdir "$data/plots"
cp "$photos/dog/grey.jpeg" "$data/plots"
trains "${small[@]}" --json "$place/report"
check "pictures beside a set of files are left alone" grep -q '"steps": 3,' "$place/report"
refused "expected a set of 10 classes, got 3" mixed --data "$photos" --classes 10
program=$1/train_cifar10
trains -m resnet8 -n 1 --batch-size 4 --data "$photos"
program=$1/stochastic_rounding
trains float16 8 --batch-size 4 --epochs 1 --data "$photos"

program=$1/finetune_resnet18
run --random-weights --data "$photos" --limit 2 --batch-size 2 --epochs 1
check "a folder of images at 224x224: exit code 0, got $code" test "$code" = 0
refused "save_file(resnet18" --data "$data"
refused "excludes" --weights a --random-weights
refused "whose images have the model's shape, {224, 224, 3}, got {8, 8, 1}" --random-weights --data "$data" \
  --pictures "$place/resized"
refused "mismatched (conv1.weight" --weights "$place/whole" --data "$data" --limit 4 --batch-size 2

finish

#!/bin/bash
# Learning a picture, as users meet it: what cannot be used is named, the sheet and the animation are whole PNG files, and
# a run that was stopped leaves them too. Usage: image_fit.sh FOLDER_OF_PROGRAMS
set -u
program=$1/image_fit
. "$(dirname "$0")/../harness/checks.sh"
. "$(dirname "$0")/../harness/samples.sh"

small=(--size 64 --batch-size 1024 --table 10 --width 16)

# A PNG file's header: the signature, and its height and width, each as 8 hexadecimal digits.
size_of() { head -c 24 "$1" | tail -c 8 | od -An -tx1 | tr -d ' \n'; }
psnr_of() { sed -n 's/^ *"psnr": \([0-9]*\).*/\1/p' "$1"; }

# Flags and files.
refused "--size" --size 8
refused "--encoding" --encoding sphere
refused "--table" --table 30
refused "not expected: $place/two" --image "$place/one" "$place/two"
refused "$place/nowhere.png" --image "$place/nowhere.png"
noise 1000 >"$place/noise.png"
refused "$place/noise.png" --image "$place/noise.png"
refused "$place/nowhere/fit.png" "${small[@]}" --out "$place/nowhere/fit.png"
refused "--json" "${small[@]}" --out "$place/same" --json "$place/same"
cp "$(dirname "$0")/../fuzz/seeds/colours.png" "$place/picture.png"
refused "--out" --image "$place/picture.png" --out "$place/picture.png"

# Learning.
trains "${small[@]}" --steps 100 --out "$place/fit.png" --animation "$place/fit.apng" --json "$place/fit.json"
check "the steps are printed" grep -qE '^ +100 +[0-9.]+ +[0-9.]+ +[0-9.]+$' "$place/output"
check "the picture is learned to 20 dB, got $(psnr_of "$place/fit.json")" test "$(psnr_of "$place/fit.json")" -ge 20
check "the sheet is whole" ends_whole "$place/fit.png"
check "the animation is whole" ends_whole "$place/fit.apng"
check "the animation's frames are of the picture's size" test "$(size_of "$place/fit.apng")" = 0000004000000040
check "7 frames of animation" test "$(grep -ac fcTL <(sed 's/fcTL/\n&/g' "$place/fit.apng"))" = 7
trains "${small[@]}" --steps 100 --out "$place/again.png"
check "the same seed gives the same picture" cmp "$place/fit.png" "$place/again.png"
trains "${small[@]}" --steps 20 --encoding frequency --precision float32 --out "$place/frequency.png"
trains --image "$place/picture.png" --steps 20 --table 10 --width 16 --out "$place/small.png"
check "a small picture is learned" ends_whole "$place/small.png"

# Ctrl-C.
started "${small[@]}" --steps 1000000 --out "$place/stopped.png" --animation "$place/stopped.apng"
until_true grep -qE '^ +20 ' "$place/output"
stops INT 130 60
check "the stopped sheet is whole" ends_whole "$place/stopped.png"
check "the stopped animation is whole" ends_whole "$place/stopped.apng"

finish

#!/bin/bash
# The samples for graphics, and those with an operator and an optimizer of their own, as users meet them: what cannot be
# used is named, what they learn is as close as it should be, and a run that was stopped leaves its picture.
# Usage: graphics.sh FOLDER_OF_PROGRAMS
set -u
programs=$1
. "$(dirname "$0")/../harness/checks.sh"
. "$(dirname "$0")/../harness/samples.sh"

below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && a < b) }'; }
number() { sed -n "s/^ *\"$1\": \([-+.e0-9]*\).*/\1/p" "$2" | head -1; }

program=$programs/sdf_fit
small=(--size 24 --batch-size 2048 --points 8192 --table 11 --width 16)
refused "--size" --size 8
refused "$place/nowhere/sdf.png" "${small[@]}" --out "$place/nowhere/sdf.png"
refused "--json" --out "$place/same" --json "$place/same"
trains "${small[@]}" --steps 60 --out "$place/sdf.png" --json "$place/sdf.json"
check "the pictures are whole" ends_whole "$place/sdf.png"
check "the shape is learned, to $(number distance_error "$place/sdf.json")" \
  below "$(number distance_error "$place/sdf.json")" 0.015
check "its outline too, to $(number outline "$place/sdf.json")" below "$(number outline "$place/sdf.json")" 0.2
started "${small[@]}" --steps 4000 --out "$place/stopped.png"
until_true grep -qE '^ +200 ' "$place/output"
stops INT 130 60
check "the stopped picture is whole" ends_whole "$place/stopped.png"

# What was stopped before its first step, while it compiles what shows the result, tells of none.
stops_early() { # stops_early ARGUMENTS...
  echo before >"$place/early.json"
  HALFSTEP_CACHE=off started "$@" --steps 1000000 --out "$place/early.png" --json "$place/early.json"
  until_true grep -q parameters "$place/output"
  stops INT 130 60
  check "$program tells nothing of no steps" test "$(grep -c '"steps": 0' "$place/early.json")" = 0
}
stops_early "${small[@]}"
program=$programs/image_fit
stops_early --size 64 --batch-size 1024 --table 10 --width 16

program=$programs/radiance_cache
small=(--size 32 --batches 8)
refused "--samples" --samples 0
refused "$place/nowhere/box.png" "${small[@]}" --out "$place/nowhere/box.png"
trains "${small[@]}" --samples 8 --reference 128 --out "$place/box.png" --json "$place/box.json"
check "the pictures are whole" ends_whole "$place/box.png"
errors() { sed -n "/\"indirect_error\"/,/}/s/^ *\"$1\": \([-+.e0-9]*\).*/\1/p" "$place/box.json"; }
check "light by the cache is off by less, $(errors cache) to $(errors paths)" below "$(errors cache)" "$(errors paths)"
started "${small[@]}" --samples 1000000 --reference 2 --out "$place/stopped_box.png"
until_true grep -qE '^ +2 ' "$place/output"
stops INT 130 60
check "the stopped picture is whole" ends_whole "$place/stopped_box.png"

program=$programs/custom_op
refused "--steps" --steps 0
trains --steps 600
error_of() { awk -v name="$1" '$1 == name { print $3 }' "$place/output"; }
check "the own operator goes on with the sine, $(error_of snake) to $(error_of relu)" \
  below "$(error_of snake)" "$(error_of relu)"

program=$programs/custom_optimizer
refused "--learning-rate" --learning-rate -1
trains --steps 100 --precision float32
check "the kernel and the operators make the same of it" \
  test "$(awk '/by a kernel/ { print $5, $6 }' "$place/output")" = "$(awk '/in operators/ { print $4, $5 }' "$place/output")"

shown() { # the screen has more colours than a bare one
  xwd -silent -root >"$place/w.xwd" &&
    [ "$(tail -c +3000 "$place/w.xwd" | od -An -v -tu1 -w4 | sort -u | wc -l)" -gt 500 ]
}
if "$programs/image_fit" --help | grep -q -- --window && [ -n "$(type -p Xvfb)" ] && [ -n "$(type -p xwd)" ]; then
  program=$programs/image_fit
  Xvfb -displayfd 3 -screen 0 320x240x24 -nolisten tcp 3>"$place/display" 2>"$place/server" &
  server=$!
  until [ -s "$place/display" ] || ! kill -0 $server 2>/dev/null; do sleep 0.02; done
  DISPLAY=:$(cat "$place/display")
  export DISPLAY
  started --window --size 128 --batch-size 1024 --table 10 --width 16 --steps 1000000 --out "$place/w.png"
  until_true shown
  check "the window shows the picture" shown
  stops INT 130 60
  kill $server
  check "its sheet is whole" ends_whole "$place/w.png"
else
  echo "skipped: a window, which takes a build with -DHALFSTEP_WINDOW=ON, and Xvfb and xwd"
fi

finish

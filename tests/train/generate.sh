#!/bin/bash
# Training a GPT on a text, and going on with texts, as users meet it: what cannot be used is named, a run that was
# stopped goes on as if it had not been, and what was saved can be loaded. Usage: generate.sh FOLDER_OF_PROGRAMS
set -u
program=$1/char_gpt
. "$(dirname "$0")/../harness/checks.sh"
. "$(dirname "$0")/../harness/samples.sh"

text=$place/text
for i in $(seq 60); do echo "The quick brown fox $i jumps över the lazy dog."; done >"$text"
resumed=(--data "$text" --layers 1 --heads 2 --width 16 --block 16 --batch-size 4 --precision float32 --learning-rate 1e-2)
small=("${resumed[@]}" --sample-every 0)

# Flags and data.
refused "data is required" --steps 10
refused "--steps" "${small[@]}" --steps 0
refused "multiple of the heads, got 16 and 3 heads" --data "$text" --layers 1 --heads 3 --width 16
refused "$place/nowhere: expected a text" --data "$place/nowhere"
: >"$place/empty"
refused "$place/empty: expected a text, got an empty file" --data "$place/empty"
printf '\xef\xbb\xbf' >"$place/marked" # a byte order mark is no part of a text
refused "$place/marked: expected a text, got an empty file" --data "$place/marked"
refused "/proc/self/mem: expected a text, got a file that cannot be read to its end" --data /proc/self/mem
refused "/dev/zero: expected a text in UTF-8, got other bytes" --data /dev/zero
noise 10000 >"$place/binary"
refused "$place/binary: expected a text in UTF-8" --data "$place/binary"
head -c 100 "$text" >"$place/short"
refused "expected more than 16 tokens, got 10" --data "$place/short" --block 16
refused "expected a tokenizer.json" "${small[@]}" --tokenizer "$text"
refused "cannot make the folder" "${small[@]}" --save "$text/model"

# Training, resuming, and the folder.
trains "${resumed[@]}" --steps 600 --eval-every 200 --sample-every 300 --sample-tokens 20 --save "$place/whole"
check "losses are printed" grep -qE '^step 600/600: loss [0-9.]+, validation loss [0-9.]+, [0-9.]+ steps/s$' "$place/output"
check "texts are printed" test "$(grep -c '^a text after step' "$place/output")" = 2
started "${small[@]}" --steps 600 --eval-every 200 --save "$place/half"
until_true grep -q '^step 200/600: ' "$place/output"
stops INT 130 60
check "Ctrl-C: it says so" grep -q '^stopped after ' "$place/output"
trains "${small[@]}" --steps 600 --eval-every 200 --resume "$place/half" --save "$place/resumed"
check "a resumed run ends like one that was not stopped" cmp "$place/resumed/model.safetensors" "$place/whole/model.safetensors"
for i in $(seq 50); do cat "$text"; done >"$place/part"
for i in $(seq 50); do cat "$place/part"; done >"$place/long" # its evaluation takes seconds on any machine
started "${small[@]:2}" --data "$place/long" --steps 9 --eval-every 9 --save-every 8 --save "$place/untested"
until_true test -f "$place/untested/model.safetensors" # which is written last, before step 9
sleep 1
stops INT 130 60
check "Ctrl-C while it evaluates" grep -q '^stopped after 9 steps' "$place/output"
trains "${small[@]}" --steps 9 --eval-every 9 --resume "$place/untested" --save "$place/untested"
check "the evaluation is made" grep -qE '^step 9/9: loss [0-9.]+, validation loss ' "$place/output"
trains "${small[@]}" --steps 9 --eval-every 9 --resume "$place/untested"
check "and once" grep -q '^nothing left to train' "$place/output"
for file in config.json model.safetensors tokenizer.json tokenizer_config.json checkpoint.safetensors; do
  check "the folder has $file" test -s "$place/whole/$file"
done
cp -r "$place/whole" "$place/kept"
echo "other text" >"$place/other"
for i in $(seq 60); do echo "0123456789"; done >>"$place/other"
refused "multiple of the heads" --data "$place/other" --layers 1 --heads 3 --width 16 --save "$place/kept"
refused "another file than that of --tokenizer" "${small[@]}" --tokenizer "$place/kept" --save "$place/kept"
refused "another file than that of --data" "${small[@]:2}" --data "$place/kept/config.json" --save "$place/kept"
refused "expected the tensors of this model" --data "$text" --resume "$place/kept" --save "$place/kept"
check "a run that is refused leaves the folder as it was" diff -r "$place/whole" "$place/kept"
started "${small[@]:2}" --data "$place/other" --steps 1000000 --eval-every 1000000 --save "$place/kept"
until_true grep -q 'dispatches a step' "$place/output"
sleep 0.3
kill -KILL $pid
wait $pid 2>"$place/until"
check "so does a run that is killed before its first save" diff -r "$place/whole" "$place/kept"
started "${small[@]:2}" --data "$place/other" --steps 1000000 --eval-every 1000000 --save-every 2 --save "$place/kept"
until_true differ "$place/whole/model.safetensors" "$place/kept/model.safetensors" # which is written last
kill -KILL $pid
wait $pid 2>"$place/until"
check "its first save replaces all: the tokenizer" differ "$place/whole/tokenizer.json" "$place/kept/tokenizer.json"
check "and the weights" differ "$place/whole/model.safetensors" "$place/kept/model.safetensors"
trains "${small[@]}" --steps 604 --resume "$place/whole"
check "nothing is said of the rate in epochs of the same size" bash -c "! grep -q 'learning rate' '$place/output'"
trains "${small[@]}" --steps 604 --resume "$place/whole" --limit 100
check "another place in the schedule is named" grep -q '^the learning rate goes on as after [0-9]* steps' "$place/output"
refused "excludes" "${small[@]}" --resume "$place/half" --tokenizer bytes
trains "${small[@]}" --steps 20 --optimizer muon --tokenizer bytes --save "$place/bytes" --json "$place/report"
check "the report has the validation loss" grep -q '"validation_loss"' "$place/report"
trains "${small[@]}" --steps 20 --optimizer muon --resume "$place/bytes"
check "the folder's tokenizer is no difference" bash -c "! grep -q 'counts for' '$place/output'"
mkdir "$place/full"
if on_full_disk "$place/full" "$program" --data "$text" --layers 1 --heads 2 --width 14 --block 16 --batch-size 4 \
  --precision float32 --sample-every 0 --steps 2 --save "$place/full"; then
  check "no room for the weights: the checkpoint is there" test -s "$place/full/checkpoint.safetensors"
  check "no room for the weights: exit code 1, got $code" test "$code" = 1
  check "no room for the weights: an error" grep -q "^error: .*cannot write $place/full/model.safetensors" "$place/error"
  check "no room for the weights: one line" test "$(wc -l <"$place/error")" = 1
fi

# Generating.
program=$1/generate
generate=("$place/whole" "The qu" --tokens 40)
trains "${generate[@]}"
mv "$place/output" "$place/first"
check "the prompt and the speed are printed" grep -qE '^40 tokens in 1 text, [0-9.]+ tokens/s$' "$place/first"
check "the text begins with the prompt" grep -q '^The qu' "$place/first"
trains "${generate[@]}" --quiet
check "the same seed gives the same text" cmp "$place/output" <(head -n -1 "$place/first")
trains "${generate[@]}" --quiet --seed 1
check "another seed gives another" differ "$place/output" <(head -n -1 "$place/first")
x=$(sed -n 's/.*"x": \([0-9]*\).*/\1/p' "$place/whole/tokenizer.json")
for end in "$x" "[$x]"; do # as transformers takes both
  cp -r "$place/whole" "$place/ending"
  sed -i "s/\(\"eos_token_id\"\): null/\1: $end/" "$place/ending/config.json"
  trains "$place/ending" "${generate[@]:1}" --quiet
  check "a text ends with token $end" cmp "$place/output" <(sed -n '1s/x.*/x/p' "$place/first")
  rm -r "$place/ending"
done
trains "$place/whole" "fox" "The lazy dog jumps över the" --number 2 --tokens 12 --temperature 0 --repetition-penalty 1.1
check "four texts" test "$(grep -c '^---$' "$place/output")" = 3
trains "$place/bytes" "ö" --tokens 60 --top-k 5 --top-p 0.9 --precision mixed
check "whole characters are printed" iconv -f UTF-8 -t UTF-16 "$place/output" -o /dev/null
# Without a decoder there is a space between tokens. The first text is printed as its tokens come, the second at once.
cp -r "$place/whole" "$place/spaced"
sed -i ':all; N; $!b all; s/"decoder": {[^}]*}/"decoder": null/' "$place/spaced/tokenizer.json"
trains "$place/spaced" "The" --number 2 --tokens 12 --temperature 0 --quiet
check "spaces are between tokens" grep -q '[a-z] [a-z] [a-z]' "$place/output"
check "texts are the same as they come" cmp <(sed '/^---$/,$d' "$place/output") <(sed '1,/^---$/d' "$place/output")
refused "prompt is required" "$place/whole"
refused "--top-p" "${generate[@]}" --top-p 1.5
refused "expected characters that the tokenizer has tokens for, got 'Q'" "$place/whole" "Quick"
refused "$place/nowhere/config.json: expected the configuration" "$place/nowhere" "The"

# Names without "transformer.", as in the files of GPT-2 itself; blanks keep the length of the header.
cp -r "$place/whole" "$place/bare"
LC_ALL=C sed -i 's/"transformer\.\([^"]*\)"/"\1"            /g' "$place/bare/model.safetensors"
trains "$place/bare" "${generate[@]:1}" --quiet
check "names without a prefix give the same text" cmp "$place/output" <(head -n -1 "$place/first")

# Folders that do not fit together.
broken() { # broken TEXT FILE EXPRESSION: what sed changed in a file is named
  cp -r "$place/whole" "$place/broken"
  LC_ALL=C sed -i "$3" "$place/broken/$2"
  refused "$1" "$place/broken" "The"
  rm -r "$place/broken"
}
broken "config.json: expected a number 'n_embd', got none" config.json 's/n_embd/n_emb/'
broken "config.json: expected 'n_head' from 1 to" config.json 's/"n_head": 2/"n_head": -2/'
broken "config.json: expected 'activation_function' to be \"gelu_new\"" config.json 's/gelu_new/relu/'
broken "config.json: expected 'eos_token_id' to be one token below" config.json 's/\("eos_token_id"\): null/\1: 50256/'
broken "or null, got [1,2]" config.json 's/\("eos_token_id"\): null/\1: [1, 2]/'
broken "model.safetensors] transformer.wte.weight" config.json 's/"n_embd": 16/"n_embd": 32/'
broken "expected a tensor 'transformer.h.1" config.json 's/"n_layer": 1/"n_layer": 2/'
broken "expected a vocabulary with token" config.json 's/"vocab_size": [0-9]*/"vocab_size": 5/'
broken "expected the weights of a GPT-2" model.safetensors 's/transformer.wte/transformer.wtf/'
broken "tokenizer.json: expected" tokenizer.json 's/"model"/"modem"/'
: >"$place/whole/config.json"
refused "config.json: expected the configuration of a GPT-2, got no JSON object" "$place/whole" "The"
python3 -c 'print("{\"activation_function\":" + 200000 * "[" + 200000 * "]" + "}")' >"$place/whole/config.json"
refused "config.json: expected the configuration of a GPT-2, got no JSON object" "$place/whole" "The"

finish

#!/bin/bash
# The programs for texts as their users meet them: data that cannot be used is named, a run that was stopped goes on as
# if it had not been, and the folders that they save can be loaded. Usage: texts.sh FOLDER_OF_PROGRAMS
set -u
program=$1/finetune_bert
. "$(dirname "$0")/../harness/checks.sh"
. "$(dirname "$0")/../harness/samples.sh"

data=$place/tweets
write_tweets() {
  mkdir -p "$data"
  printf '0\tkind\n1\trude\n' >"$data/mapping.txt"
  for split in train val test; do
    for i in 1 2 3 4; do
      printf 'you are so nice today\nwhat a rude thing\n@user thänks 😀\n[MASK] shut up!\n'
    done >"$data/${split}_text.txt"
    sed -i '6s/$/ and once more, what a very rude and long thing this is to say to @user today/' "$data/${split}_text.txt"
    for i in 1 2 3 4; do printf '0\n1\n0\n1\n'; done >"$data/${split}_labels.txt"
  done
}
write_tweets
resumed=(--data "$data" --config tiny --batch-size 8 --learning-rate 1e-3)
small=("${resumed[@]}" --vocab-size 256)

# Flags and data.
refused "data is required" --config tiny
refused "--config" "${small[@]}" --config huge
refused "weights requires --vocab" "${resumed[@]}" --weights "$place/w"
refused "--max-length" "${small[@]}" --max-length 513
refused "--buckets" "${small[@]}" --buckets 0
refused "--buckets" "${small[@]}" --buckets 17
refused "$place/nowhere/mapping.txt" --data "$place/nowhere"
broken() { # broken TEXT: what was done to the data is named; then it is whole again
  refused "$1" "${small[@]}"
  write_tweets
}
: >"$data/val_text.txt"
broken "val_text.txt: expected a line for each text, got an empty file"
noise 10000 >"$data/test_text.txt"
broken "test_labels.txt: expected a label for each of"
sed -i '3s/.*/2/' "$data/train_labels.txt"
broken "train_labels.txt: expected labels below 2, got 2 in line 3"
echo "no label" >"$data/mapping.txt"
broken "mapping.txt: expected a label in line 1, got 'no label'"
printf '0\tkind\n1\trude\n0\tdull\n' >"$data/mapping.txt"
broken "mapping.txt: expected every label once, got 0 again in line 3"
sed -i '1s/^/\xef\xbb\xbf/' "$data"/*  # a byte order mark, which is no part of a label
printf '[PAD]\n[CLS]\n[SEP]\nyou\n' >"$place/vocab.txt"
refused "vocab.txt: expected the token '[UNK]'" "${resumed[@]}" --vocab "$place/vocab.txt"
write_tweets
echo '{}' >"$place/tokenizer.json"
refused "tokenizer.json: expected a tokenizer.json" "${resumed[@]}" --vocab "$place/tokenizer.json"
refused "cannot make the folder" "${small[@]}" --save "$data/mapping.txt/model"
mkdir -p "$place/blocked/config.json"
refused "expected a file, got the folder $place/blocked/config.json" "${small[@]}" --save "$place/blocked"

cp -r "$data" "$place/untouched"
for file in mapping.txt train_text.txt val_labels.txt; do
  refused "--json] expected a file that is none of the data set" "${small[@]}" --json "$data/$file"
done
check "no output is written over the data" diff -r "$place/untouched" "$data"

# Training, resuming, and starting from what was saved.
trains "${small[@]}" --epochs 12 --save "$place/whole"
check "texts are padded to several lengths" grep -qE '^padded to [0-9]+, [0-9]+(, [0-9]+)* tokens: [0-9.]+% are padding, [0-9.]+% if all' "$place/output"
check "a test says macro-F1" grep -qE '^test accuracy [0-9.]+%, macro-F1 [01]\.[0-9]{4}$' "$place/output"
started "${small[@]}" --epochs 12 --save "$place/half"
until_true grep -q '^epoch 3/12: ' "$place/output"
stops INT 130 60
check "Ctrl-C: it says so" grep -q '^stopped after ' "$place/output"
trains "${resumed[@]}" --epochs 12 --resume "$place/half" --save "$place/resumed"
check "the folder's vocabulary is no difference" bash -c "! grep -q 'counts for' '$place/output'"
check "a resumed run ends like one that was not stopped" cmp "$place/resumed/model.safetensors" "$place/whole/model.safetensors"
trains "${resumed[@]}" --epochs 12 --buckets 1 --resume "$place/half" --save "$place/resumed"
check "other buckets than the checkpoint's are named" grep -q 'the command line counts for .*--buckets' "$place/output"
check "texts are padded to one length" grep -qE '^padded to [0-9]+ tokens: [0-9.]+% are padding$' "$place/output"
for file in config.json model.safetensors tokenizer.json tokenizer_config.json vocab.txt; do
  check "the folder has $file" test -s "$place/whole/$file"
done
trains "${resumed[@]}" --epochs 1 --buckets 1 --weights "$place/whole/model.safetensors" --vocab "$place/whole"
check "all of the weights are found" grep -q ': 41 tensors, 0 are new$' "$place/output"
sed 's/"you": [0-9]*/"you": 299/' "$place/whole/tokenizer.json" >"$place/gap.json"
cp -r "$place/whole" "$place/gap"
trains "${resumed[@]}" --epochs 1 --buckets 1 --vocab "$place/gap.json" --save "$place/gap"
check "an id without a token is saved" grep -q '"vocab_size": 300' "$place/gap/config.json"
check "and no vocab.txt of other tokens stays" test ! -e "$place/gap/vocab.txt"
LC_ALL=C sed 's/LayerNorm\.weight"/LayerNorm.gamma" /g; s/LayerNorm\.bias"/LayerNorm.beta"/g' "$place/whole/model.safetensors" \
  >"$place/older"
trains "${resumed[@]}" --epochs 1 --buckets 1 --weights "$place/older" --vocab "$place/whole"
check "an older file's names of norms are found" grep -q ': 41 tensors, 0 are new$' "$place/output"
for file in older whole/model.safetensors; do
  LC_ALL=C sed 's/"bert\./     "/g; s/"classifier\./"unrelated_./g' "$place/$file" >"$place/encoder"
  trains "${resumed[@]}" --epochs 1 --buckets 1 --weights "$place/encoder" --vocab "$place/whole"
  check "an encoder's file is found" grep -q ': 39 tensors, 2 are new: classifier.weight, classifier.bias$' "$place/output"
done
LC_ALL=C sed 's/encoder\.layer\.1\./encoder.layer.9./g' "$place/encoder" >"$place/other"
refused "lacks bert.encoder.layer.1." --data "$data" --config tiny --weights "$place/other" --vocab "$place/whole"
refused "expected a BERT of --config mini" --data "$data" --config mini --weights "$place/whole/model.safetensors" \
  --vocab "$place/whole/vocab.txt"
cp -r "$place/whole" "$place/relu"
sed -i 's/"hidden_act": "gelu"/"hidden_act": "relu"/' "$place/relu/config.json"
refused "config.json: expected 'hidden_act' to be \"gelu\", got \"relu\"" "${resumed[@]}" \
  --weights "$place/relu/model.safetensors" --vocab "$place/whole"
cp -r "$place/whole" "$place/heads"
sed -i 's/"num_attention_heads": 2/"num_attention_heads": 4/' "$place/heads/config.json"
refused "config.json: expected 'num_attention_heads' to be 2, got 4" "${resumed[@]}" \
  --weights "$place/heads/model.safetensors" --vocab "$place/whole"
LC_ALL=C sed 's/encoder\.layer\.1\./encoder.layer.9./g' "$place/whole/model.safetensors" >"$place/other"
refused "lacks bert.encoder.layer.1." --data "$data" --config tiny --weights "$place/other" --vocab "$place/whole"

# Ctrl-C while it tests at last.
cp -r "$data" "$place/much"
for i in $(seq 500); do cat "$data/test_text.txt" >&3; cat "$data/test_labels.txt" >&4; done \
  3>"$place/much/test_text.txt" 4>"$place/much/test_labels.txt"
started "${small[@]:2}" --data "$place/much" --buckets 1 --epochs 1
until_true grep -q '^epoch 1/1: ' "$place/output"
sleep 0.3
stops INT 130 60
check "a test that was stopped has no result" test "$(grep -c '^test accuracy' "$place/output")" = 0

# Positions are the model's own, those of the file that it starts from.
once=(--data "$data" --config tiny --batch-size 8 --buckets 1 --quiet)
trains "${once[@]}" --epochs 1 --vocab-size 256 --max-length 16 --save "$place/narrow"
trains "${once[@]}" --epochs 1 --weights "$place/narrow/model.safetensors" --vocab "$place/narrow"
trains "${once[@]}" --epochs 1 --weights "$place/encoder" --vocab "$place/whole" --max-length 12 --save "$place/cut"
check "the model keeps its positions" grep -q '"max_position_embeddings": 512' "$place/cut/config.json"
trains "${once[@]}" --epochs 2 --max-length 12 --resume "$place/cut"
trains "${once[@]}" --epochs 2 --resume "$place/narrow"
refused "--max-length] expected at most 16, the positions of the model in $place/narrow/checkpoint.safetensors, got 17" \
  "${once[@]}" --max-length 17 --resume "$place/narrow"

cp -r "$place/whole" "$place/kept"
kept=("${resumed[@]}" --weights "$place/kept/model.safetensors" --vocab "$place/kept/vocab.txt")
refused "another file than that of --weights, got $place/kept/model.safetensors" "${kept[@]}" --save "$place/kept"
refused "another file than that of --weights, got $place/kept/config.json" "${kept[@]}" --json "$place/kept/config.json"
refused "another file than that of --vocab" "${resumed[@]}" --vocab "$place/kept" --save "$place/kept"
refused "another file than that of --resume" "${resumed[@]}" --resume "$place/kept" --json "$place/kept/tokenizer.json"
refused "expected" --data "$data" --config mini --batch-size 8 --resume "$place/kept" --save "$place/kept"
check "a run that is refused leaves the folder as it was" diff -r "$place/whole" "$place/kept"
refused "excludes" "${small[@]}" --resume "$place/half"
refused "excludes" --data "$data" --config tiny --resume "$place/half" --cased
trains "${small[@]}" --epochs 1 --buckets 1 --recompute
check "what recomputation saves is said" grep -q 'MiB less than if activations were not computed again' "$place/output"
trains "${small[@]}" --epochs 1 --buckets 1 --compare
check "both precisions are compared" grep -qE '^mixed: [0-9.]+ s, [0-9.]+ times as fast as float32, test macro-F1' "$place/output"

# Vocabularies and their tokens.
program=$1/train_vocab
refused "cannot read $place/nowhere" "$place/nowhere" --out "$place/v"
refused "expected a size from" "$data/train_text.txt" --size 256 --special '<a>' '<b>' --kind bytepairs --out "$place/v"
refused "cannot make the folder" "$data/train_text.txt" --out "$data/mapping.txt/v"
trains "$data/train_text.txt" --size 300 --kind bytepairs --special "<end>" --out "$place/v"
program=$1/tokenize
run "$place/v" "$data/train_text.txt"
check "a line of ids for each text" test "$(grep -cE '^[0-9]+( [0-9]+)*$' "$place/output")" = 16
printf 'rude <end>x\n' | run "$place/v" --text
check "tokens as text: $(cat "$place/output")" grep -q 'Ġ <end> x$' "$place/output"
{ printf '\xef\xbb\xbf'; cat "$data/train_text.txt"; } >"$place/marked" # a byte order mark is no part of a text
run "$place/v" "$data/train_text.txt"
mv "$place/output" "$place/ids"
run "$place/v" "$place/marked"
check "tokenize: a byte order mark has no tokens" cmp "$place/ids" "$place/output"
refused "cannot read" "$place/nowhere"
refused "cannot read /proc/self/mem" "$place/v" /proc/self/mem # an ordinary file whose first byte cannot be read
program=$1/train_vocab
refused "cannot read /proc/self/mem" "$data/train_text.txt" /proc/self/mem --out "$place/w"
trains "$data/train_text.txt" "$data/train_text.txt" --size 5000 --kind bytepairs --out "$place/plain"
trains "$place/marked" "$place/marked" --size 5000 --kind bytepairs --out "$place/w"
check "train_vocab: a byte order mark is not learned from" cmp "$place/plain/tokenizer.json" "$place/w/tokenizer.json"

finish

#!/bin/bash
# samples/fetch_data.sh against a folder that stands in for the network. Usage: fetch_data.sh SOURCE_FOLDER
set -u
program=$1/samples/fetch_data.sh
. "$(dirname "$0")/../harness/checks.sh"

refused() { # refused CODE TEXT ARGUMENTS...: that exit code, and one line with TEXT on standard error
  local code=$1 text=$2
  shift 2
  "$program" "$@" >"$place/output" 2>"$place/error"
  check "'$*': exit code $code, got $?" test $? = "$code"
  check "'$*': one line on standard error" test "$(wc -l <"$place/error")" = 1
  check "'$*': the line says '$text'" grep -qF -- "$text" "$place/error"
}

export HALFSTEP_MIRROR=file://$place/mirror
mkdir "$place/mirror"
refused 2 "expected cifar10, cifar100, mnist or fashion-mnist, got ''"
refused 2 "got 'imagenet'" imagenet
# Nothing listens on this port: as without a network.
HALFSTEP_MIRROR=http://127.0.0.1:9 refused 1 "is there a network?" cifar10 "$place/data"
refused 1 "cannot download" mnist "$place/data"
echo "not CIFAR" >"$place/mirror/cifar-10-binary.tar.gz"
refused 1 "its SHA-256 differs" cifar10 "$place/data"
check "what is not the file expected does not stay" test -z "$(ls "$place/data")"

# With the checksum answered for: a download is taken up where it broke off, unpacked, and not made twice.
mkdir -p "$place/bin" "$place/cifar-10-batches-bin"
head -c 300000 /dev/urandom >"$place/cifar-10-batches-bin/test_batch.bin"
tar -czf "$place/mirror/cifar-10-binary.tar.gz" -C "$place" cifar-10-batches-bin
cat >"$place/bin/sha256sum" <<SUM
#!/bin/sh
if cmp -s "\$1" "$place/mirror/cifar-10-binary.tar.gz"; then
  echo "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd  \$1"
else
  echo "0  \$1"
fi
SUM
chmod +x "$place/bin/sha256sum"
PATH=$place/bin:$PATH
head -c 100000 "$place/mirror/cifar-10-binary.tar.gz" >"$place/data/cifar-10-binary.tar.gz.part"
for attempt in first second; do
  "$program" cifar10 "$place/data" >"$place/output" 2>"$place/error"
  check "the $attempt time: exit code 0, got $?" test $? = 0
  check "the $attempt time: it says where the data is" grep -q "cifar10 is in $place/data" "$place/output"
  check "the $attempt time: it is unpacked" cmp -s "$place/cifar-10-batches-bin/test_batch.bin" \
    "$place/data/cifar-10-batches-bin/test_batch.bin"
  rm -rf "$place/mirror/"*.part
done
check "the second time nothing is downloaded" test "$(wc -l <"$place/output")" = 1

finish

#!/bin/sh
# Downloads a data set from where its authors keep it, checks it and unpacks it: ./samples/fetch_data.sh SET [FOLDER]
#   SET     cifar10, cifar100, mnist or fashion-mnist
#   FOLDER  where to put it (default: data/SET in the project's folder, where samples look for CIFAR-10)
# A download that broke off is taken up again. What is there already is not downloaded twice.
# HALFSTEP_MIRROR names another place that has the same files.
set -eu

refuse() { # refuse CODE TEXT
  echo "error: $2" >&2
  exit "$1"
}

set=${1:-}
case $set in
cifar10 | cifar100) place=https://www.cs.toronto.edu/~kriz ;;
mnist) place=https://storage.googleapis.com/cvdf-datasets/mnist ;; # the author's own page gives the files out no more
fashion-mnist) place=http://fashion-mnist.s3-website.eu-central-1.amazonaws.com ;;
*) refuse 2 "expected cifar10, cifar100, mnist or fashion-mnist, got '$set'" ;;
esac
place=${HALFSTEP_MIRROR:-$place}
folder=${2:-$(dirname "$0")/../data/$set}

matches() { # matches FILE SHA256
  sum=$(sha256sum "$1" 2>/dev/null || shasum -a 256 "$1")
  [ "${sum%% *}" = "$2" ]
}

download() { # download URL FILE: goes on where FILE ends
  if command -v curl >/dev/null; then
    curl -fsSL --retry 2 --connect-timeout 20 -C - -o "$2" "$1" 2>&1
  elif command -v wget >/dev/null; then
    wget -c -nv --tries 3 --timeout 20 -O "$2" "$1" 2>&1
  else
    refuse 1 "expected curl or wget to download with, got neither"
  fi
}

fetch() { # fetch FILE SHA256: leaves FILE in the folder
  [ ! -f "$folder/$1" ] || ! matches "$folder/$1" "$2" || return 0
  part=$folder/$1.part
  if [ ! -f "$part" ] || ! matches "$part" "$2"; then
    echo "downloading $place/$1"
    reason=$(download "$place/$1" "$part") ||
      refuse 1 "cannot download $place/$1, is there a network? ($(echo "$reason" | tail -n 1))"
    if ! matches "$part" "$2"; then
      rm -f "$part"
      refuse 1 "$place/$1 is not the file expected (its SHA-256 differs); it was removed"
    fi
  fi
  mv "$part" "$folder/$1"
}

mkdir -p "$folder" || refuse 1 "cannot make the folder $folder"
case $set in
cifar10)
  fetch cifar-10-binary.tar.gz c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd
  tar -xzf "$folder/cifar-10-binary.tar.gz" -C "$folder"
  ;;
cifar100)
  fetch cifar-100-binary.tar.gz 58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec
  tar -xzf "$folder/cifar-100-binary.tar.gz" -C "$folder"
  ;;
# These are read as they are, gzipped.
mnist)
  fetch train-images-idx3-ubyte.gz 440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609
  fetch train-labels-idx1-ubyte.gz 3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c
  fetch t10k-images-idx3-ubyte.gz 8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6
  fetch t10k-labels-idx1-ubyte.gz f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6
  ;;
fashion-mnist)
  fetch train-images-idx3-ubyte.gz 3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84
  fetch train-labels-idx1-ubyte.gz a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845
  fetch t10k-images-idx3-ubyte.gz 346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073
  fetch t10k-labels-idx1-ubyte.gz 67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5
  ;;
esac
echo "$set is in $folder"

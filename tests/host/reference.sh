#!/bin/bash
# The API reference has no warning: reference.sh FOLDER, where it is written
set -eu
cd "$(dirname "$0")/../.."
command -v doxygen >/dev/null || { echo "skipped: there is no doxygen" && exit 77; }
{ cat engine/Doxyfile && echo "OUTPUT_DIRECTORY = $1"; } | doxygen -
for name in hs__trainer__options classhalfstep_1_1Trainer namespacehalfstep_1_1models; do
  ls "$1"/html/*"$name"*.html >/dev/null
done

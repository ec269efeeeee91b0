#!/bin/sh
# Installs a build into a folder of its own, then builds and runs a program against it, found once by CMake and once by
# pkg-config: run.sh CMAKE BUILD COMPILER [FLAGS]
set -eu
cmake=$1 build=$2 compiler=$3 flags=${4:-}
source=$(cd "$(dirname "$0")" && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

"$cmake" --install "$build" --prefix "$place/installed" >/dev/null
# The tree works wherever it lies.
mv "$place/installed" "$place/moved"

"$cmake" -S "$source" -B "$place/build" -DCMAKE_PREFIX_PATH="$place/moved" -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_CXX_FLAGS="$flags" >/dev/null
"$cmake" --build "$place/build" >/dev/null
"$place/build/package_user"

description=$(find "$place/moved" -name halfstep.pc)
PKG_CONFIG_PATH=$(dirname "$description")
export PKG_CONFIG_PATH
pkg-config --atleast-version=0.1 halfstep
# shellcheck disable=SC2046,SC2086 # flags are lists of words
"$compiler" -std=c++20 $flags "$source/main.cpp" $(pkg-config --cflags --libs halfstep) -o "$place/with_pkg_config"
"$place/with_pkg_config"
echo "2 checks passed"

#!/bin/sh
# Keeps the SPIR-V of the shaders that need a recent glslang (those with "//! REQUIRES"), for builds whose glslang is too
# old for them: spirv.tar.xz, and in sources.sha256 what it was made of. To be run after a change of one of these.
#
#   HALFSTEP_GLSLANG=/path/to/glslang shaders/prebuilt/make.sh           makes both files
#   HALFSTEP_GLSLANG=/path/to/glslang shaders/prebuilt/make.sh --check   fails if they are not what would be made
# With --check and a glslang that is too old, or another than it was made with, only the sources are compared.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
kept=$root/shaders/prebuilt
cd "$root"
check=
[ "${1:-}" != --check ] || check=yes
if [ -n "$check" ] && ! sha256sum --check --quiet "$kept/sources.sha256"; then
  echo "shaders/prebuilt was made of other sources. Hint: shaders/prebuilt/make.sh, with a recent glslang." >&2
  exit 1
fi
glslang=${HALFSTEP_GLSLANG:-$(command -v glslang || command -v glslangValidator || true)}
version=$("$glslang" --version 2>/dev/null | sed -n '1s/.*: //p')
if [ -n "$check" ] && [ "$version" != "$(cat "$kept/compiler")" ]; then
  echo "1 check passed: the sources are those that shaders/prebuilt was made of. Its SPIR-V was not made anew: it is" \
    "glslang $(cat "$kept/compiler")'s, and this one is ${version:-missing}."
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake -S "$root" -B "$work/build" -DHALFSTEP_GLSLANG="$glslang" -DHALFSTEP_TESTS=OFF -DHALFSTEP_SAMPLES=OFF \
  --log-level=WARNING
cmake --build "$work/build" --parallel --target shaders_to_keep >"$work/log" || { cat "$work/log" >&2 && exit 1; }
mkdir "$work/spirv"
xargs -I{} cp {} "$work/spirv" <"$work/build/shaders/shaders_to_keep.txt"
if [ -n "$check" ]; then
  mkdir "$work/kept"
  tar -xf "$kept/spirv.tar.xz" -C "$work/kept"
  diff -r "$work/kept" "$work/spirv"
  echo "$(find "$work/kept" -name '*.spv' | wc -l) checks passed: SPIR-V as glslang $version makes it"
  exit 0
fi
# Every file that they were made of.
for file in "$work/spirv/"*.spv; do
  tr ' ' '\n' <"$work/build/shaders/$(basename "$file").d"
done | sed -n "s|^$root/||p" | sort -u | xargs sha256sum >"$kept/sources.sha256"
echo "$version" >"$kept/compiler"
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$work/spirv" -cf - . | xz -9e >"$kept/spirv.tar.xz"
echo "shaders/prebuilt: $(find "$work/spirv" -name '*.spv' | wc -l) shaders, $(wc -c <"$kept/spirv.tar.xz") bytes"

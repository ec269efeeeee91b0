#!/bin/sh
# Installs what building Halfstep takes, and with --tests what testing it takes too. Does nothing, and asks the network
# for nothing, where all of it is there.
set -eu

packages="cmake ninja-build g++ pkg-config libvulkan-dev glslang-tools doctest-dev
zlib1g-dev libpng-dev libjpeg-dev nlohmann-json3-dev libcli11-dev libfmt-dev libutf8proc-dev liblzma-dev xz-utils
dataset-fashion-mnist"
if [ "${1:-}" = --tests ]; then
  packages="$packages mesa-vulkan-drivers vulkan-validationlayers chromium-common libvulkan-volk-dev libdrm-dev curl doxygen
 libsdl2-dev xvfb x11-apps openmpi-bin libopenmpi-dev"
elif ! ls /usr/share/vulkan/icd.d/*.json /etc/vulkan/icd.d/*.json >/dev/null 2>&1; then
  # No Vulkan driver at all: Mesa brings one for each common GPU, and lavapipe, which needs none.
  packages="$packages mesa-vulkan-drivers"
fi

if ! command -v apt-get >/dev/null; then
  cat <<'LIST'
This is not Debian or Ubuntu, so nothing is installed. Halfstep needs, from this system's packages:
  CMake 3.22 or later, Ninja, a C++20 compiler, pkg-config
  the Vulkan headers and loader, glslangValidator,
  SPIRV-Tools (spirv-opt, and the library of its validator)
  doctest, zlib, libpng, libjpeg-turbo, nlohmann-json, CLI11, fmt, utf8proc, xz (liblzma and the program)
  for its tests, SDL 2, curl, doxygen and volk (with its source file); an MPI and libdrm's headers are optional
  a Vulkan driver: the GPU's, or Mesa's lavapipe
  Fashion-MNIST as IDX files, for instance in a folder named with --data
LIST
  exit 0
fi

missing=""
for package in $packages; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing="$missing $package"
done
if ! command -v spirv-opt >/dev/null || [ ! -e /usr/include/spirv-tools/libspirv.h ]; then
  missing="$missing spirv-tools"
fi
[ -n "$missing" ] || exit 0

echo "Installing:$missing"
if [ "$(id -u)" = 0 ]; then
  as_root=""
elif command -v sudo >/dev/null; then
  as_root=sudo
else
  echo "error: neither root nor sudo is at hand; as root, run: apt-get install$missing" >&2
  exit 1
fi
$as_root apt-get update -q
# Releases after Debian 13 have the library of SPIRV-Tools in a package of its own.
! apt-cache show spirv-tools-dev >/dev/null 2>&1 || missing="$missing spirv-tools-dev"
# shellcheck disable=SC2086 # both are lists of words
DEBIAN_FRONTEND=noninteractive $as_root apt-get install -q -y --no-install-recommends $missing

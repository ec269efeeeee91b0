#!/bin/bash
# Installs a build, moves what was installed, and checks it: its files, its headers, and programs built against it with
# CMake and with pkg-config, which run on each driver: run.sh CMAKE BUILD COMPILER [ICD_FILE...]
# CXXFLAGS are the build's, such as those of a sanitizer.
set -u
cmake=$1 build=$(cd "$2" && pwd) compiler=$3
shift 3
source=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$source/../.." && pwd)
. "$source/../harness/checks.sh"

quietly() { "$@" >"$place/error" 2>&1; }
# compile STANDARD ARGUMENTS...: compiles against the installed headers and, unless told otherwise, links
compile() {
  local standard=$1
  shift
  # shellcheck disable=SC2046,SC2086 # flags are lists of words
  quietly "$compiler" -std="$standard" ${CXXFLAGS:-} $(pkg-config --cflags halfstep) "$@" $(pkg-config --libs halfstep)
}

# Installed from another folder, under a root that is not the final one, then moved: nothing may lead back.
mkdir "$place/elsewhere"
installed() { cd "$place/elsewhere" && DESTDIR=$place/staged quietly "$cmake" --install "$build" --prefix /opt/halfstep; }
check "cmake --install works from any folder" installed
package=$place/moved
mv "$place/staged/opt/halfstep" "$package" || exit 1
grep -rIlF -e "$root" -e "$build" -e "$place" -e /opt/halfstep "$package" >"$place/error"
check "installed text names neither the source, the build nor the prefix" test ! -s "$place/error"
find "$package/include" -type f ! -name '*.h' >"$place/error"
check "only headers are installed as headers" test ! -s "$place/error"

# An application's own functions of these names must not meet others.
archives=$(find "$package" -name 'libhalfstep*.a' ! -name libhalfstep_c.a ! -name libhalfstep_mpi.a)
# shellcheck disable=SC2086 # a list of words
nm -A --defined-only $archives 2>/dev/null | grep -E ' [A-Za-z] _?(vk[A-Z]|volk)' >"$place/error"
check "the library defines none of Vulkan's names" test ! -s "$place/error"

PKG_CONFIG_PATH=$(dirname "$(find "$package" -name halfstep.pc)")
export PKG_CONFIG_PATH
check "pkg-config finds the version" pkg-config --atleast-version=0.1 halfstep
absolute() {
  quietly "$cmake" -S "$root" -B "$place/absolute" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_INSTALL_PREFIX=/opt/halfstep \
    -DCMAKE_INSTALL_LIBDIR=/opt/libraries -DCMAKE_INSTALL_INCLUDEDIR=/opt/headers -DHALFSTEP_TESTS=OFF \
    -DHALFSTEP_SAMPLES=OFF || return 1
  pkg-config --cflags --libs "$place/absolute/halfstep.pc" >"$place/error"
  grep -q -- '-I/opt/headers .*-L/opt/libraries ' "$place/error"
}
c_flags() { [ "$(pkg-config --cflags --libs halfstep-c | tr ' ' '\n' | grep -c -e "^-I.*/include$" -e '^-lhalfstep_c$')" = 2 ]; }
check "pkg-config finds the C interface" c_flags
check "pkg-config leads to absolute folders where they were chosen" absolute

# Headers: each compiles by itself, and says what it needs to an older language.
check "there are headers" test -f "$package/include/halfstep/halfstep.h"
check "the C header is beside them" test -f "$package/include/halfstep.h"
for header in "$package"/include/halfstep/*.h "$package"/include/halfstep_models/models/*.h; do
  name=${header#"$package/include/"}
  name=${name#halfstep_models/}
  echo "#include <$name>" >"$place/header.cpp"
  check "<$name> compiles by itself" compile c++20 -fsyntax-only "$place/header.cpp"
  compile c++17 -fsyntax-only "$place/header.cpp"
  check "<$name> is refused in C++17" test $? != 0
  check "<$name> says that it needs C++20" grep -q 'error: .*Halfstep needs C++20' "$place/error"
  check "<$name> says little else" test "$(wc -l <"$place/error")" -le 15
done

# An application's own optimizer has a kernel, which includes what was installed.
for storage in f32 f16 packed; do
  check "an update kernel compiles against the installed shaders ($storage)" quietly glslangValidator -V \
    --target-env vulkan1.1 -S comp "-DSTORAGE_$storage=1" "-I$package/share/halfstep/shaders" \
    -o "$place/kernel.spv" "$root/shaders/optim/sgd.comp"
done

# As a shared library: the archive's objects are compiled as a shared library's are, position independent and hidden but
# for the public interface, so that it takes no second build.
shared_library() {
  # shellcheck disable=SC2046,SC2086 # flags are lists of words
  quietly "$compiler" -shared ${CXXFLAGS:-} -o "$place/libhalfstep_shared.so" -Wl,--whole-archive $archives \
    -Wl,--no-whole-archive $(pkg-config --libs halfstep | tr ' ' '\n' | grep -v -e -lhalfstep)
}
check "the library links as a shared one" shared_library
nm -DC --defined-only "$place/libhalfstep_shared.so" | sed 's/^[0-9a-f]* . //' |
  grep -E '^(vtable for |typeinfo (name )?for )?halfstep::(base|data|graph|io|ops|optim|passes|plan|process|run|state|step|train|tune|vk)::' |
  grep -v -e '^halfstep::process::interrupt' >"$place/error"
check "a shared library shows nothing of the engine's insides" test ! -s "$place/error"
nm -DC --defined-only "$place/libhalfstep_shared.so" | grep -q ' T halfstep::Trainer::step()'
check "a shared library shows the public interface" test $? = 0
shared_program() {
  # shellcheck disable=SC2046,SC2086 # flags are lists of words
  quietly "$compiler" -std=c++20 ${CXXFLAGS:-} -fvisibility=hidden $(pkg-config --cflags halfstep) "$source/main.cpp" \
    -o "$place/with_shared" -L"$place" -lhalfstep_shared -Wl,-rpath,"$place"
}
check "a program links with the shared library" shared_program

# The programs.
configured() {
  quietly "$cmake" -S "$source" -B "$place/build" -DCMAKE_PREFIX_PATH="$package" -DCMAKE_CXX_COMPILER="$compiler"
}
check "CMake finds the package" configured
check "programs build with CMake" quietly "$cmake" --build "$place/build"
check "a program builds with pkg-config" compile c++20 "$source/main.cpp" -o "$place/with_pkg_config"
# The README's programs, as they are written there.
awk -v place="$place" '/^```/ { inside = $0 == "```c++"; if (inside) file = place "/readme" ++n ".cpp"; next }
  inside { print >file }' "$root/README.md"
check "the README has a program" test -s "$place/readme1.cpp"
for example in "$place"/readme*.cpp; do
  check "the README's program builds" compile c++20 -Wall -Wextra -Werror "$example" -o "$place/readme"
done

if [ $# = 0 ]; then set -- ""; fi # whatever driver the machine has
for driver in "$@"; do
  # Loaders before 1.3.207 know the second name only.
  [ -z "$driver" ] || export VK_DRIVER_FILES=$driver VK_ICD_FILENAMES=$driver
  for program in build/package_user with_pkg_config with_shared build/own_device build/own_volk \
    build/c_user_shared build/c_user_static; do
    check "$program runs ($driver)" quietly "$place/$program"
  done
done
finish

#!/bin/bash
# The C interface as programs see it: its header in C and C++, its symbols and the layout of its structs, the program in
# its comment, programs that use all of it, a plug-in: run.sh BUILD C_COMPILER C++_COMPILER [ICD_FILE...]
# CFLAGS are the build's, such as those of a sanitizer. With --write-abi as the first argument, writes
# engine/bindings/c/halfstep.abi.
set -u
write_abi=false
if [ "$1" = --write-abi ]; then
  write_abi=true
  shift
fi
build=$(cd "$1" && pwd) cc=$2 cxx=$3
shift 3
source=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$source/../.." && pwd)
. "$source/../harness/checks.sh"
interface=$root/engine/bindings/c
libraries=$build/engine/bindings/c

quietly() { "$@" >"$place/error" 2>&1; }
strict="-Wall -Wextra -Wpedantic -Werror"
# shellcheck disable=SC2086 # flags are lists of words
c() { quietly "$cc" -std=c11 $strict ${CFLAGS:-} -I"$interface" "$@"; }

echo '#include <halfstep.h>' >"$place/header.c"
cp "$place/header.c" "$place/header.cpp"
# shellcheck disable=SC2086
for standard in c11 c17; do
  check "the header is $standard" quietly "$cc" -std=$standard $strict -I"$interface" -fsyntax-only "$place/header.c"
done
# shellcheck disable=SC2086
for standard in c++17 c++20; do
  check "the header is $standard" quietly "$cxx" -std=$standard $strict -I"$interface" -fsyntax-only "$place/header.cpp"
done

# Symbols with their versions; then the size of each struct and enum, and the place of each member. A symbol may be
# added, and a member at the end of a struct that begins with its size; nothing else may change but with the version.
# Such a struct ends with its last member: one in what was padding would not be seen by the size. It is no member of
# another, since it could not grow there.
abi() {
  nm -D --defined-only "$libraries/libhalfstep_c.so" | awk '$2 == "T" { print $3 }' | LC_ALL=C sort
  {
    printf '#include <halfstep.h>\n#include <stdio.h>\nint main(void) {\n'
    awk '
      { sub(/ *\/\/.*/, "") }
      /^typedef enum [a-z0-9_]+ \{/ && /\}/ { sub(/.*\} /, ""); sub(/;.*/, ""); print "E " $0; next }
      /^typedef (struct|enum) [a-z0-9_]+ \{$/ { inside = $2; next }
      inside != "" && /^\} / { sub(/^\} /, ""); sub(/;.*/, ""); print (inside == "struct" ? "S " : "E ") $0; inside = "" ; next }
      inside == "struct" && /;$/ {
        line = $0
        if (match(line, /\(\*[a-z_0-9]+\)/)) { print "M " substr(line, RSTART + 2, RLENGTH - 3); next }
        sub(/;$/, "", line); sub(/\[.*/, "", line); sub(/.*[ *]/, "", line); print "M " line " " $1
      }' "$interface/halfstep.h" | awk '
      $1 == "M" { members[++n] = $2; types[n] = $3 }
      $1 == "S" { for (i = 1; i <= n; i++) {
                    if (types[i] in sized) printf "_Static_assert(0, \"%s is a member of %s\");\n", types[i], $2
                  }
                  if (members[1] == "size") {
                    sized[$2]
                    last = members[n]
                    printf "_Static_assert(offsetof(%s, %s) + sizeof((%s){0}.%s) == sizeof(%s),", $2, last, $2, last, $2
                    printf " \"%s ends in padding\");\n", $2
                  }
                  printf "printf(\"%s: %%zu bytes\\n\", sizeof(%s));\n", $2, $2
                  for (i = 1; i <= n; i++) printf "printf(\"  %s at %%zu\\n\", offsetof(%s, %s));\n", members[i], $2, members[i]
                  n = 0 }
      $1 == "E" { printf "printf(\"%s: %%zu bytes\\n\", sizeof(%s));\n", $2, $2 }'
    printf 'return 0;\n}\n'
  } >"$place/layout.c"
  "$cc" -std=c11 -I"$interface" "$place/layout.c" -o "$place/layout" && "$place/layout"
}
if $write_abi; then
  abi >"$place/halfstep.abi" && cp "$place/halfstep.abi" "$interface/halfstep.abi"
  exit
fi
write_layout() { abi >"$place/halfstep.abi" 2>"$place/error"; }
check "structs that begin with their size can grow" write_layout
# Sizes and places are those of 64-bit machines.
check "the ABI is that of engine/bindings/c/halfstep.abi (tests/bindings/run.sh --write-abi writes it)" \
  quietly diff "$interface/halfstep.abi" "$place/halfstep.abi"
nm -D --defined-only "$libraries/libhalfstep_c.so" | grep -v -e ' A HALFSTEP_' -e ' T hs_[a-z0-9_]*@@HALFSTEP_' >"$place/error"
check "the shared library shows its own symbols only" test ! -s "$place/error"
grep -o '\bhs_[a-z0-9_]*(' "$interface/halfstep.h" | tr -d '(' | sort -u >"$place/declared"
nm -D --defined-only "$libraries/libhalfstep_c.so" | sed -n 's/.* T \(hs_[a-z0-9_]*\)@.*/\1/p' | sort -u >"$place/defined"
comm -13 "$place/declared" "$place/defined" >"$place/error"
check "the shared library shows nothing that the header does not declare" test ! -s "$place/error"

# The program in the header's comment.
sed -n '/#include <halfstep.h>/,/^\/\/\/     }$/s|^///     ||p' "$interface/halfstep.h" >"$place/comment.c"
with_shared=(-L"$libraries" -lhalfstep_c -Wl,-rpath,"$libraries" -lm)
check "the program in the header's comment builds" c "$place/comment.c" -o "$place/comment" "${with_shared[@]}"
check "a program builds with the shared library" c "$source/everything.c" -o "$place/everything" "${with_shared[@]}"
check "a program whose predictor has a cache builds" c "$source/caches.c" -o "$place/caches" "${with_shared[@]}"
check "an application with its own device builds" c "$source/guest.c" -o "$place/guest" "${with_shared[@]}" -lvulkan
check "a program that loads plug-ins builds" c "$source/plug_in.c" -Wno-pedantic -o "$place/plug_in" -ldl
cp "$libraries/libhalfstep_c.so" "$place/copy.so"

if [ $# = 0 ]; then set -- ""; fi # whatever driver the machine has
for driver in "$@"; do
  # Loaders before 1.3.207 know the second name only.
  [ -z "$driver" ] || export VK_DRIVER_FILES=$driver VK_ICD_FILENAMES=$driver
  check "the program in the header's comment runs ($driver)" quietly "$place/comment"
  check "it found the slope ($driver)" grep -qx 'slope 2.000' "$place/error"
  mkdir "$place/files"
  check "a program uses everything ($driver)" quietly "$place/everything" "$place/files"
  rm -r "$place/files"
  check "a predictor keeps rows, but none of a call that failed ($driver)" quietly "$place/caches"
  check "an application lends its device, buffers and command buffers ($driver)" quietly "$place/guest"
  check "it has no message ($driver)" test ! -s "$place/error"
  # The validation layer keeps the loader, which keeps what it has loaded.
  check "a plug-in is loaded ten times, and twice at once ($driver)" \
    quietly env HALFSTEP_VALIDATION= "$place/plug_in" "$(readlink -f "$libraries/libhalfstep_c.so")" "$place/copy.so"
done
finish

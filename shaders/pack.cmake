# All variants of one shader, NAMES, whose SPIR-V is in FILES: compressed together, since they have most in common, and
# embedded in PACKED, a C++ file. ID is the pack's name there.
set(compressed "${PACKED}.xz")
execute_process(COMMAND "${CMAKE_COMMAND}" -E cat ${FILES}
                COMMAND "${XZ}" --check=crc32 --lzma2=preset=9e,lc=0,lp=2,pb=2 --stdout # what fits 32-bit words
                OUTPUT_FILE "${compressed}" RESULTS_VARIABLE results ERROR_VARIABLE output)
if(NOT results STREQUAL "0;0")
  message(FATAL_ERROR "${XZ} cannot compress ${FILES}\n${output}")
endif()
file(READ "${compressed}" hex HEX)
file(REMOVE "${compressed}")
string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "((0x..,){24})" "\\1\n" bytes "${bytes}")
set(variants "")
foreach(name file IN ZIP_LISTS NAMES FILES)
  file(SIZE "${file}" size)
  math(EXPR words "${size} / 4")
  string(APPEND variants "    {\"${name}\", ${words}},\n")
endforeach()
file(WRITE "${PACKED}" "// Generated: the SPIR-V of all variants of a shader, compressed.
#include <vk/shader/packs.h>

namespace halfstep::vk {
namespace {

constexpr PackedVariant variants[] = {
${variants}};
constexpr unsigned char bytes[] = {
${bytes}
};

}  // namespace

extern const ShaderPack ${ID};
const ShaderPack ${ID}{variants, bytes};

}  // namespace halfstep::vk
")

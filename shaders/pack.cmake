# All variants of one shader, NAMES, whose SPIR-V is in FILES: compressed together, since they have most in common, and
# embedded in PACKED, a C++ file. ID is the pack's name there.
set(compressed "${PACKED}.xz")
execute_process(COMMAND "${CMAKE_COMMAND}" -E cat ${FILES}
                COMMAND "${XZ}" --check=crc32 --lzma2=preset=6,dict=64MiB,lc=0,lp=2,pb=2 --stdout # what fits 32-bit words
                OUTPUT_FILE "${compressed}" RESULTS_VARIABLE results ERROR_VARIABLE output)
if(NOT results STREQUAL "0;0")
  message(FATAL_ERROR "${XZ} cannot compress ${FILES}\n${output}")
endif()
file(READ "${compressed}" hex HEX)
file(REMOVE "${compressed}")
string(REGEX REPLACE "(..)" "\\\\x\\1" bytes "${hex}") # a string, which compilers read sooner than a list of numbers
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

constexpr PackedVariant ${ID}_variants[] = {
${variants}};
constexpr unsigned char ${ID}_bytes[] =
    \"${bytes}\";

}  // namespace

extern const ShaderPack ${ID};
const ShaderPack ${ID}{${ID}_variants, std::span(${ID}_bytes).first(sizeof(${ID}_bytes) - 1)};

}  // namespace halfstep::vk
")

# One shader variant: GLSL -> SPIR-V -> optimised SPIR-V -> an array of its words in EMBEDDED, a C++ file.
set(spv "${EMBEDDED}.spv")
execute_process(
  COMMAND "${GLSLANG}" -V --target-env vulkan1.1 --quiet -S comp "-I${INCLUDES}" ${DEFINES} --depfile "${EMBEDDED}.d"
          -o "${spv}" "${SOURCE}"
  OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${SOURCE} ${DEFINES}\n${output}")
endif()
execute_process(COMMAND "${SPIRV_OPT}" -O "${spv}" -o "${spv}" ERROR_VARIABLE output RESULT_VARIABLE result)
# spirv-opt may not support a shader's extension yet; such a shader is optimised only by the driver.
if(NOT result EQUAL 0 AND NOT REQUIRED)
  message(FATAL_ERROR "spirv-opt failed on ${SOURCE} ${DEFINES}\n${output}")
endif()
# glslang names its own output in the dependency file; the build asks for EMBEDDED.
file(READ "${EMBEDDED}.d" dependencies)
string(REPLACE "${spv}:" "${EMBEDDED}:" dependencies "${dependencies}")
file(WRITE "${EMBEDDED}.d" "${dependencies}")
file(READ "${spv}" hex HEX)
string(REGEX REPLACE "(..)(..)(..)(..)" "0x\\4\\3\\2\\1," words "${hex}")
string(REGEX REPLACE "((0x........,){12})" "\\1\n" words "${words}")
string(MAKE_C_IDENTIFIER "${NAME}" id)
file(WRITE "${EMBEDDED}" "// Generated: ${NAME} as SPIR-V words.
#include <cstddef>
#include <cstdint>

namespace halfstep::vk {

extern const std::uint32_t words_of_${id}[];
extern const std::size_t size_of_${id};
const std::uint32_t words_of_${id}[] = {
${words}
};
const std::size_t size_of_${id} = sizeof words_of_${id} / sizeof words_of_${id}[0];

}  // namespace halfstep::vk
")
file(REMOVE "${spv}")

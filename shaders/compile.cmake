# One shader variant: GLSL -> SPIR-V -> optimised SPIR-V -> an array of its words in EMBEDDED, a C++ file. KEPT is SPIR-V
# that is used as it is.
if(KEPT)
  set(spv "${KEPT}")
  file(WRITE "${EMBEDDED}.d" "${EMBEDDED}: ${KEPT}\n")
else()
  set(spv "${EMBEDDED}.spv")
  list(TRANSFORM INCLUDES PREPEND "-I")
  execute_process(
    COMMAND "${GLSLANG}" -V --target-env vulkan1.1 --quiet -S comp ${INCLUDES} ${DEFINES} --depfile "${EMBEDDED}.d"
            -o "${spv}" "${SOURCE}"
    OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${SOURCE} ${DEFINES}\n${output}")
  endif()
  # glslang names its own output in the dependency file; the build asks for EMBEDDED.
  file(READ "${EMBEDDED}.d" dependencies)
  string(REPLACE "${spv}:" "${EMBEDDED}:" dependencies "${dependencies}")
  file(WRITE "${EMBEDDED}.d" "${dependencies}")
  # Kernels with an expression are optimised when it is known (engine/vk/shader/specialize.h). Before that, every function
  # that a step may call would be inlined for every step.
  if(dependencies MATCHES "common/expression.glsl")
    set(passes --strip-debug)
  else()
    set(passes -O)
  endif()
  execute_process(COMMAND "${SPIRV_OPT}" ${passes} "${spv}" -o "${spv}" ERROR_VARIABLE output RESULT_VARIABLE result)
  # spirv-opt may not support a shader's extension yet; such a shader is optimised only by the driver.
  if(NOT result EQUAL 0 AND NOT REQUIRED)
    message(FATAL_ERROR "spirv-opt failed on ${SOURCE} ${DEFINES}\n${output}")
  endif()
endif()
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
if(NOT REQUIRED) # or prebuilt/make.sh may want it
  file(REMOVE "${spv}")
endif()

# One shader variant: GLSL -> SPIR-V -> optimised SPIR-V -> comma-separated words in INC.
set(spv "${INC}.spv")
execute_process(
  COMMAND "${GLSLANG}" -V --target-env vulkan1.1 --quiet -S comp "-I${INCLUDES}" ${DEFINES} --depfile "${INC}.d" -o "${spv}"
          "${SOURCE}"
  OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${SOURCE} ${DEFINES}\n${output}")
endif()
execute_process(COMMAND "${SPIRV_OPT}" -O "${spv}" -o "${spv}" ERROR_VARIABLE output RESULT_VARIABLE result)
# A shader of an extension that spirv-opt does not know yet is left to the driver's optimiser.
if(NOT result EQUAL 0 AND NOT REQUIRED)
  message(FATAL_ERROR "spirv-opt failed on ${SOURCE} ${DEFINES}\n${output}")
endif()
# glslang names its own output in the dependency file; the build asks for INC.
file(READ "${INC}.d" dependencies)
string(REPLACE "${spv}:" "${INC}:" dependencies "${dependencies}")
file(WRITE "${INC}.d" "${dependencies}")
file(READ "${spv}" hex HEX)
string(REGEX REPLACE "(..)(..)(..)(..)" "0x\\4\\3\\2\\1," words "${hex}")
string(REGEX REPLACE "((0x........,){12})" "\\1\n" words "${words}")
file(WRITE "${INC}" "${words}\n")
file(REMOVE "${spv}")

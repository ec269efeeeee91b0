# One shader variant: GLSL -> SPIR-V -> optimised SPIR-V, the file SPV.
list(TRANSFORM INCLUDES PREPEND "-I")
execute_process(
  COMMAND "${GLSLANG}" -V --target-env vulkan1.1 --quiet -S comp ${INCLUDES} ${DEFINES} --depfile "${SPV}.d" -o "${SPV}"
          "${SOURCE}"
  OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${SOURCE} ${DEFINES}\n${output}")
endif()
# Kernels with an expression are optimised when it is known (engine/vk/shader/specialize.h). Before that, every function
# that a step may call would be inlined for every step.
file(READ "${SPV}.d" dependencies)
if(dependencies MATCHES "common/expression.glsl")
  set(passes --strip-debug)
else()
  set(passes -O)
endif()
execute_process(COMMAND "${SPIRV_OPT}" ${passes} "${SPV}" -o "${SPV}" ERROR_VARIABLE output RESULT_VARIABLE result)
# spirv-opt may not support a shader's extension yet; such a shader is optimised only by the driver.
if(NOT result EQUAL 0 AND NOT REQUIRED)
  message(FATAL_ERROR "spirv-opt failed on ${SOURCE} ${DEFINES}\n${output}")
endif()
# Ids that follow from what they stand for, so that variants of a shader have long stretches in common when they are
# compressed. The program leaves modules alone whose instructions are newer than it is.
if(SPIRV_REMAP)
  get_filename_component(folder "${SPV}" DIRECTORY)
  execute_process(COMMAND "${SPIRV_REMAP}" --map all --input "${SPV}" --output "${folder}"
                  OUTPUT_QUIET ERROR_QUIET RESULT_VARIABLE result)
endif()

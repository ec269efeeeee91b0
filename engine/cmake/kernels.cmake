# halfstep_kernels(TARGET FILE.comp...): compiles an application's own kernels for the C++ target, which finds them in
# <FILE.spirv.h> as `halfstep_kernels::FILE()`: SPIR-V by storage type, as CustomDispatch::spirv and UpdateKernel::spirv
# take it. A kernel with the line `//! STORAGE = storages` is compiled for each storage type, with -DSTORAGE_f32=1 (or
# _f16, _packed, _bf16) defined; any other once, as of f32. It may include Halfstep's shaders: "common/precision.glsl".

set(HALFSTEP_KERNELS_CMAKE "${CMAKE_CURRENT_LIST_FILE}" CACHE INTERNAL "")
set(HALFSTEP_KERNELS_SHADERS "${HALFSTEP_SHADERS}" CACHE INTERNAL "")

# As a script: writes the header HEADER of the compiled kernel NAME for the storage types STORAGES.
if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  set(text "#pragma once\n#include <cstdint>\n#include <map>\n#include <string>\n#include <vector>\n")
  set(rows "")
  foreach(storage IN LISTS STORAGES)
    string(APPEND text "#include \"${NAME}.${storage}.h\"\n")
    string(APPEND rows "      {\"${storage}\", {std::begin(${NAME}_${storage}), std::end(${NAME}_${storage})}},\n")
  endforeach()
  string(APPEND text "\nnamespace halfstep_kernels {\n"
                     "inline std::map<std::string, std::vector<std::uint32_t>> ${NAME}() {\n  return {\n${rows}  };\n}\n"
                     "}  // namespace halfstep_kernels\n")
  file(WRITE "${HEADER}" "${text}")
  return()
endif()

function(halfstep_kernels target)
  find_program(GLSLANG_VALIDATOR glslangValidator REQUIRED)
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}.kernels")
  file(MAKE_DIRECTORY "${folder}")
  foreach(source IN LISTS ARGN)
    get_filename_component(source "${source}" ABSOLUTE)
    get_filename_component(name "${source}" NAME_WE)
    get_filename_component(beside "${source}" DIRECTORY)
    file(STRINGS "${source}" axis REGEX "^//! STORAGE = storages")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
    set(storages f32)
    if(axis)
      set(storages f32 f16 packed bf16)
    endif()
    set(headers "")
    foreach(storage IN LISTS storages)
      set(header "${folder}/${name}.${storage}.h")
      add_custom_command(
        OUTPUT "${header}"
        COMMAND "${GLSLANG_VALIDATOR}" -V --target-env vulkan1.1 --quiet -S comp "-I${beside}"
                "-I${HALFSTEP_KERNELS_SHADERS}" "-DSTORAGE_${storage}=1" --depfile "${header}.d" --vn
                "${name}_${storage}" -o "${header}" "${source}"
        DEPENDS "${source}"
        DEPFILE "${header}.d"
        COMMENT "Kernel ${name}.${storage}"
        VERBATIM)
      list(APPEND headers "${header}")
    endforeach()
    set(header "${folder}/${name}.spirv.h")
    add_custom_command(
      OUTPUT "${header}"
      COMMAND "${CMAKE_COMMAND}" "-DNAME=${name}" "-DSTORAGES=${storages}" "-DHEADER=${header}" -P
              "${HALFSTEP_KERNELS_CMAKE}"
      DEPENDS "${HALFSTEP_KERNELS_CMAKE}"
      VERBATIM)
    target_sources(${target} PRIVATE ${headers} "${header}")
  endforeach()
  target_include_directories(${target} SYSTEM PRIVATE "${folder}")
endfunction()

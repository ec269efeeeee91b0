# What `cmake --install` puts in place: headers, libraries, a CMake package and a pkg-config file.

install(TARGETS halfstep halfstep_models halfstep_c_shared halfstep_c_static EXPORT halfstep
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
if(TARGET halfstep_mpi)
  install(TARGETS halfstep_mpi EXPORT halfstep_mpi ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/engine/include/halfstep" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.h")
# A folder of their own in the include path, so that "models/lenet5.h" is found there as it is in the source tree.
install(DIRECTORY "${PROJECT_SOURCE_DIR}/models" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/halfstep_models"
        FILES_MATCHING PATTERN "*.h")
install(FILES "${PROJECT_SOURCE_DIR}/engine/bindings/c/halfstep.h" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
# What the kernels of an application's own operators and optimizers include.
foreach(folder IN ITEMS common optim step storage)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/shaders/${folder}" DESTINATION "${CMAKE_INSTALL_DATADIR}/halfstep/shaders"
          FILES_MATCHING PATTERN "*.glsl")
endforeach()

include(CMakePackageConfigHelpers)
set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/halfstep")
install(EXPORT halfstep NAMESPACE halfstep:: DESTINATION "${package_folder}" FILE halfstepTargets.cmake)
if(TARGET halfstep_mpi) # a component of its own, so that only who asks for it needs MPI
  install(EXPORT halfstep_mpi NAMESPACE halfstep:: DESTINATION "${package_folder}" FILE halfstepMpiTargets.cmake)
endif()
set(shaders_folder "${CMAKE_INSTALL_DATADIR}/halfstep/shaders")
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/halfstepConfig.cmake.in" halfstepConfig.cmake
                              INSTALL_DESTINATION "${package_folder}" PATH_VARS shaders_folder)
# Until 1.0 a minor version may change the interface.
write_basic_package_version_file(halfstepConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/halfstepConfig.cmake"
              "${CMAKE_CURRENT_BINARY_DIR}/halfstepConfigVersion.cmake" "${CMAKE_CURRENT_LIST_DIR}/FindUtf8proc.cmake"
              "${CMAKE_CURRENT_LIST_DIR}/kernels.cmake"
        DESTINATION "${package_folder}")

# pkg-config finds the prefix from where its file lies, so that the tree can be moved. Folders that were chosen as absolute
# paths are named as they are.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(HALFSTEP_PC_PREFIX "${CMAKE_INSTALL_PREFIX}")
else()
  file(RELATIVE_PATH to_prefix "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
  set(HALFSTEP_PC_PREFIX "\${pcfiledir}/${to_prefix}")
endif()
foreach(folder IN ITEMS LIBDIR INCLUDEDIR)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${folder}}")
    set(HALFSTEP_PC_${folder} "${CMAKE_INSTALL_${folder}}")
  else()
    set(HALFSTEP_PC_${folder} "\${prefix}/${CMAKE_INSTALL_${folder}}")
  endif()
endforeach()
if(BUILD_SHARED_LIBS)
  set(HALFSTEP_PC_PRIVATE ".private")
else()
  set(HALFSTEP_PC_LIBS "-pthread -ldl")
  if(HALFSTEP_SPIRV_TOOLS)
    string(PREPEND HALFSTEP_PC_LIBS "-lSPIRV-Tools ")
  endif()
endif()
if(HALFSTEP_IMAGES)
  set(HALFSTEP_PC_IMAGES "libpng libjpeg ")
endif()
foreach(name IN ITEMS halfstep halfstep-c)
  configure_file("${CMAKE_CURRENT_LIST_DIR}/${name}.pc.in" ${name}.pc @ONLY)
endforeach()
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/halfstep.pc" "${CMAKE_CURRENT_BINARY_DIR}/halfstep-c.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

# zstd's own package is not in every distribution: the target Zstd::Zstd.
find_path(ZSTD_INCLUDE zstd.h)
find_library(ZSTD_LIBRARY zstd)
mark_as_advanced(ZSTD_INCLUDE ZSTD_LIBRARY)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Zstd REQUIRED_VARS ZSTD_LIBRARY ZSTD_INCLUDE)
if(Zstd_FOUND AND NOT TARGET Zstd::Zstd)
  add_library(Zstd::Zstd UNKNOWN IMPORTED)
  set_target_properties(Zstd::Zstd PROPERTIES IMPORTED_LOCATION "${ZSTD_LIBRARY}"
                                                      INTERFACE_INCLUDE_DIRECTORIES "${ZSTD_INCLUDE}")
endif()

# halfstep_warnings(TARGET): the project's warnings, for its own code only.
function(halfstep_warnings target)
  if(MSVC)
    target_compile_options(${target} PRIVATE /W4 $<$<BOOL:${HALFSTEP_WERROR}>:/WX>)
  else()
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
      -Woverloaded-virtual -Wimplicit-fallthrough $<$<BOOL:${HALFSTEP_WERROR}>:-Werror>>)
  endif()
  # GCC 12 sees uninitialised members inside std::regex and std::function where sanitizers are on, and copies that overlap
  # in the assignment of a literal to a std::string (its bug 105651).
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized -Wno-restrict)
  endif()
endfunction()

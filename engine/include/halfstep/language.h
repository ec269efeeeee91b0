#pragma once

// Included first by every public header, so that an older language ends in this one message.
#if defined(_MSVC_LANG) ? _MSVC_LANG <= 201703L : __cplusplus <= 201703L
#error "Halfstep needs C++20: compile with -std=c++20 (MSVC: /std:c++20)"
// Compilers go on after #error, but not without a file.
#include <halfstep needs C++20>
#endif

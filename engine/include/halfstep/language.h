#pragma once

// Included first by every public header, so that a compiler with an older C++ standard reports only this error.
#if defined(_MSVC_LANG) ? _MSVC_LANG <= 201703L : __cplusplus <= 201703L
#error "Halfstep needs C++20: compile with -std=c++20 (MSVC: /std:c++20)"
// Compilers continue after #error, but not after a missing #include.
#include <halfstep needs C++20>
#endif

// HALFSTEP_API marks the symbols that a shared library exports. All others are hidden.
#if defined(_WIN32) && defined(HALFSTEP_SHARED)
#if defined(HALFSTEP_BUILDING)
#define HALFSTEP_API __declspec(dllexport)
#else
#define HALFSTEP_API __declspec(dllimport)
#endif
#elif defined(__GNUC__)
#define HALFSTEP_API __attribute__((visibility("default")))
#else
#define HALFSTEP_API
#endif

#pragma once

// Included first by every public header, so that an older language ends in this one message.
#if defined(_MSVC_LANG) ? _MSVC_LANG <= 201703L : __cplusplus <= 201703L
#error "Halfstep needs C++20: compile with -std=c++20 (MSVC: /std:c++20)"
// Compilers go on after #error, but not without a file.
#include <halfstep needs C++20>
#endif

// HALFSTEP_API: what a shared library shows. Everything else is hidden.
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

#pragma once

#include <halfstep/error.h>

#include <halfstep.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <functional>
#include <new>
#include <span>
#include <string>
#include <string_view>

/// What every function of the C interface has in common: exceptions become statuses and texts, options are read up to
/// the size that their program knew, texts are written into the caller's buffers.
namespace halfstep::c {

/// A status and its text, in memory of its own, so that to keep one never fails. May be thrown.
struct Failure {
  hs_status status = HS_OK;
  std::array<char, 2048> text{};
};

/// The thread's last failure.
Failure& last_failure() noexcept;
/// Makes this the thread's last failure. A text that is too long is cut.
hs_status failed(hs_status status, std::string_view text) noexcept;
/// Does so with the exception that is being handled.
hs_status failed_by_exception() noexcept;

/// Calls `body`; the status of what it throws, if it does.
template <typename Body>
hs_status guarded(Body&& body) noexcept {
  try {
    std::invoke(std::forward<Body>(body));
    return HS_OK;
  } catch (...) {
    return failed_by_exception();
  }
}

/// Sets `result` to what `make` returns, a new object, or to null.
template <typename Handle, typename Make>
hs_status created(Handle** result, Make&& make) noexcept {
  if (result != nullptr) *result = nullptr;
  return guarded([&] {
    if (result == nullptr) fail("halfstep", "expected a pointer for the result, got NULL");
    *result = std::invoke(std::forward<Make>(make));
  });
}

/// What `pointer` refers to. Throws Error if it is null.
template <typename T>
T& given(T* pointer, const char* what) {
  if (pointer == nullptr) fail("halfstep", std::string("expected ") + what + ", got NULL");
  return *pointer;
}

/// The text, which must be given; or, of text_or, may be missing.
std::string text(const char* given, const char* what);
std::string text_or(const char* given, std::string_view otherwise);

/// The size in the first member of a struct. Throws Error if it is none that such a struct can have, in any version: a
/// member was not set, or holds what was in memory, and the struct must not be read or written that far.
std::size_t checked_size(std::size_t size, std::size_t alignment, const char* what);

/// Options of a program that was built with this or another version: members that it did not know are zero. Throws
/// Error if the size is no size of such options, or if a member that this version does not know is set.
template <typename Options>
Options read(const Options* given, const char* what) {
  constexpr const char* newer = "got an option of a newer version of the library than this";
  Options known{};
  if (given == nullptr) return known;
  const std::size_t size = checked_size(given->size, alignof(Options), what);
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  std::memcpy(static_cast<void*>(&known), bytes, std::min(size, sizeof known));
  if (size > sizeof known &&
      std::any_of(bytes + sizeof known, bytes + size, [](unsigned char byte) { return byte != 0; })) {
    fail(ErrorCode::unsupported, what, newer);
  }
  if constexpr (requires { known.reserved; }) {
    if (known.reserved != 0) fail(ErrorCode::unsupported, what, newer);
  }
  return known;
}

/// Writes results up to the size that the program knew. Throws Error as read() does.
template <typename Result>
void write(Result result, Result* room, const char* what) {
  const std::size_t size = checked_size(given(room, what).size, alignof(Result), what);
  result.size = size;
  std::memcpy(static_cast<void*>(room), &result, std::min(size, sizeof result));
}

/// Writes as many whole characters of `text` as there is room for, and a zero.
void write_beginning(std::string_view text, std::span<char> room) noexcept;

/// Writes `result` and a zero to `buffer`, and the bytes that takes to `needed`, as far as they are given.
void write_text(std::string_view result, char* buffer, std::size_t capacity, std::size_t* needed);

/// The number that a member of options stands for: `otherwise` if it is 0, 0 if it is HS_ZERO.
template <typename Number>
Number number_or(Number given, Number otherwise) {
  if (given == 0) return otherwise;
  if constexpr (std::is_floating_point_v<Number>) return given == static_cast<Number>(HS_ZERO) ? 0 : given;
  return given;
}
/// Whether a choice is on. Throws Error if it is none.
bool chosen(hs_choice choice, bool otherwise);

}  // namespace halfstep::c

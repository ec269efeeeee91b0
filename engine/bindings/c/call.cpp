#include "c/call.h"

#include <halfstep/version.h>

namespace halfstep::c {
namespace {

hs_status status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::bad_argument:
      return HS_BAD_ARGUMENT;
    case ErrorCode::bad_file:
      return HS_BAD_FILE;
    case ErrorCode::unsupported:
      return HS_UNSUPPORTED;
    case ErrorCode::out_of_memory:
      return HS_OUT_OF_MEMORY;
    case ErrorCode::device_lost:
      return HS_DEVICE_LOST;
    case ErrorCode::numerics:
      return HS_NUMERICS;
    case ErrorCode::system:
      return HS_SYSTEM;
    case ErrorCode::cancelled:
      return HS_CANCELLED;
  }
  return HS_INTERNAL;
}

}  // namespace

Failure& last_failure() noexcept {
  // Without a destructor, which would keep the library in memory until the thread ends.
  static thread_local Failure failure;
  static_assert(std::is_trivially_destructible_v<Failure>);
  return failure;
}

hs_status failed(hs_status status, std::string_view text) noexcept {
  Failure& failure = last_failure();
  write_beginning(text, failure.text);
  failure.status = status;
  return status;
}

hs_status failed_by_exception() noexcept {
  try {
    throw;
  } catch (const Failure& failure) {
    return failed(failure.status, failure.text.data());
  } catch (const Error& error) {
    return failed(status_of(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return failed(HS_OUT_OF_MEMORY, "[halfstep] the host is out of memory");
  } catch (const std::exception& error) {
    return failed(HS_INTERNAL, error.what());
  } catch (...) {
    return failed(HS_INTERNAL, "[halfstep] an exception of an unknown type");
  }
}

std::size_t checked_size(std::size_t size, std::size_t alignment, const char* what) {
  constexpr std::size_t most = std::size_t{1} << 14;  // many times the largest struct
  if (size < sizeof(std::size_t) || size > most || size % alignment != 0) {
    fail(what, "expected the size of the struct in its first member, got " + std::to_string(size), "set it to sizeof");
  }
  return size;
}

std::string text(const char* given, const char* what) {
  if (given == nullptr) fail("halfstep", std::string("expected ") + what + ", got NULL");
  return given;
}

std::string text_or(const char* given, std::string_view otherwise) {
  return given == nullptr ? std::string(otherwise) : given;
}

void write_beginning(std::string_view text, std::span<char> room) noexcept {
  std::size_t length = std::min(text.size(), room.size() - 1);
  const auto continues = [&](std::size_t at) { return (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80; };
  while (length < text.size() && length > 0 && continues(length)) length--;  // no part of a character
  std::memcpy(room.data(), text.data(), length);
  room[length] = 0;
}

void write_text(std::string_view result, char* buffer, std::size_t capacity, std::size_t* needed) {
  const std::size_t size = result.size() + 1;
  if (needed != nullptr) *needed = size;
  if (buffer == nullptr) return;
  if (capacity < size) {
    fail("halfstep",
         "expected a buffer of " + std::to_string(size) + " bytes for a text, got " + std::to_string(capacity));
  }
  std::memcpy(buffer, result.data(), result.size());
  buffer[result.size()] = 0;
}

bool chosen(hs_choice choice, bool otherwise) {
  if (choice != HS_DEFAULT && choice != HS_ON && choice != HS_OFF) {
    fail("halfstep", "expected HS_DEFAULT, HS_ON or HS_OFF, got " + std::to_string(static_cast<int>(choice)));
  }
  return choice == HS_DEFAULT ? otherwise : choice == HS_ON;
}

}  // namespace halfstep::c

const char* hs_error_text(void) {
  return halfstep::c::last_failure().text.data();
}

const char* hs_version(void) {
  return halfstep::version().data();
}

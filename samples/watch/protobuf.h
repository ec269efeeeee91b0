#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace samples {

/// A message in the wire format of protocol buffers, built field by field.
/// https://protobuf.dev/programming-guides/encoding
class Message {
 public:
  Message& integer(std::uint32_t field, std::uint64_t value) {
    varint(field << 3);
    varint(value);
    return *this;
  }
  Message& number(std::uint32_t field, double value) {
    varint(field << 3 | 1);
    fixed(std::bit_cast<std::uint64_t>(value), 8);
    return *this;
  }
  Message& single(std::uint32_t field, float value) {
    varint(field << 3 | 5);
    fixed(std::bit_cast<std::uint32_t>(value), 4);
    return *this;
  }
  Message& text(std::uint32_t field, std::string_view value) {
    varint(field << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(std::uint32_t field, const Message& value) { return text(field, value.bytes_); }
  /// A packed field of doubles.
  Message& numbers(std::uint32_t field, const std::vector<double>& values) {
    varint(field << 3 | 2);
    varint(8 * values.size());
    for (const double value : values) fixed(std::bit_cast<std::uint64_t>(value), 8);
    return *this;
  }

  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_ += static_cast<char>((value & 127) | 128);
    bytes_ += static_cast<char>(value);
  }
  void fixed(std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i) bytes_ += static_cast<char>(value >> 8 * i & 255);
  }

  std::string bytes_;
};

}  // namespace samples

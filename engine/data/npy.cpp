#include <halfstep/data.h>
#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/files.h"

namespace halfstep {
namespace {

namespace fs = std::filesystem;

/// More than any header needs.
constexpr std::uint64_t most_header_bytes = 1 << 16;

/// What a header says.
struct Header {
  std::string type;
  bool fortran_order = false;
  Shape shape;
};

/// Reads the header's text, a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
class HeaderText {
 public:
  HeaderText(const fs::path& path, std::string_view text) : path_(path), text_(text) {}

  Header read() {
    Header header;
    bool has_type = false;
    bool has_order = false;
    bool has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr" && !std::exchange(has_type, true)) {
        header.type = string();
      } else if (key == "fortran_order" && !std::exchange(has_order, true)) {
        header.fortran_order = truth();
      } else if (key == "shape" && !std::exchange(has_shape, true)) {
        header.shape = tuple();
      } else {
        refuse(fmt::format("expected 'descr', 'fortran_order' and 'shape' once each, got '{}'", key));
      }
      if (accept(',')) continue;
      expect('}');
      break;
    }
    skip_spaces();
    if (!text_.empty() || !has_type || !has_order || !has_shape) {
      refuse("expected 'descr', 'fortran_order' and 'shape' and no more in its header");
    }
    return header;
  }

 private:
  [[noreturn]] void refuse(std::string_view message) const {
    fail(ErrorCode::bad_file, "npy", fmt::format("{}: {}", path_.string(), message));
  }

  void skip_spaces() {
    const std::size_t start = text_.find_first_not_of(" \t\n");
    text_.remove_prefix(start == std::string_view::npos ? text_.size() : start);
  }

  bool accept(char wanted) {
    skip_spaces();
    if (text_.empty() || text_.front() != wanted) return false;
    text_.remove_prefix(1);
    return true;
  }

  void expect(char wanted) {
    if (!accept(wanted)) refuse(fmt::format("expected '{}' in its header, which is no dictionary of an array", wanted));
  }

  std::string string() {
    skip_spaces();
    const char quote = text_.starts_with('"') ? '"' : '\'';
    expect(quote);
    const std::size_t end = text_.find(quote);
    const std::string_view found = text_.substr(0, end);
    const bool plain = found.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_<>|=") ==
                       std::string_view::npos;
    if (end == std::string_view::npos || !plain) refuse("expected a name in quotes in its header");
    text_.remove_prefix(end + 1);
    return std::string(found);
  }

  bool truth() {
    skip_spaces();
    for (const std::string_view word : {"False", "True"}) {
      if (!text_.starts_with(word)) continue;
      text_.remove_prefix(word.size());
      return word == "True";
    }
    refuse("expected True or False for 'fortran_order'");
  }

  Shape tuple() {
    Shape shape;
    expect('(');
    while (!accept(')')) {
      skip_spaces();
      std::int64_t extent = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), extent);
      if (error != std::errc() || extent < 0) refuse("expected extents from 0 on in 'shape'");
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      shape.push_back(extent);
      if (accept(',')) continue;
      expect(')');
      break;
    }
    return shape;
  }

  const fs::path& path_;
  std::string_view text_;
};

/// What becomes of an array's elements.
struct Type {
  std::string_view name;
  std::size_t bytes;
  ElementType type;
  bool is_signed = false;  ///< converted, if no number is negative
};

constexpr std::array<Type, 7> types{{{"|u1", 1, ElementType::u8},
                                     {"|b1", 1, ElementType::u8},
                                     {"<u2", 2, ElementType::u16},
                                     {"<u4", 4, ElementType::u32},
                                     {"<f4", 4, ElementType::f32},
                                     {"<i4", 4, ElementType::u32, true},
                                     {"<i8", 8, ElementType::u32, true}}};

/// A file's header and what follows it.
struct Array {
  Header header;
  std::span<const std::byte> data;
};

std::uint64_t little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) value |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  return value;
}

Array parse(const fs::path& path, std::span<const std::byte> file) {
  constexpr std::string_view magic = "\x93NUMPY";
  const auto refuse = [&](std::string_view message) {
    fail(ErrorCode::bad_file, "npy", fmt::format("{}: {}", path.string(), message));
  };
  const bool named = file.size() >= 10 && std::memcmp(file.data(), magic.data(), magic.size()) == 0;
  if (!named) refuse("expected an array that NumPy saved, which starts with 93 4e 55 4d 50 59");
  const auto major = std::to_integer<int>(file[6]);
  if (major < 1 || major > 3) refuse(fmt::format("expected version 1, 2 or 3 of the format, got {}", major));
  const std::size_t size_bytes = major == 1 ? 2 : 4;
  if (file.size() < 8 + size_bytes) refuse("expected the size of its header, got the end of the file");
  const std::uint64_t size = little_endian(file.subspan(8, size_bytes));
  const std::size_t start = 8 + size_bytes;
  if (size > most_header_bytes || size > file.size() - start) {
    refuse(fmt::format("expected a header of at most {} bytes, got {}",
                       std::min<std::uint64_t>(most_header_bytes, file.size() - start), size));
  }
  const auto* text = reinterpret_cast<const char*>(file.data() + start);  // NOLINT: bytes of a file
  HeaderText header(path, {text, static_cast<std::size_t>(size)});
  return {header.read(), file.subspan(start + static_cast<std::size_t>(size))};
}

template <typename From>
std::vector<std::uint32_t> converted(const fs::path& path, std::span<const std::byte> data) {
  std::vector<std::uint32_t> values(data.size() / sizeof(From));
  for (std::size_t i = 0; i < values.size(); ++i) {
    From value;
    std::memcpy(&value, data.data() + i * sizeof(From), sizeof(From));
    values[i] = static_cast<std::uint32_t>(value);
    if (value >= 0 && std::uint64_t{values[i]} == static_cast<std::uint64_t>(value)) continue;
    fail(ErrorCode::bad_file, "npy",
         fmt::format("{}: expected integers from 0 to 2^32 - 1, got {} in element {}", path.string(), value, i));
  }
  return values;
}

/// The row of `types` for the header; throws Error where there is none, or the data is not as large as it says.
const Type& check(const fs::path& path, const Array& array) {
  const Header& header = array.header;
  const auto refuse = [&](std::string_view message, std::string_view hint = {}) {
    fail(ErrorCode::bad_file, "npy", fmt::format("{}: {}", path.string(), message), hint);
  };
  const Type* type = std::ranges::find(types, header.type, &Type::name);
  if (type == types.end()) {
    refuse(fmt::format("expected elements of |u1, |b1, <u2, <u4, <i4, <i8 or <f4, got {}", header.type),
           "astype() converts them");
  }
  if (header.fortran_order) refuse("expected rows one after the other, got Fortran order", "ascontiguousarray()");
  if (header.shape.empty()) refuse("expected an array with an axis of samples, got a scalar");
  for (std::size_t axis = 1; axis < header.shape.size(); ++axis) {
    if (header.shape[axis] == 0) refuse(fmt::format("expected positive extents, got {}", to_string(header.shape)));
  }
  const std::uint64_t total = array.data.size() / type->bytes;
  // By division, since the product of a file's numbers may overflow.
  std::uint64_t rest = total;
  bool exact = array.data.size() % type->bytes == 0;
  for (const std::int64_t extent : header.shape) {
    if (extent == 0) {
      exact = exact && total == 0;
      rest = 1;
      break;
    }
    exact = exact && rest % static_cast<std::uint64_t>(extent) == 0 && rest > 0;
    rest /= static_cast<std::uint64_t>(extent);
  }
  if (!exact || rest != 1) {
    refuse(fmt::format("expected the elements of {} that its header says, got {} bytes", to_string(header.shape),
                       array.data.size()));
  }
  return *type;
}

}  // namespace

Field read_npy(const fs::path& file, std::string name, std::uint32_t bound) {
  const process::MappedFile mapped = process::map_file(file);
  const Array array = parse(file, mapped.bytes);
  const Type& type = check(file, array);
  Shape shape(array.header.shape.begin() + 1, array.header.shape.end());
  if (type.is_signed) {
    auto values =
        type.bytes == 8 ? converted<std::int64_t>(file, array.data) : converted<std::int32_t>(file, array.data);
    return Field::own(std::move(name), std::move(shape), std::move(values), bound);
  }
  const auto address = reinterpret_cast<std::uintptr_t>(array.data.data());  // NOLINT: to look at its lowest bits
  Field field{std::move(name), type.type, std::move(shape), bound, array.data, mapped.owner};
  if (address % type.bytes == 0) return field;
  // Files that other programs wrote may begin their elements anywhere.
  auto copy = std::make_shared<const std::vector<std::byte>>(array.data.begin(), array.data.end());
  field.data = *copy;
  field.owner = std::move(copy);
  return field;
}

}  // namespace halfstep

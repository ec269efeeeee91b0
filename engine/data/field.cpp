#include <halfstep/data.h>
#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>

namespace halfstep {
namespace {

[[noreturn]] void refuse(const Field& field, const std::string& message) {
  fail("data", fmt::format("field '{}': {}", field.name, message));
}

template <Element T>
void check_bound(const Field& field) {
  const std::span values(reinterpret_cast<const T*>(field.data.data()),  // NOLINT: aligned, which was checked
                         field.data.size() / sizeof(T));
  const auto too_large = [&](T value) { return value >= field.bound; };
  // The largest first: a compiler can vectorise that.
  T largest = 0;
  for (const T value : values) largest = std::max(largest, value);
  if (values.empty() || !too_large(largest)) return;
  const auto bad = std::ranges::find_if(values, too_large);
  refuse(field, fmt::format("expected values below {}, got {} in element {}", field.bound, *bad, bad - values.begin()));
}

void check_memory(const Field& field) {
  if (field.name.empty()) refuse(field, "expected a name, got an empty one");
  if (std::ranges::any_of(field.shape, [](std::int64_t extent) { return extent < 1; })) {
    refuse(field, fmt::format("expected positive extents of a sample, got {}", to_string(field.shape)));
  }
  const auto size = static_cast<std::size_t>(bytes(field.type));
  const auto address = reinterpret_cast<std::uintptr_t>(field.data.data());  // NOLINT: to look at its lowest bits
  if (field.data.size() % size != 0 || address % size != 0) {
    refuse(field, fmt::format("expected whole elements of {}, aligned to {} bytes, got {} bytes{}", name(field.type),
                              size, field.data.size(), address % size != 0 ? " that are not aligned" : ""));
  }
}

}  // namespace

std::string_view name(ElementType type) {
  constexpr std::string_view names[] = {"u8", "u16", "u32", "f32"};
  return names[static_cast<std::size_t>(type)];
}

std::int64_t bytes(ElementType type) {
  constexpr std::int64_t sizes[] = {1, 2, 4, 4};
  return sizes[static_cast<std::size_t>(type)];
}

std::int64_t Field::count() const {
  check_memory(*this);
  // Compared by division, since products of the caller's numbers may overflow.
  const std::int64_t total = static_cast<std::int64_t>(data.size()) / bytes(type);
  const std::int64_t size = elements(shape);
  if (first < 0 || first > total || stride < 0) {
    refuse(*this, fmt::format("expected a first element within its {} and a stride from 0 on, got {} and {}", total,
                              first, stride));
  }
  const std::int64_t rest = total - first;
  if (stride > 0) return rest < size ? 0 : (rest - size) / stride + 1;
  if (rest % size != 0) {
    refuse(*this, fmt::format("expected whole samples of {}, got {} elements", to_string(shape), rest));
  }
  return rest / size;
}

void Field::check(std::int64_t count) const {
  const std::int64_t own = this->count();
  // The text may end between two windows, or have room for more.
  if (own < count || (own > count && stride == 0)) {
    refuse(*this, fmt::format("expected {} samples of {}, got {}", count, to_string(shape), own));
  }
  if (bound == 0) return;
  if (type == ElementType::f32) refuse(*this, "expected a bound of integers only, got one of f32");
  if (type == ElementType::u8) check_bound<std::uint8_t>(*this);
  if (type == ElementType::u16) check_bound<std::uint16_t>(*this);
  if (type == ElementType::u32) check_bound<std::uint32_t>(*this);
}

void Source::check() const {
  const auto refuse = [&](std::string_view message) { fail("source", fmt::format("'{}': {}", name, message)); };
  if (!fill) refuse("expected a function that fills batches, got none");
  if (count < 0) refuse(fmt::format("expected a count of 0 or more, got {}", count));
  if (fields.empty()) refuse("expected at least one field, got none");
  std::set<std::string_view> names;
  for (const Field& field : fields) {
    check_memory(field);
    if (!names.insert(field.name).second) refuse(fmt::format("expected one field '{}', got two", field.name));
    constexpr std::int64_t most = std::int64_t{1} << 32;
    if (elements(field.shape) > most) {
      refuse(fmt::format("expected samples of at most {} elements, got {}", most, to_string(field.shape)));
    }
    if (field.data.empty() && (field.bound == 0 || field.type != ElementType::f32)) continue;
    refuse(fmt::format("expected field '{}' without data, and a bound of integers only", field.name));
  }
}

std::span<std::byte> SourceBatch::room_for(std::size_t field, ElementType type) const {
  if (field >= fields.size() || fields[field].type != type) {
    fail("source", fmt::format("expected field {} to be of {}, got {}", field, halfstep::name(type),
                               field < fields.size() ? halfstep::name(fields[field].type) : "none"));
  }
  return room[field];
}

}  // namespace halfstep

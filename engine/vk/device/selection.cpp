#include "vk/device/selection.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

namespace halfstep::vk {
namespace {

constexpr std::string_view hint = "bin/devices lists them";

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

/// The preference of a device's type; lower is better.
std::size_t rank(const DeviceInfo& device) {
  constexpr std::array<std::string_view, 4> order{"discrete", "integrated", "virtual", "cpu"};
  return static_cast<std::size_t>(std::find(order.begin(), order.end(), device.type) - order.begin());
}

std::optional<std::size_t> as_index(std::string_view selector, std::size_t count) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(selector.data(), selector.data() + selector.size(), index);
  const bool number = error == std::errc() && end == selector.data() + selector.size();
  return number && index < count ? std::optional(index) : std::nullopt;
}

/// A rank or a count may be an index beyond the last device, and its digit part of any name. More digits are a model's.
bool is_index_only(std::string_view selector) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !selector.empty() && selector.size() <= 2 && std::ranges::all_of(selector, is_digit);
}

/// The devices that the selector matches, best first; ties in the order of the list.
std::vector<std::size_t> matches(std::span<const DeviceInfo> devices, std::string_view selector) {
  if (const auto index = as_index(selector, devices.size())) return {*index};
  if (is_index_only(selector)) return {};
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (lower(devices[i].name).find(lower(selector)) != std::string::npos) found.push_back(i);
  }
  std::stable_sort(found.begin(), found.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(!devices[a].usable, rank(devices[a])) < std::pair(!devices[b].usable, rank(devices[b]));
  });
  return found;
}

std::string listing(std::span<const DeviceInfo> devices) {
  std::string text;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    text += fmt::format("{}{}: {}", i == 0 ? "" : ", ", i, devices[i].name);
  }
  return text;
}

}  // namespace

std::size_t select_device(std::span<const DeviceInfo> devices, std::string_view selector) {
  if (devices.empty()) {
    fail(ErrorCode::system, "device", "expected a Vulkan device, got none",
         "install a driver, on Debian or Ubuntu: apt install mesa-vulkan-drivers");
  }
  const std::vector<std::size_t> found = matches(devices, selector);
  if (found.empty()) {
    const std::string index = is_index_only(selector) ? fmt::format("an index below {}, ", devices.size()) : "";
    fail("device", fmt::format("expected {}one of {}, got {}", index, listing(devices), selector), hint);
  }
  const DeviceInfo& best = devices[found.front()];
  if (!best.usable) {
    fail(ErrorCode::unsupported, "device",
         fmt::format("expected a usable device, got {}: {}, but {}", best.index, best.name, best.reason), hint);
  }
  return found.front();
}

}  // namespace halfstep::vk

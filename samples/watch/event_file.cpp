#include "samples/watch/event_file.h"

#include <halfstep/halfstep.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>

#include "samples/watch/write_error.h"

namespace samples {
namespace {

constexpr std::array<std::uint32_t, 256> crc_table = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82F63B78U : 0U);
    table[i] = crc;
  }
  return table;
}();

std::string little_endian(std::uint64_t value, int size) {
  std::string bytes;
  for (int i = 0; i < size; ++i) bytes += static_cast<char>(value >> 8 * i & 255);
  return bytes;
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

std::uint32_t masked_crc(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char c : bytes) crc = crc >> 8 ^ crc_table[(crc ^ static_cast<unsigned char>(c)) & 255];
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xA282EAD8U;
}

EventFile::EventFile(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  // The reader sorts files by name: by their time, and those of one second by the number after it.
  for (int number = 0; !file_; ++number) {
    path_ = folder / fmt::format("events.out.tfevents.{:010.0f}.{:03}.halfstep", now(), number);
    errno = 0;
    file_.reset(std::fopen(path_.string().c_str(), "wbx"));
    if (!file_ && errno != EEXIST) fail_to("open", path_);
  }
  add(Message().text(3, "brain.Event:2"));
}

void EventFile::add(const Message& event) {
  Message timed;
  timed.number(1, now());
  record(timed.bytes() + event.bytes());
}

void EventFile::record(std::string_view bytes) {
  const std::string length = little_endian(bytes.size(), 8);
  std::string all = length + little_endian(masked_crc(length), 4);
  all += bytes;
  all += little_endian(masked_crc(bytes), 4);
  errno = 0;
  const bool written = std::fwrite(all.data(), 1, all.size(), file_.get()) == all.size();
  if (std::fflush(file_.get()) != 0 || !written) fail_to("write to", path_);
}

}  // namespace samples

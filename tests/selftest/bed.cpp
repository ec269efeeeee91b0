#include "selftest/bed.h"

#include <halfstep/error.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>

#include "harness/device.h"
#include "selftest/planted.h"
#include "vk/command/descriptors.h"
#include "vk/command/memory.h"
#include "vk/command/recorder.h"
#include "vk/command/timeline.h"
#include "vk/command/transfer.h"
#include "vk/shader/packs.h"

namespace halfstep::vk {
std::span<const ShaderPack* const> selftest_packs();  // as the build declares it
}

namespace halfstep::selftest {
namespace {

constexpr std::uint32_t guard = 0xFFFFFFFFU;
constexpr std::size_t guard_words = 256;  // of 256 bytes or more: where a binding may begin on every device

std::string& launched() {
  static std::string name;
  return name;
}

/// A buffer between guards.
class Guarded {
 public:
  Guarded(vk::Context& context, const Words& content)
      : context_(context),
        words_(content.size()),
        buffer_(context, (content.size() + 2 * guard_words) * 4, vk::Memory::device, "selftest") {
    Words all(content.size() + 2 * guard_words, guard);
    std::ranges::copy(content, all.begin() + guard_words);
    vk::upload(context_, buffer_, 0, std::as_bytes(std::span(all)));
  }

  vk::BufferRange range() const { return {buffer_.handle(), guard_words * 4, words_ * 4, "selftest"}; }
  std::uint64_t address() const { return buffer_.address() + guard_words * 4; }

  Words read(bool& intact) const {
    Words all(words_ + 2 * guard_words);
    vk::download(context_, buffer_, 0, std::as_writable_bytes(std::span(all)));
    for (std::size_t i = 0; i < guard_words; ++i)
      intact = intact && all[i] == guard && all[guard_words + words_ + i] == guard;
    return {all.begin() + guard_words, all.end() - guard_words};
  }

 private:
  vk::Context& context_;
  std::size_t words_;
  vk::Buffer buffer_;
};

plan::Dispatch dispatch_of(const Launch& launch) {
  plan::Dispatch dispatch;
  dispatch.label = "selftest/" + launch.kernel;
  dispatch.shader = "selftest/" + launch.kernel;
  dispatch.spirv =
      std::make_shared<const Words>(kernel_words(launch.interface.empty() ? launch.kernel : launch.interface));
  dispatch.constants = launch.constants;
  dispatch.push = launch.push;
  for (const std::uint32_t buffer : launch.buffers)
    dispatch.operands.push_back({buffer, plan::Access::read_write, false, launch.addresses});
  dispatch.groups = launch.groups;
  return dispatch;
}

std::vector<std::byte> pushed(const Launch& launch, const std::deque<Guarded>& buffers) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; launch.addresses && i < launch.buffers.size(); ++i) {
    const std::array address{buffers[launch.buffers[i]].address()};
    const auto raw = std::as_bytes(std::span(address));
    bytes.insert(bytes.end(), raw.begin(), raw.end());
  }
  bytes.insert(bytes.end(), launch.push.begin(), launch.push.end());
  return bytes;
}

void record(vk::Recorder& recorder, const std::vector<Launch>& launches, const std::deque<Guarded>& buffers,
            vk::DescriptorSets& sets, const Bench& on) {
  recorder.begin(static_cast<std::uint32_t>(launches.size() + 1));
  recorder.barrier();
  recorder.timestamp();
  for (const Launch& launch : launches) {
    launched() = launch.kernel;
    const vk::Pipeline& pipeline = on.pipelines.get(dispatch_of(launch));
    std::vector<vk::BufferRange> ranges;
    for (const std::uint32_t buffer : launch.buffers) ranges.push_back(buffers[buffer].range());
    const std::array set{sets.make(pipeline, ranges)};
    recorder.dispatch(pipeline, set, pushed(launch, buffers), launch.groups);
    recorder.barrier();
    recorder.timestamp();
  }
  recorder.end();
}

}  // namespace

Words kernel_words(std::string_view name) {
  for (const vk::ShaderPack* pack : vk::selftest_packs()) {
    std::size_t first = 0;
    for (const vk::PackedVariant& variant : pack->variants) {
      if (variant.name == name) {
        const Words all = vk::expand(*pack);
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
        return {begin, begin + variant.words};
      }
      first += variant.words;
    }
  }
  throw Error("[selftest] expected a kernel, got " + std::string(name));
}

Words read_spirv(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  if (bytes.size() < 20 || bytes.size() % 4 != 0)
    throw Error("[selftest] expected SPIR-V in " + file.string() + ", got something else or no file");
  Words words(bytes.size() / 4);
  std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

void write_spirv(const std::filesystem::path& file, const Words& words) {
  std::ofstream stream(file, std::ios::binary);
  stream.write(reinterpret_cast<const char*>(words.data()), static_cast<std::streamsize>(words.size() * 4));
  if (!stream.flush()) throw Error("[selftest] expected to write " + file.string() + ", got an error of the system");
}

Bench bench() {
  return {testing::context(), *testing::pipelines()};
}

Outcome run(const std::vector<Launch>& launches, const std::vector<Words>& contents, const Bench& on,
            std::size_t submits) {
  vk::Context& context = on.context;
  std::deque<Guarded> buffers;
  for (const Words& words : contents) buffers.emplace_back(context, words);
  vk::DescriptorSets sets(context);
  std::array<vk::Recorder, 2> recorders{vk::Recorder(context), vk::Recorder(context)};
  for (vk::Recorder& recorder : recorders) record(recorder, launches, buffers, sets, on);
  vk::Timeline timeline(context);
  std::array<std::uint64_t, 2> tickets{};
  const std::size_t executed = loses_submits() ? std::min<std::size_t>(submits, 2) : submits;
  for (std::size_t i = 0; i < executed; ++i) {
    std::uint64_t& ticket = tickets.at(i % 2);
    timeline.wait(ticket);
    ticket = timeline.submit(recorders.at(i % 2));
  }
  timeline.wait(std::ranges::max(tickets));
  Outcome outcome;
  for (const Guarded& buffer : buffers) outcome.buffers.push_back(buffer.read(outcome.guards_intact));
  std::vector<std::uint64_t> ticks;
  recorders[0].read_timestamps(ticks);
  for (std::size_t i = 1; i < ticks.size(); ++i)
    outcome.microseconds.push_back(vk::microseconds(context, ticks[i - 1], ticks[i]));
  return outcome;
}

std::array<std::uint32_t, 3> groups_of(std::size_t count) {
  return {static_cast<std::uint32_t>((count + 63) / 64), 1, 1};
}

const std::string& last_kernel() {
  return launched();
}

}  // namespace halfstep::selftest

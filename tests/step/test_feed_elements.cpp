#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "harness/device.h"
#include "plan/host_tensor.h"
#include "plan/plan.h"
#include "reference/narrow.h"
#include "step/recording.h"
#include "step/stages.h"
#include "vk/command/timeline.h"
#include "vk/command/transfer.h"

namespace halfstep {
namespace {

/// One batch of one field, with all that says which elements it is of.
struct Case {
  ElementType type = ElementType::f32;
  Shape sample;
  std::int64_t batch = 1;
  std::int64_t samples = 1;   ///< in the field
  std::int64_t first = 0;     ///< element of sample 0
  std::int64_t stride = 0;    ///< 0: one after the other
  std::uint32_t skipped = 0;  ///< indices before the batch's
  DType input = DType::u32;
  std::vector<std::array<float, 2>> table{};  ///< means and factors
};

/// The field's elements as the bits of random numbers, and the indices of the batch.
struct Data {
  std::vector<std::byte> bytes;
  std::vector<std::uint32_t> indices;
};

std::int64_t step_of(const Case& of) {
  return of.stride > 0 ? of.stride : elements(of.sample);
}

Data random_data(const Case& of) {
  std::mt19937 random(7);
  Data data;
  const std::int64_t count = of.first + (of.samples - 1) * step_of(of) + elements(of.sample);
  data.bytes.resize(static_cast<std::size_t>(count * bytes(of.type)));
  if (of.type == ElementType::f32) {
    std::uniform_real_distribution<float> values(-4, 4);
    for (std::size_t i = 0; i < data.bytes.size(); i += 4) {
      const float value = values(random);
      std::memcpy(data.bytes.data() + i, &value, 4);
    }
  } else {
    for (std::byte& byte : data.bytes) byte = static_cast<std::byte>(random());
  }
  for (std::int64_t i = 0; i < of.skipped + of.batch; ++i) {
    data.indices.push_back(static_cast<std::uint32_t>(random() % static_cast<std::uint32_t>(of.samples)));
  }
  return data;
}

TensorType input_type(const Case& of) {
  Shape shape = of.sample;
  shape.insert(shape.begin(), of.batch);
  return {of.input, shape};
}

std::vector<std::byte> padded(std::span<const std::byte> bytes) {
  std::vector<std::byte> result(bytes.begin(), bytes.end());
  result.resize((result.size() + 3) / 4 * 4, std::byte{0xFF});
  return result;
}

/// The bytes of the input that the device makes; 64 bytes beyond it must be left alone.
std::vector<std::byte> run(const Case& of, const Data& data, const plan::Target& target) {
  constexpr std::size_t guard = 64;
  vk::Context& context = testing::context();
  plan::ProgramBuilder builder(target);
  std::vector<vk::Buffer> buffers;
  buffers.reserve(5);
  buffers.emplace_back(context, 0, vk::Memory::device, "arena");
  const auto place = [&](const char* name, std::span<const std::byte> bytes) {
    const std::vector<std::byte> words = padded(bytes);
    buffers.emplace_back(context, words.size(), vk::Memory::device, name);
    vk::upload(context, buffers.back(), 0, words);
    return builder.place_bytes(name, words.size(), {builder.buffer(name), 0});
  };
  const TensorType type = input_type(of);
  step::ElementFeed feed{.indices = place("indices", std::as_bytes(std::span(data.indices))),
                         .elements = place("elements", data.bytes),
                         .input = 0,
                         .type = of.type,
                         .sample_size = static_cast<std::uint32_t>(elements(of.sample)),
                         .first = of.skipped,
                         .first_element = static_cast<std::uint32_t>(of.first),
                         .stride = static_cast<std::uint32_t>(step_of(of))};
  if (!of.table.empty()) {
    feed.normalisation = place("table", std::as_bytes(std::span(of.table)));
    feed.channels = static_cast<std::uint32_t>(of.table.size());
  }
  const std::uint64_t size = plan::byte_size(type);
  buffers.emplace_back(context, size + guard, vk::Memory::device, "input");
  vk::fill(context, buffers.back(), 0, size + guard, 0xFFFFFFFF);
  feed.input = builder.place("input", type, {builder.buffer("input"), 0});
  step::feed_elements(builder, feed);
  const plan::Plan plan = plan::make_plan(builder.finish(), {.alignment = target.offset_alignment});
  std::vector<const vk::Buffer*> all;
  for (const vk::Buffer& buffer : buffers) all.push_back(&buffer);
  step::Recording recording(context, *testing::pipelines(), plan, all);
  vk::Timeline timeline(context);
  recording.run(timeline);
  std::vector<std::byte> result(size + guard);
  vk::download(context, buffers.back(), 0, result);
  CHECK(std::all_of(result.begin() + static_cast<std::ptrdiff_t>(size), result.end(),
                    [](std::byte byte) { return byte == std::byte{0xFF}; }));
  result.resize(size);
  return result;
}

/// Element e of sample b of the batch, as bits.
std::uint32_t bits(const Case& of, const Data& data, std::int64_t b, std::int64_t e) {
  const auto at =
      static_cast<std::size_t>(of.first + data.indices[static_cast<std::size_t>(b + of.skipped)] * step_of(of) + e);
  const auto size = static_cast<std::size_t>(bytes(of.type));
  std::uint32_t value = 0;
  std::memcpy(&value, data.bytes.data() + at * size, size);
  return value;
}

void check(const Case& of) {
  CAPTURE(name(of.type));
  CAPTURE(to_string(input_type(of)));
  const Data data = random_data(of);
  const TensorType type = input_type(of);
  const plan::Target target = testing::targets().front();
  const std::vector<std::byte> got = run(of, data, target);
  const std::int64_t size = elements(of.sample);
  std::size_t wrong = 0;
  if (of.input == DType::u32) {
    std::vector<std::uint32_t> want;
    for (std::int64_t i = 0; i < of.batch * size; ++i) want.push_back(bits(of, data, i / size, i % size));
    wrong = plan::to_memory(type, std::span<const std::uint32_t>(want)) == got ? 0 : 1;
  } else {
    std::vector<float> want;
    for (std::int64_t i = 0; i < of.batch * size; ++i) {
      auto value = static_cast<double>(std::bit_cast<float>(bits(of, data, i / size, i % size)));
      if (!of.table.empty()) {
        const auto& [mean, factor] = of.table[static_cast<std::size_t>(i) % of.table.size()];
        value = (value - static_cast<double>(mean)) * static_cast<double>(factor);
      }
      want.push_back(static_cast<float>(value));
    }
    const std::vector<float> values = plan::floats_from_memory(type, got);
    const bool exact = of.table.empty() && !is_narrow(of.input);
    const double unit = is_narrow(of.input) ? reference::narrow(of.input).unit() : 0x1p-22;
    for (std::size_t i = 0; i < want.size(); ++i) {
      const double off = std::abs(static_cast<double>(values[i]) - static_cast<double>(want[i]));
      if (!(off <= (exact ? 0 : unit * std::max(1.0, std::abs(static_cast<double>(want[i])))))) ++wrong;
    }
    // What is padding is zero.
    if (plan::to_memory(type, std::span<const float>(values)) != got) ++wrong;
  }
  CHECK(wrong == 0);
}

constexpr ElementType integers[] = {ElementType::u8, ElementType::u16, ElementType::u32};
constexpr DType floats[] = {DType::f32, DType::f16, DType::bf16};

}  // namespace

TEST_CASE("integers of every type reach an input of u32 bit for bit, whatever their shape and place") {
  for (const ElementType type : integers) {
    for (const Shape& sample : {Shape{}, Shape{1}, Shape{3}, Shape{4}, Shape{17}, Shape{3, 5}, Shape{2, 3, 7}}) {
      for (const std::int64_t batch : {1, 5, 64}) {
        check({.type = type, .sample = sample, .batch = batch, .samples = 37});
      }
      check({.type = type, .sample = sample, .batch = 9, .samples = 11, .skipped = 7});
      check({.type = type, .sample = sample, .batch = 9, .samples = 101, .first = 1, .stride = 1});
      check({.type = type, .sample = sample, .batch = 9, .samples = 50, .first = 3, .stride = 7, .skipped = 2});
    }
  }
}

TEST_CASE("numbers of f32 are cast to the input's type, and normalised by channel if asked to") {
  for (const DType dtype : floats) {
    for (const Shape& sample : {Shape{}, Shape{1}, Shape{8}, Shape{13}, Shape{3, 5}}) {
      const std::int64_t channels = sample.empty() ? 1 : sample.back();
      check({.sample = sample, .batch = 11, .samples = 40, .input = dtype});
      check({.sample = sample, .batch = 11, .samples = 40, .skipped = 5, .input = dtype, .table = {{0.5F, 0.25F}}});
      std::vector<std::array<float, 2>> table;
      for (std::int64_t c = 0; c < channels; ++c)
        table.push_back({static_cast<float>(c), 1 / static_cast<float>(c + 1)});
      check({.sample = sample, .batch = 11, .samples = 40, .input = dtype, .table = table});
      check({.sample = sample, .batch = 11, .samples = 40, .first = 2, .stride = 3, .input = dtype, .table = table});
    }
  }
}

TEST_CASE("a feature that differs little from a large mean keeps its last bits") {
  const std::vector<float> years{2000, 2000.125F, 1999.875F, 2000.5F};
  const Case of{.sample = {4}, .batch = 1, .samples = 1, .input = DType::f32, .table = {{2000, 8}}};
  const auto bytes = std::as_bytes(std::span(years));
  const std::vector<std::byte> got = run(of, {{bytes.begin(), bytes.end()}, {0}}, testing::targets().front());
  CHECK(plan::floats_from_memory(input_type(of), got) == std::vector<float>{0, 1, -1, 4});
}

TEST_CASE("batches beyond 65,535 workgroups are gathered whole") {
  check({.type = ElementType::u16, .sample = {3}, .batch = 4'300'000, .samples = 1'000'003});
  check({.sample = {1}, .batch = 4'300'000, .samples = 999'983, .input = DType::f32, .table = {{1, 2}}});
}

}  // namespace halfstep

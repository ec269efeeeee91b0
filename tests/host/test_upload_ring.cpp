#include <halfstep/error.h>

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <thread>

#include "base/child.h"
#include "data/upload_ring.h"

using namespace halfstep;
using data::HostBatch;
using data::UploadRing;

namespace {

void fill_with_step(std::int64_t step, HostBatch& batch) {
  batch.fields.assign(2, std::vector<std::byte>(100, static_cast<std::byte>(step)));
}

/// What a batch of fill_with_step says of its step.
std::uint8_t step_of(const HostBatch& batch) {
  return std::to_integer<std::uint8_t>(batch.fields.at(0).at(0));
}

template <typename T>
std::vector<std::byte> bytes_of(std::vector<T> values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

/// In a process that may have no further thread.
std::string gather_alone(std::string_view) {
  constexpr rlimit alone{1, 1};
  constexpr uid_t nobody = 65534;  // as the limit does not hold for root
  if ((getuid() == 0 && setuid(nobody) != 0) || setrlimit(RLIMIT_NPROC, &alone) != 0) return "no limit";
  try {
    const UploadRing ring(fill_with_step, 0);
    return "a thread";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("A batch has the samples of every field, one after the other") {
  const std::vector<std::uint16_t> text{10, 11, 12, 13, 14, 15, 16};
  Field windows = Field::borrow("windows", {3}, std::span(text));
  windows.first = 1;
  windows.stride = 2;
  const Dataset data{.sample_shape = {2},
                     .count = 2,
                     .classes = 3,
                     .samples = {1, 2, 3, 4},
                     .labels = {2, 0},
                     .fields = {windows, Field::own<float>("x", {}, {0.5F, -1})}};
  data.check();
  HostBatch batch;
  const std::uint32_t indices[] = {1, 0, 1};
  data::gather(data.all_fields(), indices, batch);
  REQUIRE(batch.fields.size() == 4);
  CHECK(batch.fields[0] == bytes_of<std::uint8_t>({3, 4, 1, 2, 3, 4}));
  CHECK(batch.fields[1] == bytes_of<std::uint32_t>({0, 2, 0}));
  CHECK(batch.fields[2] == bytes_of<std::uint16_t>({13, 14, 15, 11, 12, 13, 13, 14, 15}));
  CHECK(batch.fields[3] == bytes_of<float>({-1, 0.5F, -1}));
}

TEST_CASE("Batches come in order, and the one in hand stays as it is while others are gathered") {
  for (const unsigned slots : {1U, 2U, 3U, 7U}) {
    UploadRing ring(fill_with_step, 5, slots);
    for (std::uint32_t step = 5; step < 300; step++) {
      const HostBatch& batch = ring.batch(step);
      if (step % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      const std::vector<std::byte> bytes(100, static_cast<std::byte>(step));
      CHECK(batch.fields == std::vector(2, bytes));
    }
  }
}

TEST_CASE("A batch can be asked for again until the next one is, and no other can") {
  UploadRing ring(fill_with_step, 5, 2);
  CHECK_THROWS_WITH_AS(ring.batch(6), doctest::Contains("expected batch 5"), Error);
  CHECK_THROWS_AS(ring.batch(4), Error);
  for (std::uint32_t step = 5; step < 40; step++) {
    for (int i = 0; i < 3; i++) CHECK(step_of(ring.batch(step)) == step);
  }
  CHECK_THROWS_WITH_AS(ring.batch(38), doctest::Contains("got 38"), Error);
  CHECK_THROWS_AS(ring.batch(41), Error);
  CHECK(step_of(ring.batch(40)) == 40);
}

TEST_CASE("Waits for a batch that is not gathered yet are counted") {
  std::atomic<const UploadRing*> asked = nullptr;
  UploadRing ring(
      [&](std::int64_t step, HostBatch& batch) {
        while (asked == nullptr || asked.load()->waits() == 0) std::this_thread::yield();
        fill_with_step(step, batch);
      },
      0, 3);
  asked = &ring;
  ring.batch(0);
  CHECK(ring.waits() == 1);
  ring.batch(0);
  CHECK(ring.waits() == 1);
}

TEST_CASE("At most as many batches as slots are gathered ahead") {
  std::atomic<std::int64_t> newest = -1;
  UploadRing ring(
      [&](std::int64_t step, HostBatch& batch) {
        fill_with_step(step, batch);
        newest = step;
      },
      0, 3);
  for (std::int64_t step = 0; step < 20; step++) {
    ring.batch(step);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK(newest >= step);
    CHECK(newest <= step + 2);
  }
}

TEST_CASE("What goes wrong in the thread reaches the caller, after the batches before it and every time") {
  UploadRing ring(
      [](std::int64_t step, HostBatch& batch) {
        if (step == 3) fail("data", "expected a disk, got none");
        fill_with_step(step, batch);
      },
      0, 2);
  for (std::uint32_t step = 0; step < 3; step++) CHECK(step_of(ring.batch(step)) == step);
  CHECK_THROWS_AS(ring.batch(3), Error);
  CHECK_THROWS_AS(ring.batch(3), Error);
}

TEST_CASE("A ring ends whenever it is let go") {
  for (int taken = 0; taken < 4; taken++) {
    UploadRing ring(fill_with_step, 0, 2);
    for (int i = 0; i < taken; i++) ring.batch(i);
  }
}

TEST_CASE("Where there can be no further thread, a ring says so") {
  process::Child child;
  const process::Child::Outcome outcome = child.run(gather_alone, "", std::chrono::seconds(10));
  CHECK(outcome.answer.value_or("none").starts_with("[data] expected another thread, to gather batches, got none: "));
}

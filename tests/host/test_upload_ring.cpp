#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "data/upload_ring.h"

using namespace halfstep;
using data::HostBatch;
using data::UploadRing;

namespace {

void fill_with_step(std::int64_t step, HostBatch& batch) {
  batch.samples.assign(100, static_cast<std::uint8_t>(step));
  batch.labels.assign(10, static_cast<std::uint32_t>(step));
}

}  // namespace

TEST_CASE("A batch has its samples' bytes and labels, and marks the places left") {
  const Dataset data{"", {2}, 3, 3, {1, 2, 3, 4, 5, 6}, {2, 0, 1}};
  HostBatch batch;
  const std::uint32_t indices[] = {2, no_sample, 0};
  data::gather(data, indices, batch);
  CHECK(batch.samples == std::vector<std::uint8_t>{5, 6, 0, 0, 1, 2});
  CHECK(batch.labels == std::vector<std::uint32_t>{1, ignored_label, 2});
}

TEST_CASE("Batches come in order, and the one in hand stays as it is while others are gathered") {
  for (const unsigned slots : {1U, 2U, 3U, 7U}) {
    UploadRing ring(fill_with_step, 5, slots);
    for (std::uint32_t step = 5; step < 300; step++) {
      const HostBatch& batch = ring.batch(step);
      if (step % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      CHECK(batch.labels == std::vector<std::uint32_t>(10, step));
      CHECK(batch.samples == std::vector<std::uint8_t>(100, static_cast<std::uint8_t>(step)));
    }
  }
}

TEST_CASE("A batch can be asked for again until the next one is, and no other can") {
  UploadRing ring(fill_with_step, 5, 2);
  CHECK_THROWS_WITH_AS(ring.batch(6), doctest::Contains("expected batch 5"), Error);
  CHECK_THROWS_AS(ring.batch(4), Error);
  for (std::uint32_t step = 5; step < 40; step++) {
    for (int i = 0; i < 3; i++) CHECK(ring.batch(step).labels[0] == step);
  }
  CHECK_THROWS_WITH_AS(ring.batch(38), doctest::Contains("got 38"), Error);
  CHECK_THROWS_AS(ring.batch(41), Error);
  CHECK(ring.batch(40).labels[0] == 40);
}

TEST_CASE("Waits for a batch that is not gathered yet are counted") {
  std::atomic<bool> go = false;
  UploadRing ring(
      [&](std::int64_t step, HostBatch& batch) {
        while (!go) std::this_thread::yield();
        fill_with_step(step, batch);
      },
      0, 3);
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    go = true;
  });
  ring.batch(0);
  later.join();
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
  for (std::uint32_t step = 0; step < 3; step++) CHECK(ring.batch(step).labels[0] == step);
  CHECK_THROWS_AS(ring.batch(3), Error);
  CHECK_THROWS_AS(ring.batch(3), Error);
}

TEST_CASE("A ring ends whenever it is let go") {
  for (int taken = 0; taken < 4; taken++) {
    UploadRing ring(fill_with_step, 0, 2);
    for (int i = 0; i < taken; i++) ring.batch(i);
  }
}

#include <halfstep/data.h>
#include <halfstep/error.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <set>

using namespace halfstep;

namespace {

using Indices = std::vector<std::uint32_t>;

Indices copy(std::span<const std::uint32_t> batch) {
  return {batch.begin(), batch.end()};
}

Indices epoch(BatchSampler& sampler, std::int64_t number) {
  Indices all;
  for (std::int64_t i = 0; i < sampler.batches_per_epoch(); i++) {
    const auto batch = sampler.batch(number * sampler.batches_per_epoch() + i);
    all.insert(all.end(), batch.begin(), batch.end());
  }
  return all;
}

}  // namespace

TEST_CASE("An epoch of training has full batches of samples that differ") {
  BatchSampler sampler = BatchSampler::training(103, 10, 42);
  CHECK(sampler.batches_per_epoch() == 10);
  for (const std::int64_t number : {0, 1, 7}) {
    const Indices all = epoch(sampler, number);
    const std::set<std::uint32_t> distinct(all.begin(), all.end());
    CHECK(all.size() == 100);
    CHECK(distinct.size() == 100);
    CHECK(*distinct.rbegin() < 103);
  }
}

TEST_CASE("Seeds and epochs have orders of their own") {
  BatchSampler a = BatchSampler::training(1000, 10, 1);
  BatchSampler b = BatchSampler::training(1000, 10, 2);
  const Indices first = epoch(a, 0);
  CHECK(first != epoch(a, 1));
  CHECK(first != epoch(b, 0));
  CHECK_FALSE(std::is_sorted(first.begin(), first.end()));
  CHECK(first == epoch(a, 0));
}

TEST_CASE("A run taken up at any step sees the batches it would have seen") {
  BatchSampler whole = BatchSampler::training(57, 8, 3);
  std::vector<Indices> batches;
  for (std::int64_t step = 0; step < 30; step++) batches.push_back(copy(whole.batch(step)));
  for (const std::int64_t start : {1, 6, 7, 20, 29}) {
    BatchSampler resumed = BatchSampler::training(57, 8, 3);
    for (std::int64_t step = start; step < 30; step++) {
      CHECK(copy(resumed.batch(step)) == batches[static_cast<std::size_t>(step)]);
    }
  }
  CHECK(whole.epoch(6) == 0);
  CHECK(whole.epoch(7) == 1);
}

// Each sample's position is uniform: over 4,000 epochs of 8 samples each of the 64 counts is binomial with mean 500 and
// std 21; 5 of those are beyond 1 in a million.
TEST_CASE("The shuffle favours no place") {
  BatchSampler sampler = BatchSampler::training(8, 8, 11);
  std::vector<int> counts(64);
  for (std::int64_t number = 0; number < 4000; number++) {
    const Indices order = epoch(sampler, number);
    for (std::size_t place = 0; place < 8; place++) counts[place * 8 + order[place]]++;
  }
  for (const int count : counts) CHECK(std::abs(count - 500) < 105);
}

TEST_CASE(
    "Evaluation takes every sample once, in order, and those left after the last full batch fill batches evenly") {
  BatchSampler sampler = BatchSampler::evaluation(11, 4);
  CHECK(sampler.batches_per_epoch() == 4);
  CHECK(copy(sampler.batch(0)) == Indices{0, 1, 2, 3});
  CHECK(copy(sampler.batch(2)) == Indices{8, 8, 9, 9});
  CHECK(copy(sampler.batch(3)) == Indices{10, 10, 10, 10});
  CHECK(copy(BatchSampler::evaluation(2, 4).batch(0)) == Indices{0, 0, 1, 1});
  CHECK(BatchSampler::evaluation(8, 4).batches_per_epoch() == 2);
  for (const std::int64_t batch : {1, 6, 7, 12, 16, 61}) {
    for (const std::int64_t count : {1, 5, 60, 61, 100}) {
      BatchSampler each = BatchSampler::evaluation(count, batch);
      Indices seen;
      for (std::int64_t step = 0; step < each.batches_per_epoch(); step++) {
        const Indices indices = copy(each.batch(step));
        const std::set<std::uint32_t> different(indices.begin(), indices.end());
        CHECK(std::ssize(different) == each.samples(step));
        const auto times = static_cast<std::ptrdiff_t>(indices.size() / different.size());
        for (const std::uint32_t index : different) CHECK(std::ranges::count(indices, index) == times);
        seen.insert(seen.end(), different.begin(), different.end());
      }
      Indices all(static_cast<std::size_t>(count));
      std::iota(all.begin(), all.end(), 0U);
      CHECK(seen == all);
    }
  }
}

namespace {

/// The bucket of each of `count` samples: few of the later ones.
Indices some_buckets(std::int64_t count) {
  Indices buckets;
  for (std::int64_t i = 0; i < count; i++) {
    buckets.push_back(i % 7 < 4 ? 0U : (i % 7 < 6 ? 1U : static_cast<std::uint32_t>(2 + i % 2)));
  }
  return buckets;
}

}  // namespace

TEST_CASE("Batches of one bucket are of the samples that an epoch has without buckets") {
  for (const std::int64_t count : {40, 103, 250}) {
    for (const std::int64_t size : {1, 4, 10, 40}) {
      const Indices buckets = some_buckets(count);
      BatchSampler plain = BatchSampler::training(count, size, 42);
      BatchSampler sampler = BatchSampler::training(buckets, size, 42);
      REQUIRE(sampler.batches_per_epoch() == plain.batches_per_epoch());
      for (const std::int64_t number : {0, 1, 5}) {
        Indices got = epoch(sampler, number);
        Indices want = epoch(plain, number);
        std::ranges::sort(got);
        std::ranges::sort(want);
        CHECK(got == want);
        std::int64_t mixed = 0;
        std::vector<std::int64_t> batches(4);
        for (std::int64_t i = 0; i < sampler.batches_per_epoch(); i++) {
          const std::int64_t step = number * sampler.batches_per_epoch() + i;
          std::set<std::uint32_t> in_batch;
          for (const std::uint32_t index : sampler.batch(step)) in_batch.insert(buckets[index]);
          CHECK(sampler.bucket(step) == *in_batch.rbegin());
          if (in_batch.size() > 1) mixed++;
          batches[*in_batch.rbegin()]++;
        }
        CHECK(mixed <= 3);  // at most one batch between each bucket and the next
        if (size <= 4) CHECK(std::ranges::count(batches, 0) == 0);
      }
    }
  }
}

TEST_CASE("Batches of buckets come in an order of the epoch's own, and the seed's") {
  BatchSampler a = BatchSampler::training(some_buckets(1000), 10, 1);
  BatchSampler b = BatchSampler::training(some_buckets(1000), 10, 2);
  const auto order = [](BatchSampler& sampler, std::int64_t number) {
    Indices all;
    for (std::int64_t i = 0; i < sampler.batches_per_epoch(); i++) {
      all.push_back(sampler.bucket(number * sampler.batches_per_epoch() + i));
    }
    return all;
  };
  const Indices first = order(a, 0);
  CHECK_FALSE(std::is_sorted(first.begin(), first.end()));
  CHECK(first != order(a, 1));
  CHECK(first != order(b, 0));
  CHECK(first == order(a, 0));
  CHECK(epoch(a, 0) != epoch(a, 1));
}

TEST_CASE("A run in buckets taken up at any step sees the batches it would have seen") {
  BatchSampler whole = BatchSampler::training(some_buckets(57), 8, 3);
  std::vector<Indices> batches;
  for (std::int64_t step = 0; step < 30; step++) batches.push_back(copy(whole.batch(step)));
  for (const std::int64_t start : {1, 6, 7, 20, 29}) {
    BatchSampler resumed = BatchSampler::training(some_buckets(57), 8, 3);
    for (std::int64_t step = start; step < 30; step++) {
      CHECK(copy(resumed.batch(step)) == batches[static_cast<std::size_t>(step)]);
    }
  }
}

TEST_CASE("Every sample of a bucket smaller than a batch is drawn") {
  Indices buckets(50, 1);
  buckets[17] = 0;  // the only one of its bucket
  buckets[31] = 2;
  BatchSampler sampler = BatchSampler::training(buckets, 8, 5);
  std::vector<int> drawn(50);
  for (std::int64_t number = 0; number < 400; number++) {
    for (const std::uint32_t index : epoch(sampler, number)) drawn[index]++;
  }
  // 48 of 50 in each epoch: binomial with mean 384 and std 4.
  for (const int count : drawn) CHECK(std::abs(count - 384) < 20);
}

TEST_CASE("Evaluation in buckets takes every sample once, bucket by bucket") {
  const Indices buckets{1, 0, 2, 0, 1, 0, 0, 2, 0, 1, 2};
  BatchSampler sampler = BatchSampler::evaluation(buckets, 4);
  CHECK(sampler.batches_per_epoch() == BatchSampler::evaluation(11, 4).batches_per_epoch());
  CHECK(copy(sampler.batch(0)) == Indices{1, 3, 5, 6});
  CHECK(sampler.bucket(0) == 0);
  CHECK(copy(sampler.batch(1)) == Indices{8, 0, 4, 9});
  CHECK(sampler.bucket(1) == 1);
  CHECK(copy(sampler.batch(2)) == Indices{2, 2, 7, 7});
  CHECK(sampler.samples(2) == 2);
  CHECK(copy(sampler.batch(3)) == Indices{10, 10, 10, 10});
  CHECK(sampler.bucket(3) == 2);
  CHECK(BatchSampler::evaluation(11, 4).bucket(3) == 0);
}

TEST_CASE("Sizes that make no batch are refused") {
  CHECK_THROWS_AS(BatchSampler::training(3, 4, 0), Error);
  CHECK_THROWS_AS(BatchSampler::training(3, 0, 0), Error);
  CHECK_THROWS_AS(BatchSampler::training(3, -1, 0), Error);
  CHECK_THROWS_AS(BatchSampler::training(0, 1, 0), Error);
  CHECK_THROWS_AS(BatchSampler::training(std::int64_t{1} << 32, 1, 0), Error);
  CHECK_THROWS_AS(BatchSampler::evaluation(0, 4), Error);
  CHECK_THROWS_AS(BatchSampler::evaluation(4, 0), Error);
  CHECK_THROWS_AS(BatchSampler::evaluation(4, std::int64_t{1} << 40), Error);
  CHECK_THROWS_AS(BatchSampler::training(4, 2, 0).batch(-1), Error);
  CHECK_THROWS_AS(BatchSampler::training(4, 2, 0).samples(-1), Error);
  CHECK_THROWS_AS(BatchSampler::evaluation(3, 2).samples(-1), Error);
  CHECK_THROWS_AS(BatchSampler::evaluation(3, 2).bucket(-1), Error);
  CHECK_THROWS_AS(BatchSampler::training(Indices{0, 1}, 3, 0), Error);
  CHECK_THROWS_AS(BatchSampler::evaluation(Indices{}, 3), Error);
}

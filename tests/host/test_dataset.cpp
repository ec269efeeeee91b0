#include <halfstep/data.h>
#include <halfstep/error.h>

#include <doctest/doctest.h>

#include <functional>
#include <limits>

namespace halfstep {
namespace {

constexpr std::int64_t huge = std::int64_t{1} << 62;

Dataset sound() {
  return {"toy", {2, 1}, 3, 3, {1, 2, 3, 4, 5, 6}, {2, 0, 1}};
}

struct Fault {
  std::function<void(Dataset&)> make;
  const char* message;
};

}  // namespace

TEST_CASE("a set whose members agree is taken, an empty one too") {
  CHECK_NOTHROW(sound().check());
  CHECK_NOTHROW(Dataset{}.check());
  CHECK(sound().take(2).samples == std::vector<std::uint8_t>{1, 2, 3, 4});
  CHECK(sound().take(std::numeric_limits<std::int64_t>::max()).count == 3);
}

TEST_CASE("a set whose members disagree is refused by what disagrees, and nothing is read beyond its ends") {
  const std::vector<Fault> faults{
      {[](Dataset& set) { set.count = 4; }, "[data] 'toy': expected the bytes of 4 samples {2, 1}, got 6"},
      {[](Dataset& set) { set.count = -1; }, "[data] 'toy': expected a count of 0 or more, got -1"},
      {[](Dataset& set) { set.count = huge; },
       "[data] 'toy': expected the bytes of 4611686018427387904 samples {2, 1}, got 6"},
      {[](Dataset& set) { set.samples.pop_back(); }, "[data] 'toy': expected the bytes of 3 samples {2, 1}, got 5"},
      {[](Dataset& set) { set.samples.push_back(0); }, "[data] 'toy': expected the bytes of 3 samples {2, 1}, got 7"},
      {[](Dataset& set) {
         set.sample_shape = {2, 2};
       },
       "[data] 'toy': expected the bytes of 3 samples {2, 2}, got 6"},
      {[](Dataset& set) {
         set.sample_shape = {2, 0};
       },
       "[data] 'toy': expected positive extents of a sample, got {2, 0}"},
      {[](Dataset& set) {
         set.sample_shape = {-2, -1};
       },
       "[data] 'toy': expected positive extents of a sample, got {-2, -1}"},
      {[](Dataset& set) { set.labels.pop_back(); }, "[data] 'toy': expected 3 labels, got 2"},
      {[](Dataset& set) { set.labels.push_back(0); }, "[data] 'toy': expected 3 labels, got 4"},
      {[](Dataset& set) { set.classes = 2; }, "[data] 'toy': expected labels below its 2 classes, got 2 for sample 0"},
      {[](Dataset& set) { set.classes = 0; }, "[data] 'toy': expected labels below its 0 classes, got 2 for sample 0"},
      {[](Dataset& set) { set.labels[1] = 0xFFFFFFFF; },
       "[data] 'toy': expected labels below its 3 classes, got 4294967295 for sample 1"}};
  for (const Fault& fault : faults) {
    Dataset set = sound();
    fault.make(set);
    CHECK_THROWS_WITH_AS(set.check(), fault.message, Error);
    CHECK_THROWS_WITH_AS(set.take(1), fault.message, Error);
    CHECK_THROWS_AS(set.take(std::numeric_limits<std::int64_t>::max()), Error);
  }
  // 2^62 times 4 wraps around to 0 bytes, which matches the empty vector.
  Dataset wrapped{"toy", {huge, 4}, 0, 3, {}, {}};
  CHECK_THROWS_WITH_AS(wrapped.check(), doctest::Contains("{4611686018427387904, 4}"), Error);
  wrapped = {"toy", {4}, huge, 3, {}, {}};
  CHECK_THROWS_WITH_AS(wrapped.check(), doctest::Contains("4611686018427387904 samples"), Error);
}

}  // namespace halfstep

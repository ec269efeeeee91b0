#include <halfstep/data.h>
#include <halfstep/error.h>

#include <doctest/doctest.h>

#include <functional>
#include <limits>

namespace halfstep {
namespace {

constexpr std::int64_t huge = std::int64_t{1} << 62;

/// Three samples of every type.
Dataset sound() {
  return {.name = "toy",
          .count = 3,
          .fields = {Field::own<std::uint8_t>("bytes", {2}, {1, 2, 3, 4, 5, 6}),
                     Field::own<std::uint16_t>("tokens", {3}, {1, 2, 3, 4, 5, 6, 7, 8, 65535}),
                     Field::own<std::uint32_t>("ids", {}, {0, 9, 4}, 10),
                     Field::own<float>("x", {1, 2}, {1, 2, 3, 4, 5, 6})}};
}

struct Fault {
  std::function<void(Dataset&)> make;
  const char* message;
};

}  // namespace

TEST_CASE("a set of fields of any type is taken, and its first samples are the same memory") {
  const Dataset set = sound();
  CHECK_NOTHROW(set.check());
  CHECK(set.all_fields().size() == 4);
  const Dataset two = set.take(2);
  CHECK_NOTHROW(two.check());
  CHECK(two.count == 2);
  CHECK(two.fields[1].data.data() == set.fields[1].data.data());
  CHECK(two.fields[1].data.size() == 12);
  const Dataset made = Dataset::of("made", set.fields);
  CHECK(made.count == 3);
  CHECK(set.take(100).count == 3);
}

TEST_CASE("images and labels are the first of a set's fields") {
  const Dataset set{"toy", {2, 1}, 2, 3, {1, 2, 3, 4}, {2, 0}, {Field::own<float>("age", {}, {30, 40})}};
  set.check();
  const std::vector<Field> all = set.all_fields();
  REQUIRE(all.size() == 3);
  CHECK(all[0].name == "samples");
  CHECK(all[0].type == ElementType::u8);
  CHECK(all[0].shape == Shape{2, 1});
  CHECK(all[1].name == "labels");
  CHECK(all[1].type == ElementType::u32);
  CHECK(all[1].bound == 3);
  CHECK(all[2].name == "age");
}

TEST_CASE("a set whose fields disagree is refused by what disagrees") {
  const std::vector<Fault> faults{
      {[](Dataset& set) { set.count = 4; }, "[data] field 'bytes': expected 4 samples of {2}, got 3"},
      {[](Dataset& set) { set.count = huge; }, "expected 4611686018427387904 samples of {2}, got 3"},
      {[](Dataset& set) { set.count = -1; }, "[data] 'toy': expected a count of 0 or more, got -1"},
      {[](Dataset& set) { set.fields[1].data = set.fields[1].data.first(16); },
       "field 'tokens': expected whole samples of {3}, got 8 elements"},
      {[](Dataset& set) { set.fields[1].data = set.fields[1].data.first(17); },
       "field 'tokens': expected whole elements of u16, aligned to 2 bytes, got 17 bytes"},
      {[](Dataset& set) { set.fields[3].data = set.fields[3].data.subspan(2, 16); },
       "got 16 bytes that are not aligned"},
      {[](Dataset& set) {
         set.fields[3].shape = {2, 0};
       },
       "field 'x': expected positive extents of a sample, got {2, 0}"},
      {[](Dataset& set) {
         set.fields[3].shape = {huge, 4};
       },
       "{4611686018427387904, 4}"},
      {[](Dataset& set) { set.fields[2].bound = 9; }, "field 'ids': expected values below 9, got 9 in element 1"},
      {[](Dataset& set) { set.fields[1].bound = 65535; }, "expected values below 65535, got 65535 in element 8"},
      {[](Dataset& set) { set.fields[0].bound = 6; }, "expected values below 6, got 6 in element 5"},
      {[](Dataset& set) { set.fields[3].bound = 9; }, "expected a bound of integers only, got one of f32"},
      {[](Dataset& set) { set.fields[3].name = "ids"; }, "[data] 'toy': expected one field 'ids', got two"},
      {[](Dataset& set) { set.fields[3].name.clear(); }, "expected a name, got an empty one"},
      {[](Dataset& set) { set.fields[0].first = 7; }, "expected a first element within its 6"},
      {[](Dataset& set) { set.fields[0].first = -1; }, "expected a first element within its 6"},
      {[](Dataset& set) { set.fields[0].first = 2; }, "field 'bytes': expected 3 samples of {2}, got 2"},
      {[](Dataset& set) { set.fields[0].stride = -1; }, "a stride from 0 on"},
      {[](Dataset& set) { set.fields[0].stride = 3; }, "field 'bytes': expected 3 samples of {2}, got 2"},
      {[](Dataset& set) { set.labels = {0}; }, "[data] 'toy': expected 3 labels, got 1"},
      {[](Dataset& set) { set.sample_shape = {4}; }, "[data] 'toy': expected the bytes of 3 samples {4}, got 0"}};
  for (const Fault& fault : faults) {
    CAPTURE(fault.message);
    Dataset set = sound();
    fault.make(set);
    CHECK_THROWS_WITH_AS(set.check(), doctest::Contains(fault.message), Error);
    CHECK_THROWS_AS(set.take(1), Error);
  }
  CHECK_THROWS_AS(Dataset::of("none", {}), Error);
  std::vector<Field> fields = sound().fields;
  fields.push_back(Field::own<float>("y", {}, {1, 2, 3, 4}));
  CHECK_THROWS_WITH_AS(Dataset::of("toy", fields), doctest::Contains("field 'y': expected 3 samples of {}, got 4"),
                       Error);
}

TEST_CASE("windows overlap, and a set of several has as many samples as the one with the fewest") {
  const std::vector<std::uint32_t> text{0, 1, 2, 3, 4, 5, 6};
  Field tokens = Field::borrow("tokens", {3}, std::span(text));
  tokens.stride = 1;
  CHECK(tokens.count() == 5);
  Field targets = tokens;
  targets.name = "targets";
  targets.first = 1;
  CHECK(targets.count() == 4);
  const Dataset set = Dataset::of("text", {tokens, targets});
  CHECK(set.count == 4);
  CHECK(set.take(2).count == 2);
  tokens.stride = huge;
  CHECK(tokens.count() == 1);
  tokens.shape = {8};
  CHECK(tokens.count() == 0);
}

TEST_CASE("a source without a function, without fields or with data is refused") {
  const auto fill = [](const SourceBatch&) {};
  const Source good{.name = "toy", .count = 0, .fields = {{.name = "x", .type = ElementType::f32}}, .fill = fill};
  CHECK_NOTHROW(good.check());
  const auto refused = [&](const std::function<void(Source&)>& change, const char* message) {
    Source source = good;
    change(source);
    CHECK_THROWS_WITH_AS(source.check(), doctest::Contains(message), Error);
  };
  refused([](Source& source) { source.fill = nullptr; }, "[source] 'toy': expected a function that fills batches");
  refused([](Source& source) { source.count = -1; }, "expected a count of 0 or more, got -1");
  refused([](Source& source) { source.fields.clear(); }, "expected at least one field");
  refused([](Source& source) { source.fields.push_back(source.fields[0]); }, "expected one field 'x', got two");
  refused([](Source& source) { source.fields[0].shape = {0}; }, "expected positive extents");
  refused([](Source& source) { source.fields[0].bound = 3; }, "a bound of integers only");
  refused([](Source& source) { source.fields = sound().fields; }, "expected field 'bytes' without data");
  refused([](Source& source) { source.fields[0].shape = {huge}; }, "expected samples of at most");
}

TEST_CASE("the room for a field is what its type says, and no other") {
  std::vector<float> room(6);
  const Field field{.name = "x", .type = ElementType::f32, .shape = {3}};
  const SourceBatch batch{.fields = {&field, 1}, .room = {std::as_writable_bytes(std::span(room))}};
  CHECK(batch.values<float>(0).size() == 6);
  CHECK(batch.values<float>(0).data() == room.data());
  CHECK_THROWS_WITH_AS(batch.values<std::uint32_t>(0), "[source] expected field 0 to be of u32, got f32", Error);
  CHECK_THROWS_WITH_AS(batch.values<float>(1), "[source] expected field 1 to be of f32, got none", Error);
}

}  // namespace halfstep

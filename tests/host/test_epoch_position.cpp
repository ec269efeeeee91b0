// The training position in a checkpoint, with epochs of the same size and of another.
#include <halfstep/checkpoint.h>
#include <halfstep/error.h>

#include <doctest/doctest.h>

#include "train/epoch_position.h"

namespace halfstep {
namespace {

using namespace train;

io::Metadata at(const EpochSize& size, std::int64_t drawn) {
  io::Metadata metadata;
  note_position(metadata, size, drawn);
  return metadata;
}

}  // namespace

TEST_CASE("a position is read back in epochs of the same size") {
  for (const EpochSize size : {EpochSize{203, 8}, EpochSize{7, 7}, EpochSize{60000, 1}, EpochSize{4294967294, 3}}) {
    for (const std::int64_t drawn : {std::int64_t{0}, std::int64_t{1}, size.steps() - 1, size.steps(),
                                     7 * size.steps() + 5 % size.steps(), 1000000 * size.steps()}) {
      CHECK(position_from(at(size, drawn), "file", size, 999) == drawn);
    }
  }
  const std::int64_t many = std::int64_t{1} << 40;
  CHECK(position_from(at({7, 7}, many), "file", {7, 7}, 999) == many);
}

TEST_CASE("in epochs of another size, whole ones stay whole and the same fraction of the last is done") {
  const EpochSize before{96, 32};
  // Two of three steps are 64 images: 4 of 6 steps of 16, 12 of 19 of 5; half of 96 images are half of 48.
  CHECK(position_from(at(before, 3), "file", {96, 16}, 0) == 6);
  CHECK(position_from(at(before, 5), "file", {96, 16}, 0) == 6 + 4);
  CHECK(position_from(at(before, 5), "file", {96, 5}, 0) == 19 + 12);
  CHECK(position_from(at({96, 16}, 3), "file", {48, 8}, 0) == 3);
  CHECK(position_from(at({96, 1}, 95), "file", {96, 96}, 0) == 0);
  CHECK(position_from(at({1644167168, 2}, 16777216), "file", {1644167168, 1}, 0) == 33554432);
  // 97 of 100 images, where the last three used to be dropped, do not make the epoch of 32 images one step longer.
  CHECK(position_from(at({100, 1}, 99), "file", {100, 33}, 0) == 2);
}

TEST_CASE("a checkpoint without a position was at its step; one that cannot be is refused") {
  const EpochSize size{96, 32};
  CHECK(position_from({}, "file", size, 17) == 17);
  const io::Metadata sound = at(size, 4);
  for (const auto& [key, value] : {std::pair{"epoch", "-1"},
                                   {"epoch", "99999999999999999999"},
                                   {"epoch", "1 "},
                                   {"epoch_step", "3"},
                                   {"epoch_step", "nan"},
                                   {"batch", "0"},
                                   {"batch", "97"},
                                   {"samples", "4294967297"},
                                   {"samples", ""}}) {
    io::Metadata metadata = sound;
    metadata[key] = value;
    CHECK_THROWS_WITH_AS(position_from(metadata, "file", size, 0), doctest::Contains("[file] expected '"), Error);
  }
}

TEST_CASE("batches of a source without epochs go on with the next ones that all ranks can be given") {
  io::Metadata metadata;
  CHECK(drawn_from(metadata, "file", 2, 7) == 7);  // of an older version
  note_asked(metadata, 20);
  for (const auto& [ranks, drawn] : {std::pair{1, 20}, {2, 10}, {3, 7}, {21, 1}}) {
    CHECK(drawn_from(metadata, "file", ranks, 7) == drawn);
  }
  for (const char* bad : {"-1", "", "9223372036854775807"}) {
    metadata["source_batches"] = bad;
    CHECK_THROWS_WITH_AS(drawn_from(metadata, "file", 1, 7), doctest::Contains("[file] expected '"), Error);
  }
}

TEST_CASE("a newer format is refused, another program's is none of ours") {
  for (const char* format : {"halfstep 2", "halfstep 1x", "halfstep ", "halfstep 99999999999"}) {
    CHECK_THROWS_WITH_AS(check_format({{"format", format}}, "file"), doctest::Contains("[file] expected"), Error);
  }
  CHECK_NOTHROW(check_format({{"format", "halfstep 1"}}, "file"));
  CHECK_NOTHROW(check_format({{"format", "pt"}}, "file"));
  CHECK_NOTHROW(check_format({}, "file"));
}

}  // namespace halfstep

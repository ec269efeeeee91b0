#include <halfstep/data.h>
#include <halfstep/error.h>

#include <doctest/doctest.h>

#include <random>
#include <sstream>

#include "host/idx_files.h"
#include "host/temporary_folder.h"

using namespace halfstep;
using namespace idx_files;
namespace fs = std::filesystem;

namespace {

// A folder with a valid pair of files: three images of 2 by 2 and their labels.
struct Fixture {
  TemporaryFolder folder;
  fs::path images = folder.path() / "train-images-idx3-ubyte";
  fs::path labels = folder.path() / "train-labels-idx1-ubyte";

  Fixture() {
    write(images, array({3, 2, 2}, ramp(12)));
    write(labels, array({3}, {2, 0, 1}));
  }

  std::string error(std::uint32_t classes = 0) const {
    try {
      read_idx(images, labels, classes);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }

  // Whether reading fails with one line that names `file` and contains all `parts`.
  bool fails(const fs::path& file, std::initializer_list<std::string_view> parts, std::uint32_t classes = 0) const {
    const std::string text = error(classes);
    INFO(text);
    bool good = text.find(file.string()) != std::string::npos && text.find('\n') == std::string::npos;
    for (const std::string_view part : parts) good = good && text.find(part) != std::string::npos;
    CHECK(good);
    return good;
  }
};

std::string contents(const fs::path& file) {
  std::ostringstream out;
  out << std::ifstream(file, std::ios::binary).rdbuf();
  return out.str();
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "A pair of IDX files is read as it stands") {
  const Dataset data = read_idx(images, labels);
  CHECK(data.count == 3);
  CHECK(data.classes == 3);
  CHECK(data.sample_shape == Shape{2, 2, 1});
  CHECK(data.samples == std::vector<std::uint8_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  CHECK(data.labels == std::vector<std::uint32_t>{2, 0, 1});
}

TEST_CASE_FIXTURE(Fixture, "Gzipped files, colours and plain features are read too") {
  write_gzipped(folder.path() / "i.gz", array({3, 1, 2, 3}, ramp(18)));
  write_gzipped(folder.path() / "l.gz", array({3}, {2, 0, 1}));
  const Dataset colours = read_idx(folder.path() / "i.gz", folder.path() / "l.gz");
  CHECK(colours.sample_shape == Shape{1, 2, 3});
  CHECK(colours.samples.size() == 18);
  write(images, array({3, 5}, ramp(15)));
  CHECK(read_idx(images, labels).sample_shape == Shape{5});
}

TEST_CASE_FIXTURE(Fixture, "A folder's halves are found by name, packed or not") {
  fs::rename(labels, folder.path() / "emnist-train-labels.idx1-ubyte");
  CHECK(read_idx_folder(folder.path(), Split::train).count == 3);
  write_gzipped(folder.path() / "t10k-images-idx3-ubyte.gz", array({1, 2, 2}, ramp(4)));
  write_gzipped(folder.path() / "t10k-labels-idx1-ubyte.gz", array({1}, {1}));
  const Dataset test = read_idx_folder(folder.path(), Split::test, 3);
  CHECK(test.count == 1);
  CHECK(test.classes == 3);
  CHECK(test.name == folder.path().string());
  // A gzipped copy beside the file counts as the same file.
  write_gzipped(folder.path() / "train-images-idx3-ubyte.gz", array({3, 2, 2}, ramp(12)));
  CHECK(read_idx_folder(folder.path(), Split::train).count == 3);
}

TEST_CASE_FIXTURE(Fixture, "A folder without the files, or with too many, says so") {
  const auto error = [](const fs::path& path, Split split) -> std::string {
    try {
      read_idx_folder(path, split);
    } catch (const Error& caught) {
      return caught.what();
    }
    return {};
  };
  CHECK(error(folder.path(), Split::test).find("expected t10k-images-idx3-ubyte") != std::string::npos);
  CHECK(error(folder.path() / "nowhere", Split::train).find("expected a folder") != std::string::npos);
  CHECK(error(images, Split::train).find("expected a folder") != std::string::npos);
  write(folder.path() / "other-train-images-idx3-ubyte", "x");
  CHECK(error(folder.path(), Split::train).find("expected one file like train-images") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "Missing and unreadable files are named") {
  fs::remove(labels);
  fails(labels, {"there is no such file"});
  fs::create_directory(labels);
  fails(labels, {"not an ordinary file"});
}

TEST_CASE_FIXTURE(Fixture, "A header that is not an IDX header is refused") {
  write(images, "");
  fails(images, {"expected 4 more bytes of its header, got 0"});
  write(images, "PK\3\4 is a zip file");
  fails(images, {"expected an IDX file", "50 4b"});
  write(images, ByteString("\0\0\x0d\3", 4) + ramp(60));
  fails(images, {"type 08", "got 0d"});
  write(images, array({3}, ramp(3)));
  fails(images, {"2 to 4 axes, got 1"});
  write(labels, array({3, 1}, ramp(3)));
  write(images, array({3, 2, 2}, ramp(12)));
  fails(labels, {"1 axes, got 2"});
  write(images, array({3, 2, 2}, "").substr(0, 10));
  fails(images, {"header, got 2"});
}

TEST_CASE_FIXTURE(Fixture, "Extents that are zero or absurd are refused before anything is allocated") {
  write(images, array({0, 2, 2}, ""));
  fails(images, {"got 0 on axis 0"});
  write(images, array({3, 0, 2}, ""));
  fails(images, {"got 0 on axis 1"});
  write(images, array({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, ramp(12)));
  fails(images, {"expected at most", "4294967295"});
  write(images, array({0xFFFFFFFF, 16, 16}, ramp(12)));
  fails(images, {"expected 1099511627520 elements", "got 12", "truncated"});
}

TEST_CASE_FIXTURE(Fixture, "Files that are too short or too long are refused") {
  write(images, array({3, 2, 2}, ramp(11)));
  fails(images, {"expected 12 elements", "{3, 2, 2}", "got 11"});
  write(images, array({3, 2, 2}, ramp(13)));
  fails(images, {"expected 12 elements", "got more"});
  write(images, array({3, 2, 2}, ramp(12)));
  write(labels, array({3}, ramp(4)));
  fails(labels, {"expected 3 elements", "got more"});
}

TEST_CASE_FIXTURE(Fixture, "Broken packing is refused, wherever it is cut, and no flipped bit passes for data") {
  const fs::path packed = folder.path() / "packed.gz";
  write_gzipped(packed, array({3, 2, 2}, ramp(12)));
  const std::vector<std::uint8_t> samples = read_idx(packed, labels).samples;
  const std::string whole = contents(packed);
  for (std::size_t size = 0; size < whole.size(); size++) {
    write(packed, whole.substr(0, size));
    CHECK_THROWS_AS(read_idx(packed, labels), Error);
  }
  int refused = 0;
  for (std::size_t place = 0; place < whole.size(); place++) {
    std::string flipped = whole;
    flipped[place] = static_cast<char>(flipped[place] ^ 4);
    write(packed, flipped);
    // A few bits of the format are ignored.
    try {
      const Dataset data = read_idx(packed, labels);
      CHECK(data.samples == samples);
    } catch (const Error&) {
      refused++;
    }
  }
  CHECK(refused > static_cast<int>(whole.size()) / 2);
}

TEST_CASE_FIXTURE(Fixture, "Counts that differ and labels out of range name both numbers") {
  write(labels, array({4}, ramp(4)));
  fails(labels, {"got 4 in", "and 3 in", images.string()});
  write(labels, array({3}, {2, 0, 11}));
  fails(labels, {"labels below 10", "got 11 for sample 2"}, 10);
  CHECK(read_idx(images, labels).classes == 12);
}

TEST_CASE_FIXTURE(Fixture, "take() keeps the first samples") {
  const Dataset data = read_idx(images, labels);
  const Dataset two = data.take(2);
  CHECK(two.count == 2);
  CHECK(two.samples.size() == 8);
  CHECK(two.labels == std::vector<std::uint32_t>{2, 0});
  CHECK(two.classes == 3);
  CHECK(data.take(100).count == 3);
  CHECK_THROWS_AS(data.take(0), Error);
  CHECK_THROWS_AS(data.take(-1), Error);
}

// For any bytes, the result is a valid data set or an Error.
TEST_CASE_FIXTURE(Fixture, "Arbitrary bytes never do worse than an Error") {
  std::mt19937 random(7);
  const std::string sound = contents(images);
  for (int round = 0; round < 3000; round++) {
    std::string bytes = sound;
    const auto edits = 1 + random() % 4;
    for (unsigned long edit = 0; edit < edits; edit++) bytes[random() % bytes.size()] = static_cast<char>(random());
    if (random() % 3 == 0) bytes.resize(random() % 40, static_cast<char>(random()));
    write(images, bytes);
    try {
      const Dataset data = read_idx(images, labels);
      CHECK(data.samples.size() == static_cast<std::size_t>(data.count * data.sample_bytes()));
      CHECK(data.labels.size() == static_cast<std::size_t>(data.count));
    } catch (const Error&) {
    }
  }
}

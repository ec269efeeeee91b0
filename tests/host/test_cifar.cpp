#include <halfstep/data.h>
#include <halfstep/error.h>

#include <doctest/doctest.h>

#include <functional>

#include "host/idx_files.h"
#include "host/temporary_folder.h"

using namespace halfstep;
using idx_files::ByteString;
using idx_files::write;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t plane = 1024;

// The byte of channel `channel` at pixel `pixel` in every image with mark `mark`.
std::uint8_t value(int mark, std::size_t channel, std::size_t pixel) {
  return static_cast<std::uint8_t>(static_cast<std::size_t>(mark) + 85 * channel + 7 * pixel + pixel / 32);
}

ByteString record(const ByteString& labels, int mark) {
  ByteString bytes = labels;
  for (std::size_t i = 0; i < 3 * plane; i++) bytes.push_back(static_cast<char>(value(mark, i / plane, i % plane)));
  return bytes;
}

std::string error_of(const std::function<void()>& read) {
  try {
    read();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

// Two training batches, of two images and of one, and a test batch.
struct Cifar10 {
  TemporaryFolder folder;
  fs::path inner = folder.path() / "cifar-10-batches-bin";
  fs::path first = inner / "data_batch_1.bin";
  fs::path second = inner / "data_batch_2.bin";

  Cifar10() {
    fs::create_directory(inner);
    write(first, record({3}, 1) + record({0}, 2));
    write(second, record({9}, 3));
    write(inner / "test_batch.bin", record({7}, 4));
  }

  bool fails(std::initializer_list<std::string_view> parts, Split split = Split::train) const {
    const std::string text = error_of([&] { read_cifar10(folder.path(), split); });
    INFO(text);
    bool good = !text.empty() && text.find('\n') == std::string::npos;
    for (const std::string_view part : parts) good = good && text.find(part) != std::string::npos;
    CHECK(good);
    return good;
  }
};

}  // namespace

TEST_CASE_FIXTURE(Cifar10, "CIFAR-10's planes become pixels, batch after batch") {
  const Dataset data = read_cifar10(folder.path(), Split::train);
  CHECK(data.count == 3);
  CHECK(data.classes == 10);
  CHECK(data.sample_shape == Shape{32, 32, 3});
  CHECK(data.labels == std::vector<std::uint32_t>{3, 0, 9});
  REQUIRE(data.samples.size() == 3 * 3 * plane);
  bool same = true;
  for (std::size_t i = 0; i < data.samples.size(); i++) {
    const std::size_t image = i / (3 * plane);
    same = same && data.samples[i] == value(static_cast<int>(image) + 1, i % 3, i / 3 % plane);
  }
  CHECK(same);
  const Dataset test = read_cifar10(inner, Split::test);
  CHECK(test.count == 1);
  CHECK(test.labels == std::vector<std::uint32_t>{7});
  CHECK(test.name == inner.string());
}

TEST_CASE_FIXTURE(Cifar10, "What is missing from CIFAR-10 is named, and where it can be had") {
  write(inner / "data_batch_4.bin", record({1}, 5));
  fails({"data_batch_3.bin", "there is no such file"});
  fs::remove(inner / "test_batch.bin");
  fails({"test_batch.bin", folder.path().string(), "fetch_data.sh cifar10"}, Split::test);
  CHECK(error_of([] { read_cifar10("/nowhere", Split::train); }).find("expected data_batch_1.bin") !=
        std::string::npos);
}

TEST_CASE_FIXTURE(Cifar10, "Truncated, empty and mislabelled batches are refused") {
  write(second, record({9}, 3) + record({9}, 3).substr(0, 100));
  fails({second.string(), "image 1: expected 3073 bytes, got 100"});
  write(second, "");
  fails({second.string(), "empty"});
  write(second, record({9}, 3) + record({10}, 3));
  fails({second.string(), "image 1: expected a label below 10, got 10"});
  write(second, "PK\3\4 is a zip file");
  fails({second.string(), "got 18"});
  idx_files::write_gzipped(second, record({9}, 3));
  CHECK(read_cifar10(folder.path(), Split::train).count == 3);
  fs::resize_file(second, fs::file_size(second) - 8);  // the checksum and the size
  fails({second.string(), "its packing breaks off; it is truncated"});
  fs::remove(second);
  fs::create_directory(second);
  fails({second.string(), "not an ordinary file"});
}

TEST_CASE("CIFAR-100 has fine and coarse labels") {
  const TemporaryFolder folder;
  write(folder.path() / "train.bin", record({19, 99}, 1) + record({4, 0}, 2));
  const Dataset fine = read_cifar100(folder.path(), Split::train);
  CHECK(fine.classes == 100);
  CHECK(fine.labels == std::vector<std::uint32_t>{99, 0});
  CHECK(fine.samples[3] == value(1, 0, 1));
  const Dataset coarse = read_cifar100(folder.path(), Split::train, Cifar100Labels::coarse);
  CHECK(coarse.classes == 20);
  CHECK(coarse.labels == std::vector<std::uint32_t>{19, 4});
  CHECK(coarse.samples == fine.samples);
  CHECK(error_of([&] { read_cifar100(folder.path(), Split::test); }).find("fetch_data.sh cifar100") !=
        std::string::npos);
  write(folder.path() / "train.bin", record({20, 100}, 1));
  CHECK(error_of([&] { read_cifar100(folder.path(), Split::train); }).find("below 100, got 100") != std::string::npos);
}

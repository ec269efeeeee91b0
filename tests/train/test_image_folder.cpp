#include <halfstep/device.h>
#include <halfstep/error.h>
#include <halfstep/image_folder.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>

#include "harness/bits.h"
#include "harness/device.h"
#include "host/image_files.h"
#include "host/temporary_folder.h"
#include "reference/feed.h"
#include "vk/shader/shaders.h"
#include "vk/shader/spirv.h"

namespace halfstep {
namespace {

using image_files::FileBytes;
namespace fs = std::filesystem;

FileBytes noise(std::size_t count) {
  static std::mt19937 random(8);
  FileBytes bytes(count);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

/// Two classes: a cat in two sizes and a dog.
struct Pets {
  TemporaryFolder folder;
  FileBytes cat = noise(11 * 7 * 3);
  FileBytes kitten = noise(3 * 5 * 3);
  FileBytes dog = noise(8 * 8 * 3);

  Pets() {
    fs::create_directory(folder.path() / "cat");
    fs::create_directory(folder.path() / "dog");
    image_files::write(folder.path() / "cat" / "a.png", image_files::png(11, 7, 3, cat));
    image_files::write(folder.path() / "cat" / "b.PNG", image_files::png(3, 5, 3, kitten));
    image_files::write(folder.path() / "dog" / "rex.jpeg", image_files::jpeg(8, 8, 3, dog));
    image_files::write(folder.path() / "cat" / "notes.txt", noise(10));
    image_files::write(folder.path() / "notes.txt", noise(10));
  }

  ImageFolder read(const ImageFolderOptions& options) const {
    return read_image_folder(testing::device(), folder.path(), options);
  }
  std::string refusal(const ImageFolderOptions& options) const {
    try {
      read(options);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
};

/// Whether sample `index` is the resized `pixels` {height, width, 3}, up to the rounding to a byte.
bool is_resized(const Dataset& data, std::size_t index, const FileBytes& pixels, std::int64_t height,
                std::int64_t width) {
  const reference::Array image({height, width, 3}, std::vector<double>(pixels.begin(), pixels.end()));
  const reference::Array want = reference::resized(image, data.sample_shape[0], data.sample_shape[1]);
  bool same = true;
  for (std::size_t i = 0; i < want.values.size(); ++i) {
    same = same && std::abs(data.samples[index * want.values.size() + i] - want.values[i]) < 0.501;
  }
  return same;
}

/// As long as it lives, drivers compute differences in place of quotients: none may be left to them.
class WrongQuotients {
 public:
  WrongQuotients() {
    vk::patch_shaders([](std::string_view, std::vector<std::uint32_t> words) {
      constexpr std::uint32_t quotient = 136;
      constexpr std::uint32_t difference = 131;
      for (std::size_t at = vk::spirv_header_words; at < words.size(); at += words[at] >> 16) {
        if ((words[at] & 0xffff) == quotient) words[at] -= quotient - difference;
      }
      return words;
    });
  }
  ~WrongQuotients() { vk::patch_shaders({}); }
  WrongQuotients(const WrongQuotients&) = delete;
  WrongQuotients& operator=(const WrongQuotients&) = delete;
};

}  // namespace

TEST_CASE_FIXTURE(Pets, "a folder of images is read by class and name, every image resized to the same extents") {
  for (const unsigned threads : {1U, 5U}) {
    const ImageFolder pets = read({.height = 5, .width = 9, .threads = threads});
    const Dataset& data = pets.data;
    CHECK(pets.classes == std::vector<std::string>{"cat", "dog"});
    CHECK(pets.skipped.empty());
    CHECK(data.count == 3);
    CHECK(data.classes == 2);
    CHECK(data.sample_shape == Shape{5, 9, 3});
    CHECK(data.labels == std::vector<std::uint32_t>{0, 0, 1});
    REQUIRE(data.samples.size() == std::size_t{3 * 5 * 9 * 3});
    CHECK(is_resized(data, 0, cat, 11, 7));
    CHECK(is_resized(data, 1, kitten, 3, 5));
  }
  CHECK(is_resized(read({.height = 2, .width = 3}).data, 0, cat, 11, 7));
  CHECK(read({.height = 2, .width = 3, .channels = 1}).data.samples.size() == 18);
  const ImageFolder same = read({.height = 11, .width = 7});
  CHECK(std::equal(cat.begin(), cat.end(), same.data.samples.begin()));
}

TEST_CASE("images become the same bytes on every driver, however it divides") {
  // Whatever resizes them must give this, and no driver's own. It changes with the kernels, and is then taken from a
  // run of each driver.
  constexpr std::uint64_t known = 14013390712508621217U;
  const TemporaryFolder folder;
  std::mt19937 random(5);
  std::vector<fs::path> files;
  for (const auto& [height, width] : {std::pair{333U, 500U}, {500U, 333U}, {40U, 70U}, {101U, 150U}, {64U, 300U}}) {
    FileBytes pixels(std::size_t{height} * width * 3);
    for (std::uint8_t& byte : pixels) byte = static_cast<std::uint8_t>(random());
    files.push_back(folder.path() / (std::to_string(files.size()) + ".png"));
    image_files::write(files.back(), image_files::png(height, width, 3, pixels));
  }
  const auto hash = [&] {
    return testing::hash_of_bits(read_images(testing::device(), files, {.height = 64, .width = 64}).data.samples);
  };
  CHECK(hash() == known);
  const WrongQuotients driver;
  CHECK(hash() == known);
}

TEST_CASE_FIXTURE(Pets, "more images than are decoded together, and one larger than usual, keep their order") {
  for (int i = 0; i < 70; ++i) {
    const FileBytes pixel(3, static_cast<std::uint8_t>(i));
    image_files::write(folder.path() / "dog" / (std::to_string(1000 + i) + ".png"), image_files::png(1, 1, 3, pixel));
  }
  // More bytes than usual, and more columns.
  const FileBytes large(std::size_t{2700} * 2100 * 3, 77);
  image_files::write(folder.path() / "cat" / "c.png", image_files::png(2700, 2100, 3, large));
  const FileBytes high(std::size_t{9000} * 4 * 3, 78);
  image_files::write(folder.path() / "cat" / "d.png", image_files::png(9000, 4, 3, high));
  const Dataset data = read({.height = 900, .width = 250}).data;
  REQUIRE(data.count == 75);
  constexpr std::size_t size = std::size_t{900} * 250 * 3;
  const auto flat = [&](std::size_t index, std::size_t value) {
    return std::ranges::all_of(std::span(data.samples).subspan(index * size, size),
                               [&](std::uint8_t byte) { return byte == value; });
  };
  CHECK(flat(2, 77));
  CHECK(flat(3, 78));
  for (std::size_t i = 0; i < 70; ++i) CHECK(flat(4 + i, i));
}

TEST_CASE_FIXTURE(Pets, "a folder is read on a device of small buffers and few workgroups, as on any other") {
  // A page each, of which 16 bytes are for each of an image's rows and the sample's columns.
  const Device small = Device::open({}, {.limits = "buffer_bytes=4096,storage_range=4096,groups=64,memory=1048576"});
  const FileBytes high = noise(std::size_t{300} * 3 * 3);
  image_files::write(folder.path() / "cat" / "c.png", image_files::png(300, 3, 3, high));
  for (int i = 0; i < 9; ++i) {
    image_files::write(folder.path() / "dog" / (std::to_string(i) + ".png"), image_files::png(20, 20, 3, noise(1200)));
  }
  const ImageFolderOptions options{.height = 40, .width = 9};
  const ImageFolder read_there = read_image_folder(small, folder.path(), options);
  CHECK(read_there.data.count == 13);
  CHECK(read_there.data.samples == read(options).data.samples);
  image_files::write(folder.path() / "cat" / "d.png", image_files::png(37, 37, 3, noise(std::size_t{37} * 37 * 3)));
  CHECK_THROWS_WITH_AS(read_image_folder(small, folder.path(), options),
                       doctest::Contains("expected at most 4096 bytes to resize an image, got 4108 for 37 by 37"),
                       Error);
}

TEST_CASE_FIXTURE(Pets, "an image that is too large to be resized is refused, a little smaller it is resized") {
  const plan::Target& target = testing::context().target();
  // Four bytes in an invocation, each of a loop of 2 rounds for every time that an axis shrinks.
  const auto most = std::min<std::uint32_t>((target.max_rounds - 13) / 8, 10'000);
  const auto with = [&](std::uint32_t height, std::uint32_t width) {
    const FileBytes pixels = noise(std::size_t{height} * width * 3);
    image_files::write(folder.path() / "cat" / "a.png", image_files::png(height, width, 3, pixels));
    return pixels;
  };
  for (const bool upright : {false, true}) {
    const auto image = [&](std::uint32_t extent) { return upright ? with(extent, 2) : with(2, extent); };
    const FileBytes pixels = image(most);
    const Dataset data = read({.height = 1, .width = 1}).data;
    CHECK(is_resized(data, 0, pixels, upright ? most : 2, upright ? 2 : most));
    if (most == 10'000) continue;  // no limit that matters
    image(most + 1);
    CHECK(refusal({.height = 1, .width = 1}).find(fmt::format("at most {} times", most)) != std::string::npos);
  }
  if (!testing::every_variant() || target.max_storage_range > std::uint64_t{1} << 27) return;
  // The first pass leaves 16 bytes for each of the image's rows and the sample's columns: more than one binding spans.
  const auto rows = static_cast<std::uint32_t>(target.max_storage_range / (std::uint64_t{16} * 8192)) + 1;
  const FileBytes pixels = with(rows, 1);
  const auto height = static_cast<std::int64_t>(rows / 8 + 1);  // as little shrinking as every limit of rounds allows
  CHECK(is_resized(read({.height = height, .width = 8192}).data, 0, pixels, rows, 1));
}

TEST_CASE_FIXTURE(Pets, "corrupt files are named and counted, and skipped or refused by choice") {
  image_files::write(folder.path() / "cat" / "c.jpg", noise(100));
  FileBytes cut = image_files::png(8, 8, 3, dog);
  cut.resize(cut.size() / 2);
  image_files::write(folder.path() / "dog" / "cut.png", cut);
  const std::string text = refusal({});
  CHECK(text.find("got 2 that cannot be decoded") != std::string::npos);
  CHECK(text.find((folder.path() / "cat" / "c.jpg").string()) != std::string::npos);
  CHECK(text.find('\n') == std::string::npos);
  const ImageFolder pets = read({.height = 4, .width = 4, .corrupt = CorruptFiles::skip});
  CHECK(pets.data.labels == std::vector<std::uint32_t>{0, 0, 1});
  REQUIRE(pets.skipped.size() == 2);
  CHECK(pets.skipped[1].find("cut.png: [png]") != std::string::npos);
}

TEST_CASE_FIXTURE(Pets, "folders without images, and sizes that cannot be, are refused") {
  CHECK(refusal({.height = 0}).find("height and width of 1 to") != std::string::npos);
  CHECK(refusal({.channels = 2}).find("1 or 3 channels") != std::string::npos);
  fs::create_directory(folder.path() / "fish");
  CHECK(refusal({}).find("for the class fish, got none in " + (folder.path() / "fish").string()) != std::string::npos);
  CHECK(refusal({}).find("CorruptFiles::skip") != std::string::npos);
  CHECK_THROWS_WITH_AS(read_image_folder(testing::device(), folder.path() / "cat"), doctest::Contains("for each class"),
                       Error);
  CHECK_THROWS_WITH_AS(read_image_folder(testing::device(), folder.path() / "none"), doctest::Contains("cannot read"),
                       Error);
}

TEST_CASE_FIXTURE(Pets, "a class without images keeps its label where corrupt files are skipped") {
  fs::create_directory(folder.path() / "bird");
  fs::create_directory(folder.path() / "crow");
  image_files::write(folder.path() / "crow" / "a.png", noise(100));
  const ImageFolder pets = read({.height = 4, .width = 4, .corrupt = CorruptFiles::skip});
  CHECK(pets.classes == std::vector<std::string>{"bird", "cat", "crow", "dog"});
  CHECK(pets.empty_classes == std::vector<std::string>{"bird", "crow"});
  CHECK(pets.data.labels == std::vector<std::uint32_t>{1, 1, 3});
  CHECK(pets.data.classes == 4);
  CHECK(pets.skipped.size() == 1);
  fs::remove_all(folder.path() / "cat");
  fs::remove_all(folder.path() / "dog");
  CHECK(refusal({.corrupt = CorruptFiles::skip}).find("1 that cannot be decoded") != std::string::npos);
  fs::remove_all(folder.path() / "crow");
  CHECK(refusal({.corrupt = CorruptFiles::skip}).find("for each class") != std::string::npos);
}

TEST_CASE_FIXTURE(Pets, "images of a class are found in its subfolders and through links, hidden ones are not") {
  const fs::path cats = folder.path() / "cat";
  const fs::path dogs = folder.path() / "dog";
  fs::create_directories(cats / "2024" / "may");
  fs::create_directory(cats / ".thumbnails");
  for (const char* name : {"2024/may/a.png", "2024/z.JPG", ".thumbnails/a.png", "._b.png"})
    fs::copy(cats / "a.png", cats / name);
  fs::create_directory_symlink(folder.path(), cats / "everything");  // a loop, and dogs that are no cats
  fs::create_directory_symlink(cats / "2024", cats / "again");
  fs::create_directory_symlink(cats, folder.path() / "feline");
  fs::create_symlink(dogs / "rex.jpeg", dogs / "link.jpg");
  const ImageFiles found = list_image_folder(folder.path());
  CHECK(found.classes == std::vector<std::string>{"cat", "dog", "feline"});
  std::vector<std::string> names;
  for (const fs::path& file : found.files) names.push_back(file.lexically_relative(folder.path()).string());
  CHECK(names == std::vector<std::string>{"cat/2024/may/a.png", "cat/2024/z.JPG", "cat/a.png", "cat/b.PNG",
                                          "dog/link.jpg", "dog/rex.jpeg", "feline/2024/may/a.png", "feline/2024/z.JPG",
                                          "feline/a.png", "feline/b.PNG"});
  CHECK(found.labels == std::vector<std::uint32_t>{0, 0, 0, 0, 1, 1, 2, 2, 2, 2});
  fs::create_symlink(dogs / "nothing", dogs / "gone.png");
  CHECK(refusal({}).find("gone.png: [image] it cannot be opened") != std::string::npos);
}

TEST_CASE_FIXTURE(Pets, "a folder to test on has the labels of the folder trained on, whichever classes it has") {
  const std::vector<std::string> classes{"bird", "cat", "cow", "dog"};
  fs::create_directory(folder.path() / "cow");
  const ImageFiles found = list_image_folder(folder.path(), classes);
  CHECK(found.classes == classes);
  CHECK(found.labels == std::vector<std::uint32_t>{1, 1, 3});
  const ImageFolder pets = read_images(testing::device(), found, {.height = 4, .width = 4});
  CHECK(pets.data.labels == found.labels);
  CHECK(pets.data.classes == 4);
  CHECK(pets.empty_classes == std::vector<std::string>{"bird", "cow"});
  fs::create_directory(folder.path() / "horse");
  CHECK_THROWS_WITH_AS(list_image_folder(folder.path(), classes), doctest::Contains("got 'horse'"), Error);
  ImageFiles wrong = found;
  wrong.labels.pop_back();
  CHECK_THROWS_WITH_AS(read_images(testing::device(), wrong), doctest::Contains("got 2 labels"), Error);
  wrong.labels.push_back(4);
  CHECK_THROWS_WITH_AS(read_images(testing::device(), wrong), doctest::Contains("one too large"), Error);
}

TEST_CASE_FIXTURE(Pets, "files that are listed are read in their order, whatever they are called, and bad ones named") {
  const fs::path odd = folder.path() / "a dog";
  fs::copy_file(folder.path() / "dog" / "rex.jpeg", odd);
  const fs::path files[] = {odd,
                            folder.path() / "notes.txt",
                            folder.path() / "cat" / "a.png",
                            folder.path() / "no.png",
                            folder.path() / "dog",
                            folder.path() / "two\nlines.png"};
  const ImageFolder read =
      read_images(testing::device(), files, {.height = 11, .width = 7, .corrupt = CorruptFiles::skip});
  CHECK(read.files == std::vector<fs::path>{files[0], files[2]});
  CHECK(read.data.count == 2);
  CHECK(read.data.labels == std::vector<std::uint32_t>{0, 0});
  CHECK(is_resized(read.data, 1, cat, 11, 7));
  REQUIRE(read.skipped.size() == 4);
  CHECK(read.skipped[0].starts_with(files[1].string()));
  CHECK(read.skipped[1].find("cannot be opened") != std::string::npos);
  CHECK(read.skipped[2].find("not an ordinary file") != std::string::npos);
  CHECK(read.skipped[3].find("/two\\x0alines.png: [image] it cannot be opened") != std::string::npos);
  CHECK(read_images(testing::device(), std::span(files).subspan(3), {.corrupt = CorruptFiles::skip}).data.count == 0);
  CHECK_THROWS_WITH_AS(read_images(testing::device(), files), doctest::Contains("notes.txt"), Error);
  // No more threads than files, however many are asked for.
  const ImageFolderOptions many{
      .height = 11, .width = 7, .corrupt = CorruptFiles::skip, .threads = std::numeric_limits<unsigned>::max()};
  CHECK(read_images(testing::device(), files, many).data.samples == read.data.samples);
}

TEST_CASE_FIXTURE(Pets, "an image that is written as PNG is read again as it was") {
  const fs::path path = folder.path() / "written.png";
  write_png(path, cat, 11, 7);
  const fs::path files[] = {path};
  CHECK(read_images(testing::device(), files, {.height = 11, .width = 7}).data.samples == cat);
  const Image image = read_image(path);
  CHECK(image.height == 11);
  CHECK(image.width == 7);
  CHECK(image.pixels == cat);
  CHECK_THROWS_WITH_AS(read_image(folder.path() / "cat" / "notes.txt"), doctest::Contains("notes.txt"), Error);
  CHECK_THROWS_WITH_AS(read_image(folder.path() / "none.png"), doctest::Contains("cannot be opened"), Error);
  CHECK_THROWS_WITH_AS(read_image(folder.path() / "cat"), doctest::Contains("not an ordinary file"), Error);
  CHECK_THROWS_WITH_AS(write_png(path, cat, 11, 8), doctest::Contains("{11, 8, 3}"), Error);
  CHECK_THROWS_AS(write_png(path, {}, 0, 7), Error);
  const std::vector<std::uint8_t> row(std::size_t{65536} * 3);
  CHECK_THROWS_WITH_AS(write_png(path, row, 65536, 1),
                       doctest::Contains("expected a height and width from 1 to 65535, got 65536 and 1"), Error);
  CHECK_THROWS_WITH_AS(write_png(path, row, 1, 65536), doctest::Contains("got 1 and 65536"), Error);
  CHECK_THROWS_AS(write_png(folder.path() / "none" / "x.png", cat, 11, 7), Error);
}

}  // namespace halfstep

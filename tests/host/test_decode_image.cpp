#include <halfstep/error.h>

#include <doctest/doctest.h>

#include <cstdlib>
#include <random>

#include "host/image_files.h"
#include "train/decode_image.h"

using namespace halfstep;
using image_files::FileBytes;
using train::DecodedImage;

namespace {

// A gradient, which JPEG keeps nearly as it is.
FileBytes gradient(std::uint32_t height, std::uint32_t width, std::uint32_t channels) {
  FileBytes pixels;
  for (std::uint32_t y = 0; y < height; y++) {
    for (std::uint32_t x = 0; x < width; x++) {
      for (std::uint32_t c = 0; c < channels; c++)
        pixels.push_back(static_cast<std::uint8_t>(20 + 5 * y + 3 * x + 9 * c));
    }
  }
  return pixels;
}

std::string refusal(const FileBytes& file) {
  try {
    train::decode_image(file, 3);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

int largest_difference(const FileBytes& a, const FileBytes& b) {
  REQUIRE(a.size() == b.size());
  int largest = 0;
  for (std::size_t i = 0; i < a.size(); i++) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

}  // namespace

TEST_CASE("PNG and JPEG files become pixels, in as many channels as asked for") {
  for (const std::uint32_t channels : {1U, 3U}) {
    const FileBytes pixels = gradient(7, 13, channels);
    const DecodedImage png = train::decode_image(image_files::png(7, 13, channels, pixels), channels);
    CHECK(png.height == 7);
    CHECK(png.width == 13);
    CHECK(png.bytes == pixels);
    const DecodedImage jpeg = train::decode_image(image_files::jpeg(7, 13, channels, pixels), channels);
    CHECK(jpeg.height == 7);
    CHECK(jpeg.width == 13);
    CHECK(largest_difference(jpeg.bytes, pixels) <= 8);
  }
  const FileBytes grey = gradient(5, 3, 1);
  const FileBytes file = image_files::png(5, 3, 1, grey);
  const DecodedImage colours = train::decode_image(file, 3);
  REQUIRE(colours.bytes.size() == 45);
  for (std::size_t i = 0; i < 45; i++) CHECK(colours.bytes[i] == grey[i / 3]);
  CHECK(train::decode_image(image_files::jpeg(5, 3, 1, grey), 3).bytes.size() == 45);
}

TEST_CASE("What is transparent lies on black") {
  const DecodedImage image = train::decode_image(image_files::png(1, 2, 4, {200, 100, 50, 0, 200, 100, 50, 255}), 3);
  CHECK(image.bytes == FileBytes{0, 0, 0, 200, 100, 50});
}

TEST_CASE("Broken images are refused in one line, wherever they are cut") {
  CHECK(refusal({}).find("expected a PNG or JPEG file") != std::string::npos);
  CHECK(refusal({'G', 'I', 'F', '8', '9', 'a'}).find("expected a PNG or JPEG file") != std::string::npos);
  const FileBytes pixels = gradient(20, 30, 3);
  for (const FileBytes& whole : {image_files::png(20, 30, 3, pixels), image_files::jpeg(20, 30, 3, pixels)}) {
    CHECK(refusal(whole).empty());
    for (std::size_t size = 0; size < whole.size() - 12; size++) {
      const std::string text = refusal(FileBytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
      CAPTURE(size);
      CHECK(!text.empty());
      CHECK(text.find('\n') == std::string::npos);
    }
  }
}

TEST_CASE("Images that claim to be huge are refused before anything is allocated") {
  FileBytes png = image_files::png(20, 30, 1, gradient(20, 30, 1));
  CHECK_THROWS_AS(train::check_extents(1U << 20, 1U << 20), Error);
  CHECK_THROWS_AS(train::check_extents(0, 5), Error);
  train::check_extents(1U << 13, 1U << 13);
  FileBytes jpeg = image_files::jpeg(20, 30, 3, gradient(20, 30, 3));
  for (std::size_t i = 0; i + 8 < jpeg.size(); i++) {
    if (jpeg[i] != 0xFF || jpeg[i + 1] != 0xC0) continue;
    for (std::size_t k = 5; k < 9; k++) jpeg[i + k] = 0xFF;  // 65535 by 65535
    break;
  }
  CHECK(!refusal(jpeg).empty());
}

TEST_CASE("Arbitrary bytes never do worse than an Error") {
  std::mt19937 random(3);
  const FileBytes pixels = gradient(9, 11, 3);
  for (const FileBytes& whole : {image_files::png(9, 11, 3, pixels), image_files::jpeg(9, 11, 3, pixels)}) {
    for (int round = 0; round < 2000; round++) {
      FileBytes file = whole;
      for (auto edits = 1 + random() % 4; edits > 0; edits--)
        file[random() % file.size()] = static_cast<std::uint8_t>(random());
      try {
        const DecodedImage image = train::decode_image(file, 3);
        CHECK(image.bytes.size() == std::size_t{3} * image.height * image.width);
      } catch (const Error&) {
      }
    }
  }
}

#include <halfstep/error.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>
#include <string_view>

#include "host/image_files.h"
#include "io/decode_image.h"

using namespace halfstep;
using image_files::FileBytes;
using io::DecodedImage;

namespace {

// A gradient, which JPEG preserves almost exactly.
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
    io::decode_image(file, 3);
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
    const DecodedImage png = io::decode_image(image_files::png(7, 13, channels, pixels), channels);
    CHECK(png.height == 7);
    CHECK(png.width == 13);
    CHECK(png.bytes == pixels);
    const DecodedImage jpeg = io::decode_image(image_files::jpeg(7, 13, channels, pixels), channels);
    CHECK(jpeg.height == 7);
    CHECK(jpeg.width == 13);
    CHECK(largest_difference(jpeg.bytes, pixels) <= 8);
  }
  const FileBytes grey = gradient(5, 3, 1);
  const FileBytes file = image_files::png(5, 3, 1, grey);
  const DecodedImage colours = io::decode_image(file, 3);
  REQUIRE(colours.bytes.size() == 45);
  for (std::size_t i = 0; i < 45; i++) CHECK(colours.bytes[i] == grey[i / 3]);
  CHECK(io::decode_image(image_files::jpeg(5, 3, 1, grey), 3).bytes.size() == 45);
}

TEST_CASE("The numbers of PNG files are used as they are stored, whatever gamma they claim") {
  const FileBytes grey{0, 1, 16, 64, 128, 192, 250, 255};
  FileBytes colours;
  FileBytes words;
  for (const std::uint8_t value : grey) {
    colours.insert(colours.end(), 3, value);
    image_files::append(words, value < 128 ? 257U * value + 128 : 257U * value - 128,
                        2);  // the farthest that are nearest to it
  }
  FileBytes linear;
  image_files::append(linear, 100000, 4);
  for (const FileBytes& claim :
       {FileBytes{}, image_files::png_chunk("gAMA", linear), image_files::png_chunk("sRGB", {0})}) {
    for (const bool interlaced : {false, true}) {
      const image_files::PngPixels pixels{.height = 2, .width = 4, .interlaced = interlaced};
      image_files::PngPixels wide = pixels;
      wide.bits = 16;
      for (const FileBytes& file :
           {image_files::png_of_rows(pixels, grey, claim), image_files::png_of_rows(wide, words, claim)}) {
        CHECK(io::decode_image(file, 1).bytes == grey);
        CHECK(io::decode_image(file, 3).bytes == colours);
      }
    }
  }
}

TEST_CASE("A colour has the same grey in a PNG file as in a JPEG file") {
  for (const auto& [colour, grey] :
       {std::pair(FileBytes{255, 0, 0}, 76), std::pair(FileBytes{0, 255, 0}, 150), std::pair(FileBytes{0, 0, 255}, 29),
        std::pair(FileBytes{200, 60, 30}, 98), std::pair(FileBytes{255, 255, 255}, 255)}) {
    CHECK(io::decode_image(image_files::png(1, 1, 3, colour), 1).bytes == FileBytes{static_cast<std::uint8_t>(grey)});
    CHECK(std::abs(io::decode_image(image_files::jpeg(1, 1, 3, colour), 1).bytes[0] - grey) <= 1);
  }
}

TEST_CASE("What is transparent lies on black") {
  const DecodedImage image = io::decode_image(image_files::png(1, 2, 4, {200, 100, 50, 0, 200, 100, 50, 255}), 3);
  CHECK(image.bytes == FileBytes{0, 0, 0, 200, 100, 50});
  const FileBytes half = image_files::png(1, 3, 4, {255, 255, 255, 128, 255, 255, 255, 16, 200, 100, 50, 128});
  CHECK(io::decode_image(half, 3).bytes == FileBytes{128, 128, 128, 16, 16, 16, 100, 50, 25});
  CHECK(io::decode_image(half, 1).bytes == FileBytes{128, 16, 62});
  const FileBytes grey =
      image_files::png_of_rows({.width = 2, .colour_type = PNG_COLOR_TYPE_GRAY_ALPHA}, {200, 128, 9, 0});
  CHECK(io::decode_image(grey, 1).bytes == FileBytes{100, 0});
  CHECK(io::decode_image(grey, 3).bytes == FileBytes{100, 100, 100, 0, 0, 0});
  // Two bits a pixel, of which the second colour is transparent.
  FileBytes colours = image_files::png_chunk("PLTE", {10, 20, 30, 40, 50, 60, 70, 80, 90});
  const FileBytes alpha = image_files::png_chunk("tRNS", {255, 0});
  colours.insert(colours.end(), alpha.begin(), alpha.end());
  const image_files::PngPixels pixels{.width = 3, .bits = 2, .colour_type = PNG_COLOR_TYPE_PALETTE};
  CHECK(io::decode_image(image_files::png_of_rows(pixels, {0b00011000}, colours), 3).bytes ==
        FileBytes{10, 20, 30, 0, 0, 0, 70, 80, 90});
  // Without it, hidden colours would be shown.
  const char* damaged = "transparent colours in the chunk tRNS, got a damaged one";
  colours.back() ^= 1;  // its checksum
  CHECK(refusal(image_files::png_of_rows(pixels, {0b00011000}, colours)).find(damaged) != std::string::npos);
  colours.resize(colours.size() - alpha.size());
  const FileBytes longer = image_files::png_chunk("tRNS", {255, 0, 255, 255});
  colours.insert(colours.end(), longer.begin(), longer.end());
  CHECK(refusal(image_files::png_of_rows(pixels, {0b00011000}, colours)).find(damaged) != std::string::npos);
}

TEST_CASE("An interlaced PNG file has the pixels of one that is not") {
  const FileBytes rows = gradient(9, 11, 8);
  image_files::PngPixels pixels{.height = 9, .width = 11, .bits = 16, .colour_type = PNG_COLOR_TYPE_RGB_ALPHA};
  const FileBytes straight = image_files::png_of_rows(pixels, rows);
  pixels.interlaced = true;
  const FileBytes interlaced = image_files::png_of_rows(pixels, rows);
  for (const std::int64_t channels : {1, 3}) {
    CHECK(io::decode_image(interlaced, channels).bytes == io::decode_image(straight, channels).bytes);
  }
}

TEST_CASE("Images are turned the way that their EXIF orientation says") {
  // Stored as two rows of three.
  const std::array<std::uint8_t, 6> stored{20, 60, 100, 140, 180, 220};
  const std::array<std::array<std::size_t, 6>, 9> places{{{0, 1, 2, 3, 4, 5},  // 0 is none
                                                          {0, 1, 2, 3, 4, 5},
                                                          {2, 1, 0, 5, 4, 3},
                                                          {5, 4, 3, 2, 1, 0},
                                                          {3, 4, 5, 0, 1, 2},
                                                          {0, 3, 1, 4, 2, 5},
                                                          {3, 0, 4, 1, 5, 2},
                                                          {5, 2, 4, 1, 3, 0},
                                                          {2, 5, 1, 4, 0, 3}}};
  for (const std::uint32_t channels : {1U, 3U}) {
    FileBytes pixels;
    for (const std::uint8_t value : stored) pixels.insert(pixels.end(), channels, value);
    const FileBytes png = image_files::png(2, 3, channels, pixels);
    const FileBytes jpeg = image_files::jpeg(2, 3, channels, pixels);
    for (std::uint32_t orientation = 0; orientation < places.size(); orientation++) {
      CAPTURE(orientation);
      FileBytes want;
      for (const std::size_t place : places[orientation]) want.insert(want.end(), channels, stored[place]);
      for (const bool big_endian : {false, true}) {
        const FileBytes exif = image_files::exif(orientation, big_endian);
        for (const FileBytes& file : {image_files::with_exif(png, exif), image_files::with_exif(jpeg, exif)}) {
          const DecodedImage image = io::decode_image(file, channels);
          CHECK(image.height == (orientation < 5 ? 2 : 3));
          CHECK(image.width == (orientation < 5 ? 3 : 2));
          CHECK(largest_difference(image.bytes, want) <= 4);
        }
      }
    }
  }
}

TEST_CASE("EXIF data that are cut, overlong or of another kind turn nothing and harm nothing") {
  const FileBytes pixels = gradient(4, 6, 3);
  const auto height = [&](const FileBytes& exif) {
    const auto of = [&](const FileBytes& file) {
      return io::decode_image(image_files::with_exif(file, exif), 3).height;
    };
    const std::uint32_t png = of(image_files::png(4, 6, 3, pixels));
    CHECK(of(image_files::jpeg(4, 6, 3, pixels)) == png);
    return png;
  };
  for (const bool big_endian : {false, true}) {
    const FileBytes whole = image_files::exif(6, big_endian);
    CHECK(height(whole) == 6);
    for (std::size_t size = 0; size < whole.size(); size++) {
      const FileBytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      CHECK(height(cut) == (size < 32 ? 4 : 6));  // the orientation is in the 31st and 32nd byte
    }
    const auto broken = [&](std::size_t at, std::uint8_t byte) {
      FileBytes exif = whole;
      exif[at] = byte;
      return height(exif);
    };
    for (const std::size_t at : {0U, 2U, 4U, 5U, 6U, 7U}) CHECK(broken(at, 0xFF) == 4);  // byte order, magic, offset
    CHECK(broken(big_endian ? 30 : 31, 1) == 4);                                         // orientation 262
    CHECK(broken(big_endian ? 25 : 24, 4) == 4);                                         // another type
    CHECK(broken(8, 0xFF) == 6);                                                         // more tags than there are
  }
  CHECK(height(image_files::exif(9, true)) == 4);
  FileBytes other = image_files::with_exif(image_files::jpeg(4, 6, 3, pixels), image_files::exif(6, true));
  other[6] = 'X';  // "Xxif": XMP and others use the same marker
  CHECK(io::decode_image(other, 3).height == 4);
  FileBytes changed = image_files::with_exif(image_files::png(4, 6, 3, pixels), image_files::exif(6, true));
  changed[33 + 8 + 20] ^= 1;  // a tag that is not the orientation; the chunk's checksum is wrong then
  CHECK(io::decode_image(changed, 3).height == 4);
}

TEST_CASE("Four inks become red, green and blue, stored either way round") {
  // Each ink alone, none, all, and half cyan under half black, in areas the size of JPEG's blocks.
  const std::array<std::array<std::uint8_t, 4>, 7> inks{{{0, 0, 0, 0},
                                                         {255, 0, 0, 0},
                                                         {0, 255, 0, 0},
                                                         {0, 0, 255, 0},
                                                         {0, 0, 0, 255},
                                                         {255, 255, 255, 255},
                                                         {128, 0, 0, 128}}};
  const std::array<std::array<std::uint8_t, 3>, 7> colours{
      {{255, 255, 255}, {0, 255, 255}, {255, 0, 255}, {255, 255, 0}, {0, 0, 0}, {0, 0, 0}, {63, 127, 127}}};
  for (const bool inverted : {false, true}) {
    FileBytes pixels;
    FileBytes want;
    FileBytes grey;
    for (std::size_t i = 0; i < inks.size() * 16 * 16; i++) {
      const auto& ink = inks[i / 256];
      const auto& colour = colours[i / 256];
      for (const std::uint8_t value : ink) pixels.push_back(inverted ? static_cast<std::uint8_t>(255 - value) : value);
      want.insert(want.end(), colour.begin(), colour.end());
      grey.push_back(static_cast<std::uint8_t>(0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2] + 0.5));
    }
    for (const bool ycck : {false, true}) {
      CAPTURE(ycck);
      // libjpeg can tell YCCK from CMYK only by Adobe's marker.
      if (ycck && !inverted) continue;
      const FileBytes file = image_files::jpeg(7 * 16, 16, 4, pixels, {.ycck = ycck, .adobe_marker = inverted});
      CHECK(largest_difference(io::decode_image(file, 3).bytes, want) <= 4);
      CHECK(largest_difference(io::decode_image(file, 1).bytes, grey) <= 4);
    }
  }
  const FileBytes file = image_files::jpeg(2, 1, 4, {255, 255, 255, 0, 255, 255, 255, 255}, {.adobe_marker = true});
  const DecodedImage turned = io::decode_image(image_files::with_exif(file, image_files::exif(8, false)), 3);
  CHECK(turned.width == 2);
  CHECK(largest_difference(turned.bytes, {0, 0, 0, 255, 255, 255}) <= 4);
}

TEST_CASE("Numbers in a JPEG file's markers that say nothing of its pixels do not make it damaged") {
  const auto changed = [](FileBytes file, std::string_view name, std::size_t after, std::uint8_t byte) {
    const auto found = std::ranges::search(file, name);
    REQUIRE(!found.empty());
    found.begin()[static_cast<std::ptrdiff_t>(after)] = byte;
    return file;
  };
  const FileBytes file = image_files::jpeg(7, 13, 3, gradient(7, 13, 3));
  CHECK(io::decode_image(changed(file, "JFIF", 5, 2), 3).bytes == io::decode_image(file, 3).bytes);  // its version
  const FileBytes inks = image_files::jpeg(7, 13, 4, gradient(7, 13, 4), {.ycck = true, .adobe_marker = true});
  // No transform that Adobe's marker defines.
  CHECK(io::decode_image(changed(inks, "Adobe", 11, 9), 3).bytes == io::decode_image(inks, 3).bytes);
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
  CHECK_THROWS_AS(io::check_extents(1U << 20, 1U << 20), Error);
  CHECK_THROWS_AS(io::check_extents(0, 5), Error);
  io::check_extents(1U << 13, 1U << 13);
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
  const FileBytes exif = image_files::exif(6, true);
  for (const FileBytes& whole :
       {image_files::png(9, 11, 3, pixels), image_files::jpeg(9, 11, 3, pixels),
        image_files::png_of_rows(
            {.height = 9, .width = 11, .bits = 16, .colour_type = PNG_COLOR_TYPE_RGB_ALPHA, .interlaced = true},
            gradient(9, 11, 8)),
        image_files::with_exif(image_files::jpeg(9, 11, 3, pixels), exif),
        image_files::jpeg(9, 11, 4, gradient(9, 11, 4), {.adobe_marker = true})}) {
    for (int round = 0; round < 2000; round++) {
      FileBytes file = whole;
      for (auto edits = 1 + random() % 4; edits > 0; edits--)
        file[random() % file.size()] = static_cast<std::uint8_t>(random());
      try {
        const DecodedImage image = io::decode_image(file, 3);
        CHECK(image.bytes.size() == std::size_t{3} * image.height * image.width);
      } catch (const Error&) {
      }
    }
  }
}

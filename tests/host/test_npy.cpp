#include <halfstep/data.h>
#include <halfstep/error.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <random>
#include <string>

#include "temporary_folder.h"

namespace halfstep {
namespace {

/// A file as NumPy writes it: its header is padded so that the elements start at a multiple of `align` bytes.
std::string npy(const std::string& header, const std::string& data, int major = 1, std::size_t align = 64) {
  const std::size_t before = major == 1 ? 10 : 12;
  std::string text = header;
  while ((before + text.size() + 1) % align != 0) text += ' ';
  text += '\n';
  std::string file = "\x93NUMPY";
  file += static_cast<char>(major);
  file += '\0';
  for (std::size_t i = 0; i < before - 8; ++i) file += static_cast<char>(text.size() >> (8 * i));
  return file + text + data;
}

std::string header(const std::string& type, const std::string& shape, const std::string& order = "False") {
  return fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", type, order, shape);
}

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <typename T>
std::vector<T> values_of(const Field& field) {
  std::vector<T> values(field.data.size() / sizeof(T));
  std::memcpy(values.data(), field.data.data(), field.data.size());
  return values;
}

class Files {
 public:
  Field read(const std::string& file, std::uint32_t bound = 0) {
    std::filesystem::remove(path_);  // what is mapped stays as it is
    std::ofstream(path_, std::ios::binary) << file;
    return read_npy(path_, "x", bound);
  }
  std::string refusal(const std::string& file) {
    try {
      read(file);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::bad_file);
      CHECK(std::string(error.what()).find(path_.string()) != std::string::npos);
      return error.what();
    }
    return "";
  }

 private:
  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "x.npy";
};

using Words = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("arrays of every type and version are read, mapped or copied") {
  Files files;
  for (const int major : {1, 2, 3}) {
    for (const std::size_t align : {64U, 1U, 3U}) {
      const Field f = files.read(npy(header("<f4", "(2, 3)"), bytes_of<float>({1, 2, 3, 4, 5, 6.5F}), major, align));
      CHECK(f.type == ElementType::f32);
      CHECK(f.shape == Shape{3});
      CHECK(f.count() == 2);
      CHECK(values_of<float>(f) == std::vector<float>{1, 2, 3, 4, 5, 6.5F});
      const Field u = files.read(npy(header("<u2", "(3,)"), bytes_of<std::uint16_t>({7, 8, 65535}), major, align));
      CHECK(u.type == ElementType::u16);
      CHECK(u.shape.empty());
      CHECK(u.count() == 3);
      CHECK(values_of<std::uint16_t>(u) == std::vector<std::uint16_t>{7, 8, 65535});
    }
  }
  CHECK(files.read(npy(header("|u1", "(1, 2, 2)"), "abcd")).shape == Shape{2, 2});
  CHECK(files.read(npy(header("|b1", "(2,)"), std::string("\0\1", 2))).type == ElementType::u8);
  CHECK(values_of<std::uint32_t>(files.read(npy(header("<u4", "(1,)"), bytes_of<std::uint32_t>({9})))) == Words{9});
  const Field labels = files.read(npy(header("<i8", "(3,)"), bytes_of<std::int64_t>({0, 4, 4294967295})), 5);
  CHECK(values_of<std::uint32_t>(labels) == Words{0, 4, 4294967295});
  CHECK(labels.bound == 5);
  CHECK(values_of<std::uint32_t>(files.read(npy(header("<i4", "(2,)"), bytes_of<std::int32_t>({3, 1})))) ==
        Words{3, 1});
  CHECK(files.read(npy(header("<f4", "(0, 3)"), "")).count() == 0);
  CHECK(files.read(npy("{\"shape\":(1,),\"fortran_order\":False,\"descr\":\"|u1\"}", "a")).count() == 1);
}

TEST_CASE("what is no array of these is refused by what is wrong") {
  Files files;
  const auto refused = [&](const std::string& file, const char* message) {
    const std::string text = files.refusal(file);
    INFO(text);
    INFO(message);
    CHECK(text.find(message) != std::string::npos);
  };
  refused("", "expected an array that NumPy saved");
  refused(std::string("\x93NUMPX\1\0\0\0", 10), "expected an array that NumPy saved");
  refused(npy(header("|u1", "(1,)"), "a", 4), "expected version 1, 2 or 3 of the format, got 4");
  refused(npy(header("|u1", "(1,)"), "a").substr(0, 40), "expected a header of at most 30 bytes");
  refused(npy(header("<f8", "(1,)"), "12345678"), "expected elements of |u1, |b1, <u2, <u4, <i4, <i8 or <f4, got <f8");
  refused(npy(header(">u2", "(1,)"), "12"), "got >u2");
  refused(npy(header("<f4", "(2, 1)", "True"), "12345678"), "got Fortran order");
  refused(npy(header("<f4", "()"), "1234"), "got a scalar");
  refused(npy(header("<f4", "(2,)"), "1234567"), "expected the elements of {2} that its header says, got 7 bytes");
  refused(npy(header("<f4", "(2,)"), "123456789abc"), "got 12 bytes");
  refused(npy(header("<f4", "(2, 0)"), ""), "expected positive extents, got {2, 0}");
  refused(npy(header("<f4", "(0, 2)"), "1234"), "got 4 bytes");
  refused(npy(header("|u1", "(4611686018427387904, 4)"), ""), "that its header says, got 0 bytes");
  refused(npy(header("|u1", "(4611686018427387904, 4, 4)"), "a"), "that its header says, got 1 bytes");
  refused(npy(header("|u1", "(-1,)"), "a"), "expected extents from 0 on");
  refused(npy(header("|u1", "(99999999999999999999,)"), "a"), "expected extents from 0 on");
  refused(npy(header("<i8", "(1,)"), bytes_of<std::int64_t>({-1})), "expected integers from 0 to 2^32 - 1, got -1");
  refused(npy(header("<i8", "(2,)"), bytes_of<std::int64_t>({0, 4294967296})), "got 4294967296 in element 1");
  refused(npy(header("<i4", "(1,)"), bytes_of<std::int32_t>({-7})), "got -7 in element 0");
  refused(npy("{'descr': '|u1', 'fortran_order': False}", "a"), "'fortran_order' and 'shape' and no more");
  refused(npy("{'descr': '|u1', 'descr': '|u1', }", "a"), "once each, got 'descr'");
  refused(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "1234"), "which is no dictionary");
  refused(npy("{'descr': '|u1', 'fortran_order': Maybe, 'shape': (1,)}", "a"), "expected True or False");
  refused(npy(header("|u1", "(1,)") + "x", "a"), "and no more in its header");
  CHECK_THROWS_AS(read_npy("/nowhere/x.npy", "x"), Error);
  CHECK_THROWS_AS(read_npy("/", "x"), Error);
}

TEST_CASE("an array with any byte changed or missing is read whole or refused") {
  Files files;
  std::mt19937 random(2);
  const std::string good = npy(header("<i4", "(3, 2)"), bytes_of<std::int32_t>({1, 2, 3, 4, 5, 6}), 1, 1);
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string file = good;
    if (i % 4 == 0) {
      file.resize(random() % file.size());
    } else {
      file[random() % file.size()] = static_cast<char>(random());
    }
    try {
      const Field field = files.read(file);
      CHECK(field.data.size() == static_cast<std::size_t>(field.count() * elements(field.shape) * bytes(field.type)));
    } catch (const Error&) {
      ++refused;
    }
  }
  CHECK(refused >= 500);  // every file that ends early
}

}  // namespace halfstep

#include <halfstep/checkpoint.h>
#include <halfstep/error.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>

#include "host/temporary_folder.h"
#include "io/safetensors.h"

using namespace halfstep;
using io::SafetensorsFile;
using io::StoredTensor;
using io::write_safetensors;
namespace fs = std::filesystem;

namespace {

Bytes bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string text_of(Bytes bytes) {
  std::string text(bytes.size(), '\0');
  if (!bytes.empty()) std::memcpy(text.data(), bytes.data(), bytes.size());
  return text;
}

// A file with the given header and data, valid or not.
std::string file_of(const std::string& header, const std::string& data) {
  std::string size;
  for (int shift = 0; shift < 64; shift += 8) size.push_back(static_cast<char>(header.size() >> shift));
  return size + header + data;
}

struct Fixture {
  TemporaryFolder folder;
  fs::path path = folder.path() / "model.safetensors";

  void put(const std::string& contents) const { std::ofstream(path, std::ios::binary) << contents; }

  std::string contents() const {
    std::ostringstream out;
    out << std::ifstream(path, std::ios::binary).rdbuf();
    return out.str();
  }

  // Checks that a file is refused with one line that names it and contains all `parts`.
  void refuses(const std::string& contents, std::initializer_list<std::string_view> parts) const {
    put(contents);
    std::string text;
    try {
      const SafetensorsFile file(path);
    } catch (const Error& error) {
      text = error.what();
    }
    INFO(text);
    CHECK(text.find(path.string()) != std::string::npos);
    CHECK(text.find('\n') == std::string::npos);
    for (const std::string_view part : parts) CHECK(text.find(part) != std::string::npos);
  }

  void refuses_header(const std::string& header, std::initializer_list<std::string_view> parts) const {
    refuses(file_of(header, "12345678"), parts);
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "What is written is read back") {
  write_safetensors(path,
                    {{"b", "F16", {3}, bytes_of("aabbcc")},
                     {"conv \"1\"/weight", "F32", {2, 1}, bytes_of("AAAABBBB")},
                     {"none", "U8", {0, 7}, {}},
                     {"scalar", "U32", {}, bytes_of("wxyz")}},
                    {{"seed", "42"}, {"text", "line\nbreak"}});
  const SafetensorsFile file(path);
  REQUIRE(file.tensors().size() == 4);
  CHECK(file.metadata() == io::Metadata{{"seed", "42"}, {"text", "line\nbreak"}});
  const StoredTensor* weight = file.find("conv \"1\"/weight");
  REQUIRE(weight != nullptr);
  CHECK(weight->dtype == "F32");
  CHECK(weight->shape == Shape{2, 1});
  CHECK(text_of(weight->data) == "AAAABBBB");
  CHECK(text_of(file.find("scalar")->data) == "wxyz");
  CHECK(file.find("scalar")->shape.empty());
  CHECK(file.find("none")->data.empty());
  CHECK(file.find("b")->data.size() == 6);
  CHECK(file.find("a") == nullptr);
}

TEST_CASE_FIXTURE(Fixture, "Metadata that is no UTF-8 is written with U+FFFD in its place") {
  write_safetensors(path, {{"a", "U8", {1}, bytes_of("x")}}, {{"model", "mod\xe8le"}, {"note", "\xff"}});
  CHECK(SafetensorsFile(path).metadata() == io::Metadata{{"model", "mod\ufffdle"}, {"note", "\ufffd"}});
}

TEST_CASE_FIXTURE(Fixture, "A tensor whose name is no UTF-8, and would not be found again, is not written") {
  CHECK_THROWS_WITH_AS(write_safetensors(path, {{"couch\xe9", "U8", {1}, bytes_of("x")}}, {}),
                       doctest::Contains("expected names in UTF-8, got another byte after 'couch'"), Error);
  CHECK(!fs::exists(path));
}

TEST_CASE_FIXTURE(Fixture, "The same tensors give the same bytes, aligned, whatever their order") {
  const StoredTensor a{"a", "F16", {1}, bytes_of("12")};
  const StoredTensor b{"b", "F32", {1}, bytes_of("3456")};
  write_safetensors(path, {a, b}, {{"k", "v"}});
  const std::string first = contents();
  write_safetensors(path, {b, a}, {{"k", "v"}});
  CHECK(first == contents());
  CHECK((first.size() - 6) % 8 == 0);
  CHECK(first.substr(first.size() - 6) == "345612");
}

TEST_CASE_FIXTURE(Fixture, "A tensor whose bytes do not fit its type is not written") {
  CHECK_THROWS_AS(write_safetensors(path, {{"a", "F32", {2}, bytes_of("1234")}}, {}), Error);
  CHECK_THROWS_AS(write_safetensors(path, {{"a", "F33", {1}, bytes_of("1234")}}, {}), Error);
  CHECK_THROWS_AS(write_safetensors(path, {{"a", "U8", {1}, bytes_of("1")}, {"a", "U8", {1}, bytes_of("2")}}, {}),
                  Error);
  CHECK_FALSE(fs::exists(path));
}

TEST_CASE_FIXTURE(Fixture, "Files that are no safetensors are refused") {
  CHECK_THROWS_AS(SafetensorsFile(folder.path() / "missing"), Error);
  CHECK_THROWS_AS(SafetensorsFile(folder.path()), Error);
  refuses("", {"expected at least 8 bytes, got 0"});
  refuses("1234567", {"got 7"});
  refuses(std::string("\0\0\0\0\0\0\0\x10", 8) + "{}", {"header of at most 2 bytes, got 1152921504606846976"});
  refuses(std::string(8, '\xff'), {"got 18446744073709551615"});
  refuses(file_of("", ""), {"JSON"});
  refuses(file_of("[1, 2]", ""), {"JSON object"});
  refuses(file_of("{\"a\": ", ""), {"JSON"});
  refuses(file_of("{\"\xff\": 1}", ""), {"JSON"});
  refuses(file_of("\n\n\n}", ""), {"JSON"});
}

TEST_CASE_FIXTURE(Fixture, "Headers that contradict themselves or the data are refused, and the tensor named") {
  const std::string good = R"({"dtype":"U8","shape":[8],"data_offsets":[0,8]})";
  put(file_of("{\"a\":" + good + "}", "12345678"));
  CHECK(SafetensorsFile(path).find("a") != nullptr);
  refuses_header("{\"a\":" + good + ",\"a\":" + good + "}", {"\"a\" twice"});
  refuses_header(R"({"a":{"dtype":"U8","dtype":"U8","shape":[8],"data_offsets":[0,8]}})", {"\"dtype\" twice"});
  refuses_header(R"({"a":3})", {"tensor \"a\"", "expected an object"});
  refuses_header(R"({"a":{"shape":[8],"data_offsets":[0,8]}})", {"tensor \"a\"", "dtype"});
  refuses_header(R"({"a":{"dtype":"X1","shape":[8],"data_offsets":[0,8]}})", {"tensor \"a\"", "\"X1\""});
  refuses_header(R"({"a":{"dtype":"U8","data_offsets":[0,8]}})", {"tensor \"a\"", "list for shape"});
  refuses_header(R"({"a":{"dtype":"U8","shape":[-8],"data_offsets":[0,8]}})", {"tensor \"a\"", "got -8"});
  refuses_header(R"({"a":{"dtype":"U8","shape":[8.5],"data_offsets":[0,8]}})", {"tensor \"a\"", "got 8.5"});
  refuses_header(R"({"a":{"dtype":"U8","shape":[99999999999999999999],"data_offsets":[0,8]}})",
                 {"tensor \"a\"", "2^63"});
  refuses_header(R"({"a":{"dtype":"U8","shape":[4294967296,4294967296,4294967296],"data_offsets":[0,8]}})",
                 {"tensor \"a\"", "at most the 8 bytes"});
  refuses_header(R"({"a":{"dtype":"F32","shape":[4611686018427387906],"data_offsets":[0,8]}})",
                 {"tensor \"a\"", "at most the 8 bytes"});
  refuses_header(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0]}})", {"tensor \"a\"", "2 data_offsets, got 1"});
  refuses_header(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[8,0]}})", {"tensor \"a\"", "got 8 and 0"});
  refuses_header(R"({"a":{"dtype":"U8","shape":[9],"data_offsets":[0,9]}})", {"tensor \"a\"", "up to 8"});
  refuses_header(R"({"a":{"dtype":"F32","shape":[8],"data_offsets":[0,8]}})", {"tensor \"a\"", "at most the 8 bytes"});
  refuses_header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})", {"expected 4 bytes", "got 8"});
  refuses_header(R"({"a":{"dtype":"F4","shape":[17],"data_offsets":[0,8]}})", {"tensor \"a\"", "at most the 8 bytes"});
  refuses_header(R"({"a":{"dtype":"F4","shape":[3,5],"data_offsets":[0,8]}})", {"whole bytes, got {3, 5} of 4 bits"});
  refuses_header(R"({"a":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[0,8]}})", {"expected 3 bytes", "got 8"});
  refuses_header(R"({"line\nbreak":3})", {"line\\nbreak"});
  refuses_header(R"({"__metadata__":[]})", {"__metadata__"});
  refuses_header(R"({"__metadata__":{"a":1}})", {"\"a\" in __metadata__"});
  refuses_header(std::string(100000, '['), {"deeper"});
}

TEST_CASE_FIXTURE(Fixture, "Bytes that belong to two tensors, or to none, are refused") {
  const auto tensor = [](int begin, int end) {
    std::ostringstream out;
    out << R"({"dtype":"U8","shape":[)" << end - begin << R"(],"data_offsets":[)" << begin << "," << end << "]}";
    return out.str();
  };
  refuses_header("{\"a\":" + tensor(0, 5) + ",\"b\":" + tensor(4, 8) + "}", {"\"b\"", "start at offset 5, got 4"});
  refuses_header("{\"a\":" + tensor(0, 3) + ",\"b\":" + tensor(4, 8) + "}", {"\"b\"", "start at offset 3, got 4"});
  refuses_header("{\"a\":" + tensor(1, 8) + "}", {"\"a\"", "start at offset 0, got 1"});
  refuses_header("{\"a\":" + tensor(0, 7) + "}", {"expected 7 bytes of tensors, got 8"});
  refuses_header("{}", {"expected 0 bytes of tensors, got 8"});
  put(file_of("{\"b\":" + tensor(4, 8) + ",\"a\":" + tensor(0, 4) + "}", "12345678"));
  CHECK(SafetensorsFile(path).tensors().front().name == "a");
}

TEST_CASE_FIXTURE(Fixture, "A summary has the range of every type, and counts what is not finite") {
  const float infinity = std::numeric_limits<float>::infinity();
  const float floats[] = {1.5F, -infinity, -2.25F, std::nanf(""), 0};
  const std::uint64_t longs[] = {3, std::uint64_t{1} << 40};
  const std::int8_t bytes[] = {-128, 127};
  const std::uint16_t halves[] = {0x3C00, 0xFBFF, 0x0001, 0x7C00, 0x7E00};  // 1, -65504, 2^-24, infinity, NaN
  const std::uint16_t brains[] = {0x3F80, 0xC000, 0xFF80, 0x7FC0};          // 1, -2, -infinity, NaN
  const std::uint8_t e4m3[] = {0x7E, 0xFE, 0x7F, 0x01};                     // 448, -448, NaN, 2^-9
  const std::uint8_t e5m2[] = {0x7B, 0xFB, 0x7C, 0x7F};                     // 57344, -57344, infinity, NaN
  const std::uint8_t e8m0[] = {0x7F, 0x80, 0x00, 0xFF};                     // 1, 2, 2^-127, NaN
  const std::uint8_t e4m3fnuz[] = {0x7F, 0xFF, 0x80, 0x00};                 // 240, -240, NaN, 0
  const std::uint8_t e5m2fnuz[] = {0x7F, 0xFE, 0x80, 0x01};                 // 57344, -49152, NaN, 2^-17
  const auto as = [](const auto& values) { return std::as_bytes(std::span(values)); };
  write_safetensors(path,
                    {{"floats", "F32", {5}, as(floats)},
                     {"longs", "U64", {2}, as(longs)},
                     {"bytes", "I8", {2}, as(bytes)},
                     {"halves", "F16", {5}, as(halves)},
                     {"brains", "BF16", {4}, as(brains)},
                     {"e4m3", "F8_E4M3", {4}, as(e4m3)},
                     {"e5m2", "F8_E5M2", {4}, as(e5m2)},
                     {"e8m0", "F8_E8M0", {4}, as(e8m0)},
                     {"e4m3fnuz", "F8_E4M3FNUZ", {4}, as(e4m3fnuz)},
                     {"e5m2fnuz", "F8_E5M2FNUZ", {4}, as(e5m2fnuz)},
                     {"none", "F64", {0}, {}}},
                    {{"seed", "42"}});
  const CheckpointSummary summary = summarize_checkpoint(path);
  CHECK(summary.metadata.at("seed") == "42");
  const auto check = [&](std::string_view name, double minimum, double maximum, std::int64_t not_finite) {
    CAPTURE(name);
    const auto found = std::ranges::find(summary.tensors, name, &TensorSummary::name);
    REQUIRE(found != summary.tensors.end());
    CHECK(found->minimum == minimum);
    CHECK(found->maximum == maximum);
    CHECK(found->not_finite == not_finite);
  };
  check("floats", -2.25, 1.5, 2);
  check("longs", 3, 0x1p40, 0);
  check("bytes", -128, 127, 0);
  check("halves", -65504, 1, 2);
  check("brains", -2, 1, 2);
  check("e4m3", -448, 448, 1);
  check("e5m2", -57344, 57344, 2);
  check("e8m0", 0x1p-127, 2, 1);
  check("e4m3fnuz", -240, 240, 1);
  check("e5m2fnuz", -49152, 57344, 1);
  const auto none = std::ranges::find(summary.tensors, "none", &TensorSummary::name);
  CHECK(std::isnan(none->minimum));
  CHECK_THROWS_AS(summarize_checkpoint(folder.path() / "missing"), Error);
}

TEST_CASE_FIXTURE(Fixture, "A summary has packed and complex tensors, without a range") {
  write_safetensors(path,
                    {{"f4", "F4", {2, 3}, bytes_of("abc")},
                     {"e2m3", "F6_E2M3", {4}, bytes_of("abc")},
                     {"e3m2", "F6_E3M2", {8}, bytes_of("abcdef")},
                     {"complex", "C64", {2}, bytes_of("abcdefghabcdefgh")}},
                    {});
  const CheckpointSummary summary = summarize_checkpoint(path);
  REQUIRE(summary.tensors.size() == 4);
  for (const TensorSummary& tensor : summary.tensors) {
    CAPTURE(tensor.name);
    CHECK(std::isnan(tensor.minimum));
    CHECK(std::isnan(tensor.maximum));
    CHECK(tensor.not_finite == 0);
  }
}

// For any bytes, the result is a valid file or an Error.
TEST_CASE_FIXTURE(Fixture, "Arbitrary bytes never do worse than an Error") {
  write_safetensors(path, {{"a", "F16", {3}, bytes_of("aabbcc")}, {"b", "F32", {2, 1}, bytes_of("AAAABBBB")}},
                    {{"seed", "42"}});
  const std::string sound = contents();
  std::mt19937 random(5);
  for (int round = 0; round < 3000; round++) {
    std::string bytes = sound;
    const auto edits = 1 + random() % 3;
    for (unsigned long edit = 0; edit < edits; edit++)
      bytes[random() % bytes.size()] = static_cast<char>(random() % 128);
    if (random() % 4 == 0) bytes.resize(random() % (bytes.size() + 9));
    put(bytes);
    try {
      const SafetensorsFile file(path);
      for (const StoredTensor& tensor : file.tensors()) {
        CHECK(8 * tensor.data.size() ==
              io::stored_bits(tensor.dtype) * static_cast<std::size_t>(elements(tensor.shape)));
      }
    } catch (const Error&) {
    }
  }
}

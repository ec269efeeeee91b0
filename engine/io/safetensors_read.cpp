#include <halfstep/error.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <limits>
#include <new>
#include <set>

#include "io/safetensors.h"

namespace halfstep::io {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

// The same limit as in the reference implementation; it bounds the cost of a malicious header.
constexpr std::uint64_t most_header_bytes = 100'000'000;

struct Type {
  std::string_view name;
  std::size_t bits;
};
constexpr Type types[] = {{"F4", 4},          {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"BOOL", 8},    {"U8", 8},
                          {"I8", 8},          {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
                          {"F8_E5M2FNUZ", 8}, {"U16", 16},    {"I16", 16},    {"F16", 16},    {"BF16", 16},
                          {"U32", 32},        {"I32", 32},    {"F32", 32},    {"U64", 64},    {"I64", 64},
                          {"F64", 64},        {"C64", 64}};

// A text from the file in quotes, always on one line.
std::string in_quotes(std::string_view text) {
  return Json(text).dump(-1, ' ', true, Json::error_handler_t::replace);
}

/// Parses a file's bytes into tensors; keeps the file's name for error messages.
class Parser {
 public:
  Parser(const fs::path& path, Bytes file) : path_(path), file_(file) {}

  void parse(std::vector<StoredTensor>& tensors, Metadata& metadata) {
    const Json header = parse_header();
    for (const auto& [name, value] : header.items()) {
      if (name == "__metadata__") {
        metadata = parse_metadata(value);
      } else {
        tensors.push_back(parse_tensor(name, value));
      }
    }
    check_layout(tensors);
  }

 private:
  [[noreturn]] void fail_with(std::string_view message) const {
    fail(ErrorCode::bad_file, "safetensors", fmt::format("{}: {}", path_.string(), message));
  }
  [[noreturn]] void fail_with(std::string_view tensor, std::string_view message) const {
    fail_with(fmt::format("tensor {}: {}", in_quotes(tensor), message));
  }

  Json parse_header() {
    if (file_.size() < 8) fail_with(fmt::format("expected at least 8 bytes, got {}", file_.size()));
    std::uint64_t size = 0;
    for (std::size_t i = 0; i < 8; i++) size |= std::to_integer<std::uint64_t>(file_[i]) << (8 * i);
    const std::uint64_t most = std::min<std::uint64_t>(most_header_bytes, file_.size() - 8);
    if (size > most) fail_with(fmt::format("expected a header of at most {} bytes, got {}", most, size));
    data_ = file_.subspan(8 + size);
    const auto* text = reinterpret_cast<const char*>(file_.data()) + 8;  // NOLINT: bytes of text
    Json header;
    try {
      header = Json::parse(text, text + size, [this](int depth, Json::parse_event_t event, Json& parsed) {
        return check_event(depth, event, parsed);
      });
    } catch (const Json::exception& error) {
      fail_with(fmt::format("expected a header in JSON, got {}", in_quotes(error.what())));
    }
    if (!header.is_object()) fail_with("expected a JSON object for a header, got something else");
    return header;
  }

  // Called while the JSON is parsed, since repeated names are lost afterwards.
  bool check_event(int depth, Json::parse_event_t event, const Json& parsed) {
    const bool opens = event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    if (opens && depth > 2) fail_with("expected a header no deeper than its tensors' shapes, got a deeper one");
    if (event == Json::parse_event_t::object_start) names_.emplace_back();
    if (event == Json::parse_event_t::object_end) names_.pop_back();
    if (event == Json::parse_event_t::key && !names_.back().insert(parsed.get<std::string>()).second) {
      fail_with(fmt::format("expected every name once, got {} twice", in_quotes(parsed.get<std::string>())));
    }
    return true;
  }

  Metadata parse_metadata(const Json& value) const {
    if (!value.is_object()) fail_with("expected an object under __metadata__, got something else");
    Metadata metadata;
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) fail_with(fmt::format("expected text for {} in __metadata__", in_quotes(key)));
      metadata[key] = text.get<std::string>();
    }
    return metadata;
  }

  // Parses field `key` of a tensor: a list of nonnegative integers that fit in int64.
  std::vector<std::int64_t> parse_numbers(const std::string& tensor, const Json& value, const char* key) const {
    const auto field = value.find(key);
    if (field == value.end() || !field->is_array()) fail_with(tensor, fmt::format("expected a list for {}", key));
    std::vector<std::int64_t> numbers;
    for (const Json& number : *field) {
      const bool fits = number.is_number_unsigned() &&
                        number.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()};
      if (!fits) {
        fail_with(tensor, fmt::format("expected whole numbers from 0 to 2^63 - 1 in {}, got {}", key, number.dump()));
      }
      numbers.push_back(number.get<std::int64_t>());
    }
    return numbers;
  }

  StoredTensor parse_tensor(const std::string& name, const Json& value) const {
    if (!value.is_object()) fail_with(name, "expected an object");
    const auto dtype = value.find("dtype");
    if (dtype == value.end() || !dtype->is_string()) fail_with(name, "expected text for dtype");
    StoredTensor tensor{name, dtype->get<std::string>(), parse_numbers(name, value, "shape"), {}};
    const std::size_t element = stored_bits(tensor.dtype);
    if (element == 0) fail_with(name, fmt::format("expected a known dtype, got {}", in_quotes(tensor.dtype)));
    const std::vector<std::int64_t> offsets = parse_numbers(name, value, "data_offsets");
    if (offsets.size() != 2) fail_with(name, fmt::format("expected 2 data_offsets, got {}", offsets.size()));
    const auto begin = static_cast<std::uint64_t>(offsets[0]);
    const auto end = static_cast<std::uint64_t>(offsets[1]);
    if (begin > end || end > data_.size()) {
      fail_with(name,
                fmt::format("expected data_offsets in order and up to {}, got {} and {}", data_.size(), begin, end));
    }
    const std::uint64_t expected = byte_size(name, tensor.shape, element);
    if (end - begin != expected) {
      fail_with(name, fmt::format("expected {} bytes for {} {}, got {}", expected, tensor.dtype,
                                  to_string(tensor.shape), end - begin));
    }
    tensor.data = data_.subspan(begin, end - begin);
    return tensor;
  }

  std::uint64_t byte_size(const std::string& name, const Shape& shape, std::size_t element_bits) const {
    // An extent of zero makes the tensor empty, however large the others are.
    if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
    std::uint64_t total = element_bits;
    for (const std::int64_t extent : shape) {
      if (static_cast<std::uint64_t>(extent) > 8 * data_.size() / total) {
        fail_with(name, fmt::format("expected at most the {} bytes that the file has, got the shape {}", data_.size(),
                                    to_string(shape)));
      }
      total *= static_cast<std::uint64_t>(extent);
    }
    if (total % 8 != 0) {
      fail_with(name, fmt::format("expected whole bytes, got {} of {} bits each", to_string(shape), element_bits));
    }
    return total / 8;
  }

  // Checks that the tensors' data is contiguous from the start to the end of the data section.
  void check_layout(std::vector<StoredTensor>& tensors) const {
    const auto begin = [](const StoredTensor& tensor) { return tensor.data.data(); };
    std::sort(tensors.begin(), tensors.end(), [&](const StoredTensor& a, const StoredTensor& b) {
      return std::pair(begin(a), a.data.size()) < std::pair(begin(b), b.data.size());
    });
    const std::byte* next = data_.data();
    for (const StoredTensor& tensor : tensors) {
      if (begin(tensor) != next) {
        fail_with(tensor.name, fmt::format("expected its bytes to start at offset {}, got {}", next - data_.data(),
                                           begin(tensor) - data_.data()));
      }
      next += tensor.data.size();
    }
    const auto used = static_cast<std::size_t>(next - data_.data());
    if (used != data_.size()) {
      fail_with(fmt::format("expected {} bytes of tensors, got {}", used, data_.size()));
    }
  }

  const fs::path& path_;
  Bytes file_;
  Bytes data_;
  std::vector<std::set<std::string>> names_;
};

[[noreturn]] void fail_to_read(const fs::path& path, std::string_view reason) {
  fail(ErrorCode::bad_file, "safetensors", fmt::format("cannot read {}: {}", path.string(), reason));
}

std::vector<std::byte> read_file(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) fail_to_read(path, "there is no such file");
  if (error) fail_to_read(path, error.message());
  if (!fs::is_regular_file(status)) fail_to_read(path, "it is not an ordinary file");
  std::ifstream file(path, std::ios::binary);
  if (!file) fail_to_read(path, "it cannot be opened");
  std::vector<std::byte> bytes;
  try {
    bytes.resize(fs::file_size(path));
  } catch (const std::exception&) {
    fail_to_read(path, "it does not fit in memory");
  }
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));  // NOLINT: raw bytes
  if (!file) fail_to_read(path, "it ends early");
  return bytes;
}

}  // namespace

std::size_t stored_bits(std::string_view dtype) {
  const auto* type = std::ranges::find(types, dtype, &Type::name);
  return type == std::end(types) ? 0 : type->bits;
}

SafetensorsFile::SafetensorsFile(const fs::path& path) : memory_{read_file(path)} {
  Parser(path, memory_.front()).parse(tensors_, metadata_);
}

SafetensorsFile::SafetensorsFile(std::vector<std::vector<std::byte>> memory, std::vector<StoredTensor> tensors,
                                 Metadata metadata)
    : memory_(std::move(memory)), tensors_(std::move(tensors)), metadata_(std::move(metadata)) {}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  const auto found =
      std::find_if(tensors_.begin(), tensors_.end(), [&](const StoredTensor& tensor) { return tensor.name == name; });
  return found == tensors_.end() ? nullptr : &*found;
}

}  // namespace halfstep::io

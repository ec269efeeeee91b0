// A reproduction in files.
#include <halfstep/error.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cstring>
#include <fstream>
#include <iterator>

#include "selftest/bed.h"
#include "selftest/report.h"
#include "selftest/reproduction.h"

namespace halfstep::selftest {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

/// The file of numbers, which grows.
class Numbers {
 public:
  /// Where they are, for the description.
  json add(std::span<const std::byte> bytes) {
    const std::size_t first = bytes_.size();
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return {{"offset", first}, {"bytes", bytes.size()}};
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

std::span<const std::byte> part(const std::vector<std::byte>& all, const json& where) {
  const std::size_t offset = where.at("offset");
  const std::size_t bytes = where.at("bytes");
  if (offset > all.size() || bytes > all.size() - offset)
    throw Error(fmt::format("[selftest] expected {} bytes at {} of the numbers, got {}", bytes, offset, all.size()));
  return std::span(all).subspan(offset, bytes);
}

std::vector<double> doubles(std::span<const std::byte> bytes) {
  std::vector<double> values(bytes.size() / sizeof(double));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(double));
  return values;
}

DType dtype_of(const std::string& text) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::u32})
    if (name(dtype) == text) return dtype;
  throw Error("[selftest] expected a type of tensors, got " + text);
}

json json_of(const plan::ProgramTensor& t) {
  return {{"name", t.name},   {"type", name(t.type.dtype)}, {"shape", t.type.shape},
          {"bytes", t.bytes}, {"buffer", t.region.buffer},  {"offset", t.region.offset}};
}

plan::ProgramTensor tensor_of(const json& j) {
  return {.name = j.at("name"),
          .type = {dtype_of(j.at("type")), j.at("shape").get<Shape>()},
          .bytes = j.at("bytes"),
          .region = {j.at("buffer"), j.at("offset")},
          .kept = true};
}

json json_of(const plan::Dispatch& d, const std::string& spirv) {
  json operands = json::array();
  for (const plan::Operand& o : d.operands)
    operands.push_back({{"tensor", o.tensor}, {"texels", o.texels}, {"address", o.address}});
  json push = json::array();
  for (const std::byte byte : d.push) push.push_back(std::to_integer<unsigned>(byte));
  const plan::Storing& s = d.storing;
  return {{"label", d.label},       {"kernel", d.shader},
          {"spirv", spirv},         {"specialization_constants", d.constants},
          {"push_constants", push}, {"bindings", operands},
          {"groups", d.groups},     {"stochastic", s.stochastic},
          {"saturate", s.saturate}, {"scaled", s.scaled},
          {"streams", s.streams},   {"scales", s.scales}};
}

plan::Dispatch dispatch_of(const json& j, const fs::path& folder) {
  plan::Dispatch d;
  d.label = j.at("label");
  d.shader = j.at("kernel");
  d.spirv = std::make_shared<const Words>(read_spirv(folder / j.at("spirv").get<std::string>()));
  d.constants = j.at("specialization_constants").get<Words>();
  for (const json& byte : j.at("push_constants")) d.push.push_back(std::byte{byte.get<unsigned char>()});
  for (const json& o : j.at("bindings"))
    d.operands.push_back({o.at("tensor"), plan::Access::read_write, o.at("texels"), o.at("address")});
  d.groups = j.at("groups");
  d.storing = {j.at("stochastic"), j.at("saturate"), j.at("scaled"), j.at("streams"), j.at("scales")};
  return d;
}

constexpr const char* explanation =
    "Dispatches that run one after the other, with a barrier between. Binding i of set 0 is the tensor bindings[i]: a "
    "range of a buffer, as a storage buffer or a texel buffer; the addresses of those marked so are pushed before the "
    "push constants. Buffers hold `content`, a part of the file `numbers`, and ones beyond. Afterwards element i of "
    "the "
    "tensor `output` must be want[i] +- allowed[i]; rows are padded to multiples of four elements.";

Reproduction parsed(const json& j, const fs::path& folder, const std::vector<std::byte>& numbers) {
  Reproduction made{.what = j.at("what"), .device = j.at("device")};
  made.program.buffers.clear();
  for (const json& one : j.at("buffers")) {
    const auto content = part(numbers, one.at("content"));
    made.buffers.push_back({one.at("name"), one.at("bytes"), {content.begin(), content.end()}});
    made.program.buffers.push_back(one.at("name"));
  }
  for (const json& one : j.at("tensors")) made.program.tensors.push_back(tensor_of(one));
  for (const json& one : j.at("dispatches")) made.program.dispatches.push_back(dispatch_of(one, folder));
  if (!j.at("noise_key").is_null()) made.program.noise_key = j.at("noise_key").get<plan::TensorId>();
  if (!j.at("scales").is_null()) made.program.scales = j.at("scales").get<plan::TensorId>();
  made.output = j.at("output");
  made.want = doubles(part(numbers, j.at("want")));
  made.allowed = doubles(part(numbers, j.at("allowed")));
  return made;
}

/// Throws Error where one part refers to another that is not there.
void check_references(const Reproduction& r) {
  const std::size_t tensors = r.program.tensors.size();
  bool sound = r.output < tensors && r.want.size() == r.allowed.size() && r.program.noise_key.value_or(0) < tensors &&
               r.program.scales.value_or(0) < tensors;
  for (const plan::Dispatch& d : r.program.dispatches)
    for (const plan::Operand& o : d.operands) sound = sound && o.tensor < tensors;
  for (const plan::ProgramTensor& t : r.program.tensors) {
    const std::uint64_t bytes = t.region.buffer < r.buffers.size() ? r.buffers[t.region.buffer].bytes : 0;
    sound = sound && t.region.offset <= bytes && t.bytes <= bytes - t.region.offset;
  }
  for (const Reproduction::Buffer& b : r.buffers) sound = sound && b.content.size() <= b.bytes;
  if (!sound) throw Error("[selftest] expected a reproduction whose parts fit each other");
}

}  // namespace

fs::path write(const Reproduction& r, const fs::path& folder, const std::string& name) {
  fs::create_directories(folder);
  Numbers numbers;
  json j{{"explanation", explanation}, {"what", r.what}, {"device", r.device}, {"numbers", name + ".bin"}};
  for (const Reproduction::Buffer& b : r.buffers)
    j["buffers"].push_back({{"name", b.name}, {"bytes", b.bytes}, {"content", numbers.add(b.content)}});
  for (const plan::ProgramTensor& t : r.program.tensors) j["tensors"].push_back(json_of(t));
  for (std::size_t i = 0; i < r.program.dispatches.size(); ++i) {
    const std::string spirv = fmt::format("{}.{}.spv", name, i);
    write_spirv(folder / spirv, *r.program.dispatches[i].spirv);
    j["dispatches"].push_back(json_of(r.program.dispatches[i], spirv));
  }
  j["noise_key"] = r.program.noise_key ? json(*r.program.noise_key) : json();
  j["scales"] = r.program.scales ? json(*r.program.scales) : json();
  j["output"] = r.output;
  j["want"] = numbers.add(std::as_bytes(std::span(r.want)));
  j["allowed"] = numbers.add(std::as_bytes(std::span(r.allowed)));
  const std::vector<std::byte>& bytes = numbers.bytes();
  write_text(folder / (name + ".bin"), {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  write_text(folder / (name + ".json"), j.dump(1) + "\n");
  return folder / (name + ".json");
}

Reproduction read_reproduction(const fs::path& file) {
  std::ifstream stream(file);
  if (!stream) throw Error("[selftest] expected a kept reproduction, got no file " + file.string());
  try {
    const json j = json::parse(stream);
    std::ifstream numbers(file.parent_path() / j.at("numbers").get<std::string>(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(numbers), {}};
    const auto bytes = std::as_bytes(std::span(text));
    Reproduction made = parsed(j, file.parent_path(), {bytes.begin(), bytes.end()});
    check_references(made);
    return made;
  } catch (const json::exception& error) {
    throw Error(fmt::format("[selftest] expected a kept reproduction in {}, got {}", file.string(), error.what()));
  }
}

}  // namespace halfstep::selftest

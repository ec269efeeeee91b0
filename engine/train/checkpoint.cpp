#include <halfstep/error.h>

#include <fmt/format.h>

#include <charconv>

#include "base/held.h"
#include "graph/dtype.h"
#include "train/checkpoint_contents.h"
#include "train/metadata_keys.h"
#include "train/stored_values.h"

namespace halfstep {

using io::StoredTensor;

namespace {

/// What the format of a checkpoint begins with; its version follows.
constexpr std::string_view checkpoint_format = "halfstep ";

}  // namespace

bool train::is_checkpoint(const io::Metadata& metadata) {
  const auto format = metadata.find(train::keys::format);
  return format != metadata.end() && format->second.starts_with(checkpoint_format);
}

io::SafetensorsFile Checkpoint::Contents::file() const {
  std::vector<std::vector<std::byte>> data;
  std::vector<io::StoredTensor> tensors;
  for (const Values& each : values) {
    data.push_back(train::encode(each.dtype, each.shape, each.stored, each.values));
    tensors.push_back({each.name, std::string(graph::info(each.dtype).saved),
                       train::stored_shape(each.shape, each.stored), data.back()});
  }
  for (const Raw& each : raw) {
    const std::size_t count = 8 * each.bytes.size() / io::stored_bits(each.dtype);
    tensors.push_back({each.name, each.dtype, {static_cast<std::int64_t>(count)}, data.emplace_back(each.bytes)});
  }
  return {std::move(data), std::move(tensors), metadata};
}

const Checkpoint::Contents& Checkpoint::contents() const {
  return held(contents_, "checkpoint", "a snapshot");
}

void Checkpoint::write(const std::filesystem::path& path) const {
  const io::SafetensorsFile file = contents().file();
  io::write_safetensors(path, file.tensors(), file.metadata());
}

void check_format(const std::map<std::string, std::string>& metadata, std::string_view file) {
  constexpr int newest = 1;
  if (!train::is_checkpoint(metadata)) return;
  const std::string& format = metadata.at(train::keys::format);
  const std::string_view text = std::string_view(format).substr(checkpoint_format.size());
  int version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (error == std::errc() && end == text.data() + text.size() && version >= 1 && version <= newest) return;
  fail(ErrorCode::bad_file, file,
       fmt::format("expected a checkpoint of format {}{} or earlier, got '{}'", checkpoint_format, newest, format),
       "a newer version of Halfstep wrote it");
}

}  // namespace halfstep

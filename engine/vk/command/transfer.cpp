#include "vk/command/transfer.h"

#include <algorithm>
#include <cstring>

#include "vk/command/recorder.h"
#include "vk/command/timeline.h"

namespace halfstep::vk {
namespace {

/// What a copy takes at once.
std::uint64_t piece_bytes(const Context& context) {
  return std::min(context.target().part_bytes, std::uint64_t{16} << 20);
}

/// Records the commands of `record` between barriers, submits them and waits.
template <typename Record>
void run(Recorder& recorder, Timeline& timeline, const Record& record) {
  recorder.begin();
  recorder.barrier();
  record(recorder);
  recorder.barrier();
  recorder.host_barrier();
  recorder.end();
  timeline.wait(timeline.submit(recorder));
}

}  // namespace

void upload(Context& context, const Buffer& target, std::uint64_t offset, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const std::uint64_t most = std::min<std::uint64_t>(bytes.size(), piece_bytes(context));
  const Buffer staging(context, most, Memory::upload, "upload staging");
  Recorder recorder(context);
  Timeline timeline(context);
  for (std::uint64_t done = 0, size = 0; done < bytes.size(); done += size) {
    size = std::min({bytes.size() - done, most, target.left(offset + done)});
    const Buffer::Place to = target.at(offset + done, size);
    std::memcpy(staging.mapped(), bytes.data() + done, size);
    staging.flush(0, size);
    run(recorder, timeline, [&](Recorder& r) { r.copy(staging.handle(), 0, to.buffer, to.offset, size); });
  }
}

void download(Context& context, const Buffer& source, std::uint64_t offset, std::span<std::byte> bytes) {
  if (bytes.empty()) return;
  const std::uint64_t most = std::min<std::uint64_t>(bytes.size(), piece_bytes(context));
  const Buffer staging(context, most, Memory::readback, "download staging");
  Recorder recorder(context);
  Timeline timeline(context);
  for (std::uint64_t done = 0, size = 0; done < bytes.size(); done += size) {
    size = std::min({bytes.size() - done, most, source.left(offset + done)});
    const Buffer::Place from = source.at(offset + done, size);
    run(recorder, timeline, [&](Recorder& r) { r.copy(from.buffer, from.offset, staging.handle(), 0, size); });
    staging.invalidate(0, size);
    std::memcpy(bytes.data() + done, staging.mapped(), size);
  }
}

void fill(Context& context, const Buffer& target, std::uint64_t offset, std::uint64_t size, std::uint32_t word) {
  if (size == 0) return;
  Recorder recorder(context);
  Timeline timeline(context);
  run(recorder, timeline, [&](Recorder& r) {
    for (std::uint64_t done = 0, part = 0; done < size; done += part) {
      part = std::min(size - done, target.left(offset + done));
      const Buffer::Place to = target.at(offset + done, part);
      r.fill(to.buffer, to.offset, part, word);
    }
  });
}

}  // namespace halfstep::vk

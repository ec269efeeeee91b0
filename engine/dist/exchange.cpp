// What an exchange does that has no better way.
#include <halfstep/exchange.h>

namespace halfstep {

void Exchange::begin_scattered_sum(std::span<float> values, std::span<const std::size_t>, const WireFormat& format) {
  begin_sum(values, format);
}

void Exchange::begin_gather(std::span<std::byte> bytes, std::span<const std::size_t> ends) {
  std::size_t first = 0;
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    broadcast(bytes.subspan(first, ends[rank] - first), static_cast<int>(rank));
    first = ends[rank];
  }
}

}  // namespace halfstep

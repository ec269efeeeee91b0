#include "bench/exchange_model.h"

#include <algorithm>
#include <cmath>

namespace bench {

double sum_seconds(Algorithm algorithm, int ranks, double bytes, const Link& link) {
  const double n = ranks;
  const double sent = (n - 1) / n * bytes / link.bytes_per_second;
  const double message = link.latency + link.overhead;
  switch (algorithm) {
    case Algorithm::direct:
      return 2 * (sent + link.latency + (n - 1) * link.overhead);
    case Algorithm::ring:
      return 2 * (sent + (n - 1) * message);
    case Algorithm::tree:
      return 2 * (sent + std::ceil(std::log2(n)) * message);
  }
  return 0;
}

double step_seconds(const Step& step, Algorithm algorithm, int ranks, const Link& link) {
  const double computed = step.forward + step.backward;
  if (ranks == 1) return computed + step.update;
  double sent = 0;
  double free = 0;  // the link
  while (sent < step.bytes) {
    const double bucket = std::min(step.bucket_bytes, step.bytes - sent);
    sent += bucket;
    const double ready = step.forward + step.backward * sent / step.bytes;
    free = std::max(free, ready) + sum_seconds(algorithm, ranks, bucket, link);
  }
  return std::max(free, computed) + step.update;
}

}  // namespace bench

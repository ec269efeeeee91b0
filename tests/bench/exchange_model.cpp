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

namespace {

/// When all gradients are summed up, where a sum of a bucket takes `part` of sum_seconds().
double summed_seconds(const Step& step, double part, Algorithm algorithm, int ranks, const Link& link) {
  double sent = 0;
  double free = 0;  // the link
  while (sent < step.bytes) {
    const double bucket = std::min(step.bucket_bytes, step.bytes - sent);
    sent += bucket;
    const double ready = step.forward + step.backward * sent / step.bytes;
    free = std::max(free, ready) + part * sum_seconds(algorithm, ranks, bucket, link);
  }
  return std::max(free, step.forward + step.backward);
}

}  // namespace

double step_seconds(const Step& step, Algorithm algorithm, int ranks, const Link& link) {
  if (ranks == 1) return step.forward + step.backward + step.update;
  return summed_seconds(step, 1, algorithm, ranks, link) + step.update;
}

double sharded_step_seconds(const Step& step, double weight_bytes, Algorithm algorithm, int ranks, const Link& link) {
  if (ranks == 1) return step_seconds(step, algorithm, ranks, link);
  constexpr double flag = 4;
  return summed_seconds(step, 0.5, algorithm, ranks, link) + sum_seconds(algorithm, ranks, flag, link) +
         step.update / ranks + sum_seconds(algorithm, ranks, weight_bytes, link) / 2;
}

double local_step_seconds(const Step& step, int every, Algorithm algorithm, int ranks, const Link& link) {
  const double computed = step.forward + step.backward + step.update;
  return ranks == 1 ? computed : computed + sum_seconds(algorithm, ranks, step.bytes, link) / every;
}

}  // namespace bench

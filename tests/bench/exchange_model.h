#pragma once

#include <cstdint>

namespace bench {

/// What joins ranks: each sends and receives so much at once.
struct Link {
  double bytes_per_second;
  double latency;   ///< seconds from one rank to another
  double overhead;  ///< seconds that a message keeps its sender
};

/// How a sum over all ranks, which each of them gets, is made: of parts that go from each rank to each (as
/// halfstep::mpi_exchange() does), around a ring, or by halving and doubling along a tree.
enum class Algorithm : std::uint8_t { direct, ring, tree };

/// Seconds that a sum of so many bytes takes.
double sum_seconds(Algorithm algorithm, int ranks, double bytes, const Link& link);

/// A step of one rank without the others, in seconds, and what it exchanges.
struct Step {
  double forward;
  double backward;
  double update;
  double bytes;         ///< of gradients, as they travel
  double bucket_bytes;  ///< that are exchanged together
};

/// Seconds that a step of several ranks takes: gradients become ready evenly in the backward pass, and each bucket is
/// exchanged as soon as it is ready and the one before it has been.
double step_seconds(const Step& step, Algorithm algorithm, int ranks, const Link& link);

}  // namespace bench

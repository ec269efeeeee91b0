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

/// The same of ranks that share out what their optimizers keep: each gets the sums of its part only, which are half of
/// a sum, they tell each other what they found in them, each updates its part, and all get `weight_bytes` of weights.
double sharded_step_seconds(const Step& step, double weight_bytes, Algorithm algorithm, int ranks, const Link& link);

/// The same, on the mean, of ranks that make steps by themselves and exchange `step.bytes` after each `every` of them,
/// while they compute nothing.
double local_step_seconds(const Step& step, int every, Algorithm algorithm, int ranks, const Link& link);

}  // namespace bench

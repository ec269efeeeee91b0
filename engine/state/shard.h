#pragma once

#include <halfstep/exchange.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "state/parameters.h"

/// How ranks share out the f32 masters and the optimizers' states (Ranks::shard_state).
namespace halfstep::state {

/// Trained parameters whose gradients are exchanged together.
struct Bucket {
  std::size_t first = 0;  ///< of ParameterLayout::entries()
  std::size_t end = 0;    ///< the one after its last
  std::uint64_t first_element = 0;
  std::uint64_t elements = 0;
};

/// All trained parameters, cut, the last ones first, into buckets of `bytes` of f32 at least.
std::vector<Bucket> buckets_of(const ParameterLayout& layout, std::int64_t bytes);

/// Neighbouring elements of all parameters, of which every rank has a part: consecutive blocks of 128.
struct Shared {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::vector<std::size_t> ends{};  ///< of each rank's part, counted from `first`
  std::uint64_t first_moment = 0;   ///< of `first`, among those of all parameters
  std::uint32_t states = 0;         ///< that the optimizer keeps for each
  bool read_masters = false;        ///< operators read the f32 masters of these, which every rank then has

  std::uint64_t own_first(int rank) const { return first + (rank == 0 ? 0 : ends[static_cast<std::size_t>(rank) - 1]); }
  std::uint64_t own_end(int rank) const { return first + ends[static_cast<std::size_t>(rank)]; }
};

/// What a rank updates of a run.
struct Part {
  std::uint64_t first = 0;  ///< element, over all parameters
  std::uint64_t count = 0;
  std::uint64_t first_master = 0;  ///< in the rank's buffer of the weights that are updated
  std::uint64_t first_moment = 0;  ///< in its buffer of moments
};

/// A range of a buffer of all ranks that a rank's own buffer has, at another place: in elements, but where a function
/// says bytes.
struct Held {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint64_t place = 0;
};

/// The parts of one of several ranks. Each bucket's share of each run is cut into as many parts as there are ranks, so
/// that every rank has as much of every optimizer's states, and a bucket's sums go to all ranks at once. The f32
/// masters that operators read, and those of frozen parameters, are on every rank.
class Shard {
 public:
  Shard(const ParameterLayout& layout, const WeightStorage& weights, const Ranks& ranks);

  /// Where the sums of gradients go: buckets, cut by run, in the order of the buckets.
  const std::vector<Shared>& summed() const { return summed_; }
  /// Where weights come from: the same, cut where operators read masters.
  const std::vector<Shared>& gathered() const { return gathered_; }
  /// What this rank updates of a run.
  std::vector<Part> parts(const ParameterRun& run) const;
  /// The elements of masters and of moments that this rank has.
  const std::vector<Held>& masters() const { return masters_; }
  const std::vector<Held>& moments() const { return moments_; }
  std::uint64_t master_elements() const;
  std::uint64_t moment_elements() const;
  int rank() const { return rank_; }

 private:
  void share_out(const ParameterLayout& layout, const Ranks& ranks);
  void cut_by_reading(const ParameterLayout& layout, const WeightStorage& weights);
  void place_masters(const ParameterLayout& layout);
  void place_moments();

  int rank_;
  bool masters_apart_;  ///< masters are a buffer of their own
  std::vector<Shared> summed_;
  std::vector<Shared> gathered_;
  std::vector<Held> masters_;
  std::vector<Held> moments_;
};

/// The place of an element that `held` has. Throws Error where it has not.
std::uint64_t place_in(const std::vector<Held>& held, std::uint64_t element);

}  // namespace halfstep::state

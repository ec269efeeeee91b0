#pragma once

#include <halfstep/language.h>
#include <halfstep/precision.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace halfstep {

/// How the terms of a sum travel between ranks.
struct WireFormat {
  /// f32; f16, where every 128 values share a power of two, so that none overflows and few underflow; or bf16.
  DType type = DType::f32;
  Rounding rounding = Rounding::nearest;  ///< to f16 and bf16
  /// What stochastic rounding is keyed on, with the place in the sum: the same on every rank, and of each sum another.
  std::uint64_t noise = 0;
};

/// What a rank's exchange cost so far.
struct ExchangeCosts {
  std::uint64_t bytes_sent = 0;        ///< by this rank, of sums and broadcasts
  std::chrono::nanoseconds waited{0};  ///< in wait(), broadcast() and barrier()
};

/// How the processes of a training, its ranks, exchange numbers. Each function is called by every rank, in the same
/// order, and by one thread. They throw Error where the transport fails. An application may implement its own.
class HALFSTEP_API Exchange {
 public:
  Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  virtual ~Exchange() = default;

  /// From 0 to size() - 1.
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Begins to replace `values` by their sums over all ranks; every rank gives as many. They must stay where they are,
  /// and may not be touched, until wait() returns. The terms of each sum are added in f32 in the order of ranks, and
  /// every rank gets the same bits. A sum that f32 holds as a subnormal number is 0. What is not finite on one rank is
  /// not finite in the sum. Does not block; several sums may be under way.
  virtual void begin_sum(std::span<float> values, const WireFormat& format) = 0;
  /// As begin_sum(), but rank r needs only the sums from ends[r - 1], or 0 of the first rank, to ends[r]: the others
  /// are undefined, and the sums that it gets are not rounded to the wire's format. Ends are multiples of 128, but for
  /// the last one, which is the number of values. The default implementation calls begin_sum(), which rounds the sums
  /// too; an override can send half as much.
  virtual void begin_scattered_sum(std::span<float> values, std::span<const std::size_t> ends,
                                   const WireFormat& format);
  /// Begins to give every rank all of `bytes`, of which rank r has those from ends[r - 1], or 0, to ends[r]. As with
  /// sums, they may not be touched until wait() returns. The default implementation broadcasts each rank's, and blocks.
  virtual void begin_gather(std::span<std::byte> bytes, std::span<const std::size_t> ends);
  /// Goes on with the sums and gatherings that are under way; does not block.
  virtual void progress() = 0;
  /// Blocks until every sum and gathering that was begun is complete.
  virtual void wait() = 0;
  /// Gives every rank the bytes of `root`. Blocks. Every rank gives as many.
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;
  /// Blocks until every rank is here.
  virtual void barrier() = 0;
  /// Ends all ranks: prints one line, "rank 1: message", on standard error, and ends the processes with `exit_code`.
  [[noreturn]] virtual void abort(std::string_view message, int exit_code) = 0;

  virtual ExchangeCosts costs() const = 0;
};

/// The exchange of a process that is alone: rank 0 of 1.
HALFSTEP_API std::shared_ptr<Exchange> no_exchange();

/// How many of a step's micro-batches each rank takes. There are TrainerOptions::accumulate times as many as ranks, and
/// each rank takes one at least. Parts are consecutive. Loss, metrics and gradients stay means over all micro-batches;
/// only the order in which gradients are added up follows the parts. Unequal parts need a training set, or a source
/// with a count.
struct Balance {
  /// In proportion to these, one for each rank ({3, 1}). Empty: equal parts, unless `measured`.
  std::vector<double> shares{};
  /// In proportion to what ranks are measured to do in the same time: after the first steps, and anew where that has
  /// changed. Each rank then records its steps anew. Times differ from run to run, and with them the last bits of the
  /// weights; not with Precision::reproducible.
  bool measured = false;
  /// Steps between two looks at what was measured.
  std::int64_t every = 100;
};

/// A training that this process is one rank of. The ranks' batches together make a step's: rank r of N takes the r-th
/// part of the samples that a single process would take, with its noise and augmentation. Where each rank has one
/// micro-batch and the wire is f32, all weights are, bit for bit, those of one process with N micro-batches. States,
/// such as the running statistics of norms, become their means over ranks. Where devices differ, and update weights to
/// other last bits, every rank takes those of rank 0 after every step, which waits for the step; so it does, from the
/// first one on, for the scales of Precision::gradient_scales. A rank that loses its device ends all by
/// Exchange::abort(); any other Error that one rank has alone leaves the others waiting, until its program does so.
struct Ranks {
  Ranks() = default;
  explicit Ranks(std::shared_ptr<Exchange> of) : exchange(std::move(of)) {}
  std::shared_ptr<Exchange> exchange{};   ///< null: no other rank
  DType wire = DType::f32;                ///< how gradients travel: f32, f16 or bf16
  Rounding rounding = Rounding::nearest;  ///< of gradients that travel in f16 or bf16
  /// Steps after which the ranks compare their weights: a difference is an Error that names tensor and rank. 0: never.
  std::int64_t compare_every = 500;
  /// Bytes of gradients, in f32, that are exchanged together while the backward pass goes on.
  std::int64_t bucket_bytes = std::int64_t{4} << 20;
  /// Whether each rank keeps the f32 masters and the optimizer's states of its part of the parameters only, about one
  /// N-th. It updates these, and gets the other weights from the other ranks (stage 1 of ZeRO, Rajbhandari et al.
  /// 2020). Trains to the same bits where the wire is f32. Functions that read weights or moments must then be called
  /// by every rank too: checkpoint(), save(), save_weights(), load_weights(), parameter(). Not with ema_decay, nor with
  /// rules that are written in operators.
  bool shard_state = false;
  /// Steps that each rank makes by itself between two synchronisations (DiLoCo, Douillard et al. 2023); 0: gradients
  /// are exchanged in every step. In between, every rank has its own weights, states, optimizer's states, loss scale
  /// and skipped steps, and reports its own loss and metrics. Then the weights of the synchronisation before make an
  /// outer step of Nesterov's momentum along the mean of what each rank has changed, which travels in the wire's
  /// format, and become those of all ranks; states become their means. evaluate() and save_weights() take what the last
  /// synchronisation gave (Trainer::synchronise makes one), parameter() and predictors what this rank has. Every rank
  /// must call checkpoint() or save() too: a checkpoint has what each rank has of its own. Takes two f32 of host memory
  /// for each weight. Ranks compare their weights after synchronisations only; what these give is rounded to nearest,
  /// whatever Rounding weights have otherwise. Not with shard_state or ema_decay.
  std::int64_t sync_every = 0;
  float outer_rate = 0.7F;  ///< of the outer step
  /// Of the outer step. DiLoCo's is 0.9, for hundreds of synchronisations; of twenty, it took steps that were too
  /// large.
  float outer_momentum = 0.3F;
  Balance balance{};  ///< equal parts
  /// Whether batch norm takes its statistics, in training, over the micro-batches that all ranks compute at once, as
  /// one process would over a micro-batch of that size. The host waits for each norm, in the forward and in the
  /// backward pass. Ranks then take equal parts, of as many rows that count each: where labels are ignored on some
  /// only, a step throws Error.
  bool sync_batch_norm = false;

  int rank() const { return exchange ? exchange->rank() : 0; }
  int size() const { return exchange ? exchange->size() : 1; }
  /// Whether there are other ranks, and each step exchanges gradients with them.
  bool exchange_gradients() const { return size() > 1 && sync_every == 0; }
  /// Whether there are other ranks that keep parts of what the optimizer keeps.
  bool share_state() const { return size() > 1 && shard_state; }
};

}  // namespace halfstep

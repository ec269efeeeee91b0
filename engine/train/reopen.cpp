// A trainer on another device.
#include <halfstep/error.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>

#include "graph/ir.h"
#include "train/checkpoint_contents.h"
#include "train/trainer_impl.h"

namespace halfstep {

Trainer::Origin::Origin(const Graph& written, const TrainerOptions& asked)
    : graph(graph::Access::share(written)), options(asked) {
  if (!options.buckets) return;
  shorter.reserve(options.buckets->shorter.size());
  for (Bucket& bucket : options.buckets->shorter) {
    if (bucket.graph != nullptr) bucket.graph = &shorter.emplace_back(graph::Access::share(*bucket.graph));
  }
}

namespace {

/// What can be read of a trainer. An open step may end with an Error of its own, as with Precision::stop_on; what it
/// leaves is read then.
Checkpoint present_state(Trainer::Impl& trainer) {
  try {
    return trainer.checkpoint({});
  } catch (const Error& error) {
    if (error.code() == ErrorCode::device_lost) throw;
    return trainer.checkpoint({});
  }
}

}  // namespace

ResumePoint Trainer::reopen(const Device& device, const std::map<std::string, DeviceBuffer>& shared_inputs) {
  Origin& from = origin();
  const auto names = std::views::keys(from.options.shared_inputs);
  if (!std::ranges::equal(names, std::views::keys(shared_inputs))) {
    fail("trainer", fmt::format("expected memory of the new device for the shared inputs [{}], got some for [{}]",
                                fmt::join(names, ", "), fmt::join(std::views::keys(shared_inputs), ", ")));
  }
  if (from.options.ranks.size() > 1) {
    fail("trainer", "expected one rank to reopen its trainer, got several", "start them again from a checkpoint");
  }
  std::optional<Checkpoint> start = from.snapshot;
  if (impl_) {
    try {
      start = present_state(*impl_);
    } catch (const Error&) {
      if (!start) throw;
    }
  }
  if (!start) fail("trainer", "expected a snapshot to go on from, got none", "see TrainerOptions::snapshot_every");
  from.snapshot = start;
  impl_.reset();
  from.options.shared_inputs = shared_inputs;
  auto made = std::make_unique<Impl>(device, from);
  const ResumePoint point = made->load(start->contents().file(), "the snapshot");
  from.snapshot_step = point.step;
  if (from.options.snapshot_every == 0) from.snapshot.reset();
  impl_ = std::move(made);
  return point;
}

}  // namespace halfstep

// A trainer on another device.
#include <halfstep/error.h>

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

ResumePoint Trainer::reopen(const Device& device) {
  if (!origin_->options.shared_inputs.empty()) {
    fail("trainer", "expected a trainer without shared inputs to reopen, got one with memory of its present device");
  }
  std::optional<Checkpoint> start = origin_->snapshot;
  if (impl_) {
    try {
      start = impl_->checkpoint({});
    } catch (const Error&) {
      if (!start) throw;
    }
  }
  if (!start) fail("trainer", "expected a snapshot to go on from, got none", "see TrainerOptions::snapshot_every");
  origin_->snapshot = start;
  impl_.reset();
  auto made = std::make_unique<Impl>(device, *origin_);
  const ResumePoint point = made->load(start->contents().file(), "the snapshot");
  origin_->snapshot_step = point.step;
  if (origin_->options.snapshot_every == 0) origin_->snapshot.reset();
  impl_ = std::move(made);
  return point;
}

}  // namespace halfstep

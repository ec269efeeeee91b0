#pragma once

#include <halfstep/device.h>
#include <halfstep/graph.h>

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bench/report.h"

namespace bench {

/// Runs kernels one graph at a time, on random inputs: zeros are faster than numbers, and no one computes with them.
class Bench {
 public:
  Bench(halfstep::Device device, int repeats) : device_(std::move(device)), repeats_(repeats) {}

  const halfstep::Device& device() const { return device_; }
  int repeats() const { return repeats_; }
  bool has_timestamps() const;
  /// Milliseconds of `work`, called often, by the host's clock; the first calls, which compile, are left out.
  Times time(const std::function<void()>& work) const;
  /// The same with the milliseconds that each call returns.
  Times time_returned(const std::function<double()>& work) const;
  /// What it takes to compute `result` from the inputs of a graph.
  Measured run(const halfstep::Graph& graph, halfstep::Tensor result) const { return run(graph, result, false); }
  /// The same of its last dispatch alone (where the queue has timestamps).
  Measured run_last(const halfstep::Graph& graph, halfstep::Tensor result) const { return run(graph, result, true); }

 private:
  Measured run(const halfstep::Graph& graph, halfstep::Tensor result, bool last_only) const;

  halfstep::Device device_;
  int repeats_;
};

/// Numbers uniform on [-1, 1], always the same.
std::vector<float> random_values(std::int64_t count);

/// "f32" or "f16".
halfstep::DType dtype_of(const std::string& name);

}  // namespace bench

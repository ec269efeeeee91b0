#pragma once

#include <halfstep/device.h>
#include <halfstep/graph.h>

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bench/report.h"

namespace bench {

/// Runs kernels one graph at a time, on random inputs: zeros would be faster, but nobody computes with them.
class Bench {
 public:
  Bench(halfstep::Device device, int repeats) : device_(std::move(device)), repeats_(repeats) {}

  const halfstep::Device& device() const { return device_; }
  int repeats() const { return repeats_; }
  bool has_timestamps() const;
  /// Milliseconds of repeated calls of `work`, by the host's clock; the first calls, which compile, are not counted.
  Times time(const std::function<void()>& work) const;
  /// Likewise with the milliseconds that each call returns.
  Times time_returned(const std::function<double()>& work) const;
  /// Measures the computation of `result` from the inputs of a graph.
  Measured run(const halfstep::Graph& graph, halfstep::Tensor result) const { return run(graph, result, false); }
  /// Likewise for its last dispatch alone (if the queue has timestamps).
  Measured run_last(const halfstep::Graph& graph, halfstep::Tensor result) const { return run(graph, result, true); }

 private:
  Measured run(const halfstep::Graph& graph, halfstep::Tensor result, bool last_only) const;

  halfstep::Device device_;
  int repeats_;
};

/// Numbers uniform on [-1, 1]; the same in every call.
std::vector<float> random_values(std::int64_t count);

/// "f32", "f16" or "bf16".
halfstep::DType dtype_of(const std::string& name);

}  // namespace bench

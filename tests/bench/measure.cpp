#include "bench/measure.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <chrono>
#include <random>

#include "graph/dtype.h"
#include "graph/ir.h"
#include "step/execution.h"

namespace bench {
namespace {

using namespace halfstep;
using Clock = std::chrono::steady_clock;

/// The first runs compile, and the next have cold caches.
constexpr int warm_up = 3;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void feed_random(step::Execution& execution, const graph::Ir& ir) {
  for (const graph::ValueId input : ir.of(graph::Origin::input)) {
    const std::int64_t count = elements(ir.values[input].type.shape);
    if (ir.values[input].type.dtype == DType::u32) {
      execution.set(input, std::vector<std::uint32_t>(static_cast<std::size_t>(count), 1));
    } else {
      execution.set(input, random_values(count));
    }
  }
}

double bytes_touched(const plan::Program& program, std::size_t skipped) {
  double total = 0;
  for (std::size_t i = skipped; i < program.dispatches.size(); ++i) {
    total += static_cast<double>(plan::bytes_touched(program, program.dispatches[i]));
  }
  return total;
}

}  // namespace

bool Bench::has_timestamps() const {
  return vk::context_of(device_).capabilities().timestamp_bits > 0;
}

Times Bench::time_returned(const std::function<double()>& work) const {
  for (int i = 0; i < warm_up; ++i) work();
  std::vector<double> times;
  for (int i = 0; i < repeats_; ++i) times.push_back(work());
  return times_of(std::move(times));
}

Times Bench::time(const std::function<void()>& work) const {
  return time_returned([&] {
    const auto start = Clock::now();
    work();
    return milliseconds_since(start);
  });
}

Measured Bench::run(const Graph& graph, Tensor result, bool last_only) const {
  step::ExecutionOptions options;
  options.timestamps = true;
  step::Execution execution(vk::context_of(device_), graph.ir(), {result.id()}, options);
  feed_random(execution, graph.ir());
  const plan::Program& program = execution.plan().program;
  const std::size_t skipped = last_only ? program.dispatches.size() - 1 : 0;
  if (!has_timestamps()) return {time([&] { execution.run(); }), Timer::clock, bytes_touched(program, 0)};
  const Times times = time_returned([&] {
    execution.run();
    const std::vector<step::DispatchTime>& ran = execution.dispatch_times();
    return (ran.back().end - ran[skipped].begin) / 1000;
  });
  return {times, Timer::timestamps, bytes_touched(program, skipped)};
}

std::vector<float> random_values(std::int64_t count) {
  std::mt19937 generator(1);
  std::uniform_real_distribution<float> distribution(-1, 1);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = distribution(generator);
  return values;
}

DType dtype_of(const std::string& name) {
  for (const graph::TypeInfo& type : graph::all_types()) {
    if (type.name == name) return type.dtype;
  }
  fail("bench", fmt::format("expected {}, got {}", graph::floating_names(), name));
}

}  // namespace bench

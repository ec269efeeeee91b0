#pragma once

#include <halfstep/device.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace bench {

/// The times of all repeats of one item, in milliseconds.
struct Times {
  double median = 0;
  double least = 0;
  double spread = 0;  ///< interquartile range
};

/// Throws Error if `milliseconds` is empty.
Times times_of(std::vector<double> milliseconds);

/// How times are measured.
enum class Timer : std::uint8_t {
  timestamps,  ///< the device's
  clock,       ///< the host's: submit and wait included
};

/// The times of running a graph.
struct Measured {
  Times times;
  Timer timer = Timer::clock;
  double bytes = 0;  ///< of the tensors that its dispatches read and write
};

/// One row of the report: an item and its times.
struct Result {
  std::string name;
  Times times{};
  Timer timer = Timer::clock;
  double flops = 0;                         ///< a multiply-add counts as two; 0: not known
  double bytes = 0;                         ///< read and written; 0: not known
  std::map<std::string, double> figures{};  ///< any other results
};

/// One dispatch of a step.
struct OperatorCost {
  std::string label;
  std::string shader;
  double milliseconds = 0;
  double flops = 0;
  double bytes = 0;
};

/// The device's measured peak rates, per millisecond.
struct Peaks {
  double flops = 0;  ///< of f32 multiply-adds in registers, counted as two
  double bytes = 0;  ///< read and written by a copy larger than any cache
};

/// Collects results, then prints them.
class Report {
 public:
  Report(const halfstep::DeviceInfo& device, const Peaks& peaks) : device_(device), peaks_(peaks) {}

  void add(Result result) { results_.push_back(std::move(result)); }
  void add(std::string name, const Measured& measured, double flops = 0);
  /// A step's dispatches, in order; the `shown` most expensive ones are printed.
  void add_operators(std::vector<OperatorCost> operators, std::size_t shown);

  void print() const;
  void write_json(const std::filesystem::path& path) const;

 private:
  halfstep::DeviceInfo device_;
  Peaks peaks_;
  std::vector<Result> results_;
  std::vector<OperatorCost> operators_;
  std::size_t operators_shown_ = 0;
};

}  // namespace bench

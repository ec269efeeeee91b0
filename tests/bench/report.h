#pragma once

#include <halfstep/device.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace bench {

/// What the repeats of one thing took, in milliseconds.
struct Times {
  double median = 0;
  double least = 0;
  double spread = 0;  ///< between the quartiles
};

/// Throws Error where there is none.
Times times_of(std::vector<double> milliseconds);

/// Where times come from.
enum class Timer : std::uint8_t {
  timestamps,  ///< the device's
  clock,       ///< the host's: submit and wait included
};

/// What a graph took to run.
struct Measured {
  Times times;
  Timer timer = Timer::clock;
  double bytes = 0;  ///< of the tensors that its dispatches read and write
};

/// One row: something done, and how long it took.
struct Result {
  std::string name;
  Times times{};
  Timer timer = Timer::clock;
  double flops = 0;                         ///< multiply-adds counted as two; 0: not told
  double bytes = 0;                         ///< read and written; 0: not told
  std::map<std::string, double> figures{};  ///< whatever else there is to say of it
};

/// One dispatch of a step.
struct OperatorCost {
  std::string label;
  std::string shader;
  double milliseconds = 0;
  double flops = 0;
  double bytes = 0;
};

/// The most that a device gives, as measured on it, in a millisecond.
struct Peaks {
  double flops = 0;  ///< of f32 multiply-adds in registers, counted as two
  double bytes = 0;  ///< read and written by a copy that no cache holds
};

/// Collects results, then shows them.
class Report {
 public:
  Report(const halfstep::DeviceInfo& device, const Peaks& peaks) : device_(device), peaks_(peaks) {}

  void add(Result result) { results_.push_back(std::move(result)); }
  void add(std::string name, const Measured& measured, double flops = 0);
  /// A step's dispatches, in order; `shown` of them are printed, the most costly first.
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

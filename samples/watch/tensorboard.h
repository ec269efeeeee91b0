#pragma once

#include <filesystem>

#include "samples/watch/event_file.h"
#include "samples/watch/records.h"

namespace samples {

/// Writes records as TensorBoard's events: scalars of steps and tests, histograms of tensors' exponents, pictures, what
/// was decided as text, the step's graph, and the flags as hyperparameters.
class TensorBoard : public Sink {
 public:
  /// Begins a file of its own in the folder, as each run does. Throws Error where it cannot be made.
  explicit TensorBoard(const std::filesystem::path& folder) : file_(folder) {}
  void write(const Record& record) override;

 private:
  void add_start(const Record& record);
  void add_graph(const Record& record);
  /// A message of values, Summary.
  void add_summary(std::uint64_t step, const Message& values);

  EventFile file_;
};

}  // namespace samples

#pragma once

#include <halfstep/halfstep.h>

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <map>
#include <string>

#include "samples/common/report.h"

namespace samples {

/// One thing that happened in a run. "kind" says what, and which other keys there are; numbers that are not finite are
/// null. "seconds" count from the start of the process's run, "step" counts the steps of the whole training.
using Record = nlohmann::ordered_json;

/// What receives the records of a run, in order. A call throws Error where it cannot be written.
class Sink {
 public:
  Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  virtual ~Sink() = default;
  virtual void write(const Record& record) = 0;
};

/// What a run begins with.
struct RunStart {
  std::string program;
  std::string device;
  std::string precision;
  bool resumed = false;    ///< goes on from a checkpoint, which may be one of step 0
  std::uint64_t step = 0;  ///< already made
  std::int64_t steps = 0;  ///< that the whole training is to have
  std::int64_t batch_size = 0;
  std::uint64_t seed = 0;
  std::map<std::string, std::string> flags;
};

/// {"kind": "start", "time", "program", "device", "precision", "step", "steps", "batch_size", "seed", "flags", "plan"}
Record start_record(const RunStart& start, const halfstep::PlanSummary& plan);
/// {"kind": "decision", "text"}
Record decision_record(const std::string& text);
/// {"kind": "step", "seconds", "step", "loss", "metrics", "rate", "loss_scale", "gradient_norm", "clip", "overflowed",
/// "skipped", "tensor_updates_skipped"}
Record step_record(const halfstep::StepReport& report, double seconds);
/// {"kind": "evaluation", "seconds", "step", "train_loss", "train_seconds", "samples_per_second", "scores"}: of the
/// scores, test_accuracy is the program's test.
Record evaluation_record(const EpochResult& result, std::uint64_t step, double seconds);
/// {"kind": "tensor", "step", "name", "op", ... as in TensorStatistics}
Record tensor_record(const halfstep::TensorStatistics& seen);
/// {"kind": "operators", "rows"}: the dispatches of the step in order, each {"label", "shader", "phase", "bytes",
/// "flops", "recomputed", "from", "writes"}, with the places in "rows" of those whose results it reads, and its results
/// {"name", "type", "shape", "bytes", "buffer"}. Where `timeline` has times, also "milliseconds".
Record operators_record(const halfstep::PlannedStep& step, const halfstep::Timeline& timeline);
/// {"kind": "picture", "step", "name", "path", "width", "height"}: a PNG file
Record picture_record(std::uint64_t step, const std::string& name, const std::filesystem::path& path, int width,
                      int height);
/// {"kind": "end", "seconds", "step", "complete"}: `complete` is false where the run was stopped
Record end_record(std::uint64_t step, bool complete, double seconds);

/// A record as one line of text, without its end.
std::string line_of(const Record& record);

}  // namespace samples

#include "samples/watch/records.h"

#include <nlohmann/json.hpp>

#include <ctime>

namespace samples {
namespace {

std::string now_in_utc() {
  const std::time_t now = std::time(nullptr);
  char text[] = "2000-01-01T00:00:00Z";
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text;
}

}  // namespace

Record start_record(const RunStart& start, const halfstep::PlanSummary& plan) {
  return {{"kind", "start"},
          {"time", now_in_utc()},
          {"program", start.program},
          {"device", start.device},
          {"precision", start.precision},
          {"step", start.step},
          {"steps", start.steps},
          {"batch_size", start.batch_size},
          {"seed", start.seed},
          {"flags", start.flags},
          {"plan",
           {{"parameters", plan.parameters},
            {"dispatches", plan.dispatches},
            {"barriers", plan.barriers},
            {"flops", plan.flops},
            {"peak_bytes", plan.peak_bytes},
            {"arena_bytes", plan.arena_bytes},
            {"weight_bytes", plan.weight_bytes},
            {"gradient_bytes", plan.gradient_bytes},
            {"optimizer_bytes", plan.optimizer_bytes},
            {"data_bytes", plan.data_bytes}}}};
}

Record decision_record(const std::string& text) {
  return {{"kind", "decision"}, {"text", text}};
}

Record step_record(const halfstep::StepReport& report, double seconds) {
  return {{"kind", "step"},
          {"seconds", seconds},
          {"step", report.step},
          {"loss", report.loss},
          {"metrics", report.metrics},
          {"rate", report.rate},
          {"loss_scale", report.loss_scale},
          {"gradient_norm", report.gradient_norm},
          {"clip", report.clip},
          {"overflowed", report.overflowed},
          {"skipped", report.skipped},
          {"tensor_updates_skipped", report.tensor_updates_skipped}};
}

Record evaluation_record(const EpochResult& result, std::uint64_t step, double seconds) {
  std::map<std::string, double> scores = result.scores;
  if (result.test_accuracy) scores["test_accuracy"] = *result.test_accuracy;
  return {{"kind", "evaluation"},
          {"seconds", seconds},
          {"step", step},
          {"train_loss", result.loss},
          {"train_seconds", result.seconds},
          {"samples_per_second", result.samples_per_second},
          {"scores", scores}};
}

Record tensor_record(const halfstep::TensorStatistics& seen) {
  return {{"kind", "tensor"},
          {"step", seen.step},
          {"name", seen.name},
          {"op", seen.op},
          {"micro_batch", seen.micro_batch},
          {"loss_scale", seen.loss_scale},
          {"gradient_scale", seen.gradient_scale},
          {"elements", seen.elements},
          {"min", seen.min},
          {"max", seen.max},
          {"mean_magnitude", seen.mean_magnitude},
          {"rms", seen.rms},
          {"zeros", seen.zeros},
          {"subnormals", seen.subnormals},
          {"large", seen.large},
          {"infinities", seen.infinities},
          {"nans", seen.nans},
          {"first_exponent", halfstep::TensorStatistics::first_exponent},
          {"exponents", seen.exponents}};
}

Record operators_record(const halfstep::PlannedStep& step, const halfstep::Timeline& timeline) {
  Record rows = Record::array();
  for (std::size_t i = 0; i < step.dispatches.size(); ++i) {
    const halfstep::PlannedDispatch& dispatch = step.dispatches[i];
    Record from = Record::array();
    for (const halfstep::PlannedDispatch::Read& read : dispatch.reads) {
      if (read.from >= 0) from.push_back(read.from);
    }
    Record writes = Record::array();
    for (const std::size_t index : dispatch.writes) {
      const halfstep::PlannedTensor& tensor = step.tensors[index];
      writes.push_back({{"name", tensor.name},
                        {"type", halfstep::name(tensor.dtype)},
                        {"shape", tensor.shape},
                        {"bytes", tensor.bytes},
                        {"buffer", tensor.buffer}});
    }
    rows.push_back({{"label", dispatch.label},
                    {"shader", dispatch.shader},
                    {"phase", dispatch.phase},
                    {"recomputed", dispatch.recomputed},
                    {"bytes", dispatch.bytes},
                    {"flops", dispatch.flops},
                    {"from", std::move(from)},
                    {"writes", std::move(writes)}});
    if (i < timeline.dispatches.size()) rows.back()["milliseconds"] = timeline.dispatches[i].milliseconds;
  }
  return {{"kind", "operators"}, {"rows", std::move(rows)}};
}

Record picture_record(std::uint64_t step, const std::string& name, const std::filesystem::path& path, int width,
                      int height) {
  return {{"kind", "picture"}, {"step", step},    {"name", name}, {"path", path.generic_string()},
          {"width", width},    {"height", height}};
}

Record end_record(std::uint64_t step, bool complete, double seconds) {
  return {{"kind", "end"}, {"seconds", seconds}, {"step", step}, {"complete", complete}};
}

std::string line_of(const Record& record) {
  // A device's name comes from its driver, and flags from a terminal: they may not be UTF-8.
  return record.dump(-1, ' ', false, Record::error_handler_t::replace);
}

}  // namespace samples

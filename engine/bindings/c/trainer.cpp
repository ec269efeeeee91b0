#include <halfstep/inspector.h>
#include <halfstep/trainer.h>

#include "c/handles.h"

using namespace halfstep;
using namespace halfstep::c;

namespace {

Weights weights_of(hs_weights weights) {
  if (weights != HS_CURRENT && weights != HS_AVERAGED) {
    fail("trainer", "expected HS_CURRENT or HS_AVERAGED, got " + std::to_string(static_cast<int>(weights)));
  }
  return weights == HS_CURRENT ? Weights::current : Weights::averaged;
}

Trainer& trainer_of(hs_trainer* trainer) {
  return given(trainer, "a trainer").trainer;
}

/// Writes metrics in the order of the trainer's options.
template <typename Number, typename Metrics>
void write_metrics(const hs_trainer& trainer, const Metrics& metrics, std::size_t count, Number* room) {
  const std::vector<std::string>& names = trainer.metrics();
  const std::span<Number> places = list(room, room == nullptr ? 0 : count, "room for metrics");
  if (places.empty()) return;
  if (places.size() < names.size()) {
    fail("trainer",
         "expected room for " + std::to_string(names.size()) + " metrics, got " + std::to_string(places.size()));
  }
  for (std::size_t i = 0; i < names.size(); i++) {
    const auto found = metrics.find(names[i]);
    places[i] = found == metrics.end() ? std::numeric_limits<Number>::quiet_NaN() : found->second;
  }
}

void write_point(const ResumePoint& from, hs_resume_point* point) {
  if (point != nullptr) *point = {from.step, from.epoch, from.epoch_step};
}

}  // namespace

hs_status hs_trainer_create(const hs_device* device, const hs_graph* graph, const hs_trainer_options* options,
                            hs_trainer** trainer) {
  return created(trainer, [&] {
    const Device& on = given(device, "a device").device;
    std::vector<Training> trainings;
    trainings.push_back(training_of(given(graph, "a graph"), given(options, "options of a trainer")));
    Trainer made = Trainer::compile(on, *graph->graph, trainings.back().options);
    return new hs_trainer{std::move(trainings), std::move(made)};
  });
}

hs_status hs_trainer_create_to_fit(const hs_device* device,
                                   hs_status (*model)(void* user, hs_graph* graph, int64_t batch,
                                                      hs_trainer_options* options),
                                   void* user, int64_t batch, hs_trainer** trainer) {
  return created(trainer, [&] {
    const Device& on = given(device, "a device").device;
    given(model, "a function that builds the model");
    std::vector<Training> tried;
    Trainer made = Trainer::compile(
        on,
        [&](Graph& graph, std::int64_t samples) {
          hs_graph view;
          view.graph = &graph;
          hs_trainer_options options{};
          options.size = sizeof options;
          if (const hs_status status = model(user, &view, samples, &options); status != HS_OK) {
            expect_sound(view);
            fail("trainer", "the function that builds the model returned " + std::to_string(status));
          }
          return tried.emplace_back(training_of(view, options)).options;
        },
        batch);
    return new hs_trainer{std::move(tried), std::move(made)};
  });
}

void hs_trainer_free(hs_trainer* trainer) {
  delete trainer;
}

hs_status hs_trainer_step(hs_trainer* trainer, const hs_values* inputs, size_t count) {
  return guarded([&] {
    if (count == 0) {
      trainer_of(trainer).step();
    } else {
      trainer_of(trainer).step(values_of(inputs, count));
    }
  });
}

hs_status hs_trainer_run_for(hs_trainer* trainer, int64_t nanoseconds, int* ended) {
  if (ended != nullptr) *ended = 0;
  return guarded([&] {
    const bool whole = trainer_of(trainer).run_for(std::chrono::nanoseconds(nanoseconds));
    if (ended != nullptr) *ended = whole ? 1 : 0;
  });
}

hs_status hs_trainer_record(hs_trainer* trainer, void* command_buffer) {
  return guarded([&] { trainer_of(trainer).record(command_buffer); });
}

hs_status hs_trainer_executed(hs_trainer* trainer) {
  return guarded([&] { trainer_of(trainer).executed(); });
}

hs_status hs_trainer_report(hs_trainer* trainer, hs_report* report) {
  return guarded([&] {
    const StepReport from = trainer_of(trainer).report();
    hs_report result = c::read(&given(report, "room for a report"), "report");
    result.step = from.step;
    result.applied = from.applied;
    result.skipped = from.skipped;
    result.tensor_updates_skipped = from.tensor_updates_skipped;
    result.loss = from.loss;
    result.loss_scale = from.loss_scale;
    result.rate = from.rate;
    result.clip = from.clip;
    result.gradient_norm = from.gradient_norm;
    result.overflowed = from.overflowed ? 1 : 0;
    write_metrics(*trainer, from.metrics, result.metric_count, result.metrics);
    write(result, report, "room for a report");
  });
}

hs_status hs_trainer_finish(hs_trainer* trainer) {
  return guarded([&] { trainer_of(trainer).finish(); });
}

hs_status hs_trainer_evaluate(hs_trainer* trainer, const hs_dataset* set, hs_weights weights, int (*stop)(void* user),
                              void* user, hs_evaluation* evaluation) {
  return guarded([&] {
    hs_evaluation result = c::read(&given(evaluation, "room for an evaluation"), "evaluation");
    const auto stopped = [stop, user] { return stop != nullptr && stop(user) != 0; };
    const Evaluation from = trainer_of(trainer).evaluate(*given(set, "a data set").set, weights_of(weights), stopped);
    result.samples = from.samples;
    result.loss = from.loss;
    write_metrics(*trainer, from.metrics, result.metric_count, result.metrics);
    write(result, evaluation, "room for an evaluation");
  });
}

hs_status hs_trainer_parameter(hs_trainer* trainer, const char* path, hs_weights weights, float* values, size_t count) {
  return guarded([&] {
    const std::string name = text(path, "a parameter's path");
    const std::vector<float> from = trainer_of(trainer).parameter(name, weights_of(weights));
    if (from.size() != count) {
      fail("trainer", "expected room for the " + std::to_string(from.size()) + " elements of '" + name + "', got " +
                          std::to_string(count));
    }
    std::ranges::copy(from, list(values, count, "room for values").begin());
  });
}

hs_status hs_trainer_set_parameter(hs_trainer* trainer, const char* path, const float* values, size_t count) {
  return guarded(
      [&] { trainer_of(trainer).set_parameter(text(path, "a parameter's path"), list(values, count, "values")); });
}

hs_status hs_trainer_plan(hs_trainer* trainer, char* buffer, size_t capacity, size_t* needed) {
  return guarded([&] { write_text(trainer_of(trainer).inspect().plan(), buffer, capacity, needed); });
}

hs_status hs_trainer_explain(hs_trainer* trainer, char* buffer, size_t capacity, size_t* needed) {
  return guarded([&] { write_text(trainer_of(trainer).inspect().explain(), buffer, capacity, needed); });
}

hs_status hs_trainer_reopen(hs_trainer* trainer, const hs_device* device, hs_resume_point* point) {
  return hs_trainer_reopen_shared(trainer, device, nullptr, 0, point);
}

hs_status hs_trainer_reopen_shared(hs_trainer* trainer, const hs_device* device, const hs_device_buffer* shared_inputs,
                                   size_t count, hs_resume_point* point) {
  return guarded([&] {
    const Device& on = given(device, "a device").device;
    write_point(trainer_of(trainer).reopen(on, buffers_of(shared_inputs, count)), point);
  });
}

hs_status hs_trainer_save(hs_trainer* trainer, const char* path) {
  return guarded([&] { trainer_of(trainer).save(path_of(path, "a path")); });
}

hs_status hs_trainer_load(hs_trainer* trainer, const char* path, hs_resume_point* point) {
  return guarded([&] { write_point(trainer_of(trainer).load(path_of(path, "a path")), point); });
}

hs_status hs_trainer_checkpoint(hs_trainer* trainer, hs_checkpoint** checkpoint) {
  return created(checkpoint, [&] { return new hs_checkpoint{trainer_of(trainer).checkpoint()}; });
}

hs_status hs_trainer_load_checkpoint(hs_trainer* trainer, const hs_checkpoint* checkpoint, hs_resume_point* point) {
  return guarded([&] { write_point(trainer_of(trainer).load(given(checkpoint, "a checkpoint").checkpoint), point); });
}

hs_status hs_checkpoint_write(const hs_checkpoint* checkpoint, const char* path) {
  return guarded([&] { given(checkpoint, "a checkpoint").checkpoint.write(path_of(path, "a path")); });
}

void hs_checkpoint_free(hs_checkpoint* checkpoint) {
  delete checkpoint;
}

hs_status hs_trainer_save_weights(hs_trainer* trainer, const char* path, hs_weights weights) {
  return guarded([&] { trainer_of(trainer).save_weights(path_of(path, "a path"), weights_of(weights)); });
}

hs_status hs_trainer_load_weights(hs_trainer* trainer, const char* path, int strict, hs_load_report** report) {
  if (report != nullptr) *report = nullptr;
  return guarded(
      [&] { give(trainer_of(trainer).load_weights(path_of(path, "a path"), load_options(strict)), report); });
}

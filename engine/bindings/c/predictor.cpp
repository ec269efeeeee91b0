#include <halfstep/predictor.h>

#include "c/handles.h"

using namespace halfstep;
using namespace halfstep::c;

namespace {

Predictor& predictor_of(hs_predictor* predictor) {
  return given(predictor, "a predictor").predictor;
}

SharedBuffers shared_of(const hs_shared_buffers* given) {
  const hs_shared_buffers read = c::read(given, "predictor");
  SharedBuffers shared;
  shared.inputs = buffers_of(read.inputs, read.input_count);
  if (read.output != nullptr) shared.output = buffer_of(*read.output);
  return shared;
}

hs_predictor* predictor_handle(Predictor predictor, Tensor output, const SharedBuffers& shared) {
  const std::int64_t numbers = shared.output.has_value() ? 0 : elements(output.shape());
  return new hs_predictor{std::move(predictor), static_cast<std::size_t>(numbers)};
}

const std::vector<std::string>* names_of(const hs_load_report* report, hs_load_list which) {
  if (report == nullptr) return nullptr;
  const LoadReport& lists = report->report;
  switch (which) {
    case HS_LOADED:
      return &lists.loaded;
    case HS_MISSING:
      return &lists.missing;
    case HS_UNEXPECTED:
      return &lists.unexpected;
    case HS_MISMATCHED:
      return &lists.mismatched;
    case HS_NOT_FINITE:
      return &lists.not_finite;
  }
  return nullptr;
}

}  // namespace

hs_status hs_predictor_create(const hs_device* device, const hs_graph* graph, hs_tensor output,
                              const hs_precision* precision, hs_predictor** predictor) {
  return hs_predictor_create_shared(device, graph, output, precision, nullptr, predictor);
}

hs_status hs_predictor_create_shared(const hs_device* device, const hs_graph* graph, hs_tensor output,
                                     const hs_precision* precision, const hs_shared_buffers* shared,
                                     hs_predictor** predictor) {
  return created(predictor, [&] {
    const Device& on = given(device, "a device").device;
    const Tensor computed = tensor_of(given(graph, "a graph"), output);
    const Precision with = precision == nullptr ? Precision::float32() : precision_of(precision);
    const SharedBuffers buffers = shared_of(shared);
    return predictor_handle(Predictor::compile(on, *graph->graph, computed, with, buffers), computed, buffers);
  });
}

hs_status hs_predictor_of_trainer(const hs_trainer* trainer, const hs_graph* graph, hs_tensor output,
                                  hs_predictor** predictor) {
  return hs_predictor_of_trainer_shared(trainer, graph, output, nullptr, predictor);
}

hs_status hs_predictor_of_trainer_shared(const hs_trainer* trainer, const hs_graph* graph, hs_tensor output,
                                         const hs_shared_buffers* shared, hs_predictor** predictor) {
  return created(predictor, [&] {
    const Tensor computed = tensor_of(given(graph, "a graph"), output);
    const Trainer& of = given(trainer, "a trainer").trainer;
    const SharedBuffers buffers = shared_of(shared);
    return predictor_handle(Predictor::compile(of, *graph->graph, computed, buffers), computed, buffers);
  });
}

hs_status hs_predictor_of_predictor(const hs_predictor* other, const hs_graph* graph, hs_tensor output,
                                    hs_predictor** predictor) {
  return hs_predictor_of_predictor_shared(other, graph, output, nullptr, predictor);
}

hs_status hs_predictor_of_predictor_shared(const hs_predictor* other, const hs_graph* graph, hs_tensor output,
                                           const hs_shared_buffers* shared, hs_predictor** predictor) {
  return created(predictor, [&] {
    const Tensor computed = tensor_of(given(graph, "a graph"), output);
    const Predictor& of = given(other, "a predictor").predictor;
    const SharedBuffers buffers = shared_of(shared);
    return predictor_handle(Predictor::compile(of, *graph->graph, computed, buffers), computed, buffers);
  });
}

hs_status hs_predictor_submit(hs_predictor* predictor, const hs_values* inputs, size_t count) {
  return guarded([&] { predictor_of(predictor).submit(values_of(inputs, count)); });
}

hs_status hs_predictor_record(hs_predictor* predictor, void* command_buffer) {
  return guarded([&] { predictor_of(predictor).record(command_buffer); });
}

void hs_predictor_free(hs_predictor* predictor) {
  delete predictor;
}

hs_status hs_predictor_load_weights(hs_predictor* predictor, const char* path, int strict, hs_load_report** report) {
  if (report != nullptr) *report = nullptr;
  return guarded(
      [&] { give(predictor_of(predictor).load_weights(path_of(path, "a path"), load_options(strict)), report); });
}

hs_status hs_predictor_run(hs_predictor* predictor, const hs_values* inputs, size_t count, float* output,
                           size_t output_count) {
  return guarded([&] {
    const std::span<float> room = list(output, output_count, "room for the output");
    Predictor& running = predictor_of(predictor);
    // Before the run, which may change caches.
    if (room.size() != predictor->numbers) {
      fail("predictor",
           "expected room for " + std::to_string(predictor->numbers) + " numbers, got " + std::to_string(room.size()));
    }
    std::ranges::copy(running.run(values_of(inputs, count)), room.begin());
  });
}

hs_status hs_predictor_clear_caches(hs_predictor* predictor) {
  return guarded([&] { predictor_of(predictor).clear_caches(); });
}

hs_status hs_file_metadata(const char* path, const char* key, char* buffer, size_t capacity, size_t* needed) {
  return guarded([&] {
    const std::filesystem::path file = path_of(path, "a path");
    const CheckpointSummary summary = summarize_checkpoint(file);
    const auto found = summary.metadata.find(text(key, "a key"));
    if (found == summary.metadata.end()) {
      fail(ErrorCode::bad_file, std::string(text(path, "a path")),
           std::string("expected metadata '") + key + "', got none of that name");
    }
    write_text(found->second, buffer, capacity, needed);
  });
}

size_t hs_load_report_count(const hs_load_report* report, hs_load_list list) {
  const std::vector<std::string>* names = names_of(report, list);
  return names == nullptr ? 0 : names->size();
}

const char* hs_load_report_name(const hs_load_report* report, hs_load_list list, size_t index) {
  const std::vector<std::string>* names = names_of(report, list);
  return names == nullptr || index >= names->size() ? nullptr : (*names)[index].c_str();
}

void hs_load_report_free(hs_load_report* report) {
  delete report;
}

#pragma once

#include <halfstep/checkpoint.h>
#include <halfstep/data.h>
#include <halfstep/device.h>
#include <halfstep/graph.h>
#include <halfstep/optimizer.h>
#include <halfstep/predictor.h>
#include <halfstep/trainer.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "c/call.h"

// What the opaque handles of the C interface refer to.

struct hs_device {
  halfstep::Device device;
};

/// Tensors are counted from 1, in the order in which they were made.
struct hs_graph {
  halfstep::Graph own{};
  halfstep::Graph* graph = &own;
  std::vector<halfstep::Tensor> tensors{};
  halfstep::c::Failure failure{};  ///< the first
};

struct hs_dataset {
  std::shared_ptr<const halfstep::Dataset> set;
};

struct hs_checkpoint {
  halfstep::Checkpoint checkpoint;
};

struct hs_load_report {
  halfstep::LoadReport report;
};

namespace halfstep::c {

/// Options of a trainer with what they refer to.
struct Training {
  TrainerOptions options{};
  std::vector<std::string> metrics{};  ///< in the order in which they were given
  std::shared_ptr<const Dataset> set{};
  std::shared_ptr<const Source> source{};
};

}  // namespace halfstep::c

struct hs_trainer {
  /// One, or those of all sizes that were tried, of which the trainer has one.
  std::vector<halfstep::c::Training> trainings;
  halfstep::Trainer trainer;

  const std::vector<std::string>& metrics() const { return trainings.back().metrics; }
};

struct hs_predictor {
  halfstep::Predictor predictor;
  std::size_t numbers;  ///< that a run returns
};

namespace halfstep::c {

/// `items` as a span. Throws Error if there are some, but no pointer.
template <typename T>
std::span<T> list(T* items, std::size_t count, const char* what) {
  if (items == nullptr && count > 0) fail("halfstep", std::string("expected ") + what + ", got NULL");
  return {items, count};
}

/// A text that is too long is cut between characters.
hs_device_info info_of(const DeviceInfo& device);
std::filesystem::path path_of(const char* given, const char* what);
DType dtype_of(hs_dtype dtype);
hs_dtype dtype_of(DType dtype);
ElementType element_of(hs_element element);
/// Throws Error if the rank is not from 0 to HS_MAX_RANK.
Shape shape_of(const hs_shape& shape);
hs_shape shape_of(const Shape& shape);
Initializer initializer_of(const hs_initializer& initializer);
/// The scope of a path such as "layer1/conv"; "" is the outermost.
Scope scope_of(Graph& graph, std::string_view path);
Field field_of(const hs_field& field);
Source source_of(const hs_source& source);
/// Of these two, null stands for defaults.
Precision precision_of(const hs_precision* precision);
Optimizer optimizer_of(const hs_optimizer* optimizer);
/// Reads all of a trainer's options. Throws Error if one is not valid, or if the graph has a failure.
Training training_of(const hs_graph& graph, const hs_trainer_options& options);
std::map<std::string, Values> values_of(const hs_values* inputs, std::size_t count);
DeviceBuffer buffer_of(const hs_device_buffer& buffer);
/// By their names. Throws Error where one has none, or another's.
std::map<std::string, DeviceBuffer> buffers_of(const hs_device_buffer* buffers, std::size_t count);
LoadOptions load_options(int strict);
/// Gives `report` to the caller, if there is room for it.
void give(const LoadReport& report, hs_load_report** room);

/// The tensor of that number. Throws Error if there is none, and Failed if the graph has a failure.
Tensor tensor_of(const hs_graph& graph, hs_tensor number);
/// Likewise; 0 is none.
std::optional<Tensor> optional_tensor_of(const hs_graph& graph, hs_tensor number);
/// Throws Error with the graph's first failure if it has one.
void expect_sound(const hs_graph& graph);

/// Adds what `make` returns for the graph, unless it has a failure; keeps the failure otherwise. Returns its number, or
/// 0.
template <typename Make>
hs_tensor added(hs_graph* graph, Make&& make) noexcept {
  if (graph == nullptr) {
    failed(HS_BAD_ARGUMENT, "[halfstep] expected a graph, got NULL");
    return 0;
  }
  if (graph->failure.status != HS_OK) return 0;
  const hs_status status = guarded([&] { graph->tensors.push_back(std::invoke(std::forward<Make>(make), *graph)); });
  if (status == HS_OK) return static_cast<hs_tensor>(graph->tensors.size());
  graph->failure = last_failure();
  return 0;
}

}  // namespace halfstep::c

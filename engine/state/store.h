#pragma once

#include <halfstep/optimizer.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "state/buffers.h"
#include "state/store_spec.h"
#include "vk/command/memory.h"
#include "vk/device/context.h"

namespace halfstep::state {

/// One tensor of values that a store keeps: what Trainer::parameter names and files hold.
struct KeptTensor {
  enum class Kind : std::uint8_t { weight, average, moment, state };

  Kind kind = Kind::weight;
  std::string name;                       ///< of the parameter or state, with what is kept of it: "conv/weight.average"
  const ParameterEntry* entry = nullptr;  ///< of the store's layout
  std::uint32_t moment = 0;               ///< which of its optimizer's
  DType dtype = DType::f32;               ///< in files
};

/// What training changes: weights, masters, gradients, moments, averages, states, gradients' scales and the StepState,
/// on the device. Programs work on its buffers, each of which consists of several where it is larger than the device's
/// largest (Parts): a tensor lies in one of them, or of a larger one each window. The host reads and writes it by
/// tensors, a few at a time. Every function that touches the device waits for what was submitted before and for its own
/// copies, and throws Error where the device is lost.
class ParameterStore {
 public:
  /// Everything is zero but for the schedules and the scales of gradients. Throws Error where there is no memory for
  /// it.
  ParameterStore(vk::Context& context, StoreSpec spec);

  const StoreSpec& spec() const { return spec_; }
  /// One of the table's buffers; empty where it is no store's.
  const vk::Buffer& buffer(plan::BufferId id) const { return buffers_[id]; }
  /// What all of its buffers take.
  std::uint64_t bytes() const;

  /// What a checkpoint has, in its order: for each parameter its weight, average and moments; then the states.
  std::vector<KeptTensor> tensors() const;
  /// Weights, or averages in their place and by their names, and states.
  std::vector<KeptTensor> tensors(Weights weights) const;
  /// Throws Error where averages are asked for and there are none.
  void check(Weights weights) const;
  /// The one of these with a name. Throws Error where there is none.
  KeptTensor find(std::string_view name, Weights weights = Weights::current) const;

  /// The values of a tensor, in the order of its shape; of the f32 masters where there are any. Where other ranks have
  /// parts of them, they give these, and every rank calls it.
  std::vector<float> read(const KeptTensor& tensor) const;
  /// Whether read() needs other ranks.
  bool is_shared_out(const KeptTensor& tensor) const;
  /// Of a weight, as operators read it: which is the same on every rank.
  std::vector<float> read_weight(const ParameterEntry& entry) const;
  /// The weights of which operators read copies that do not follow from their masters.
  std::vector<const ParameterEntry*> copied_at_random() const;
  /// Sets the copy of a weight that operators read in the place of its master.
  void write_copy(const ParameterEntry& entry, std::span<const float> values);
  /// Gives tensors their values, rounded to nearest where they are kept in f16; masters, copies and next states too.
  void write(std::span<const KeptTensor> tensors, std::span<const std::vector<float>> values);
  /// The gradient of a parameter that is trained, as the last step stored it.
  std::vector<float> read_gradient(const ParameterEntry& entry) const;
  /// Has the averages of the weights among these begin anew, as the weights are.
  void average_weights(std::span<const KeptTensor> of);

  /// Gives weights and states their first values, which are keyed on `seed`.
  void initialize(std::uint64_t seed);

  RunState read_state() const;
  void write_state(const RunState& state);
  /// The scales of gradients, see gradient_scales::read.
  std::vector<float> read_scales() const;
  void write_scales(std::span<const float> scales);

 private:
  /// A tensor in a buffer: its quads, each `lanes` quads after the one before.
  struct Place {
    plan::BufferId buffer;
    DType dtype;
    std::uint64_t first_element;  ///< counted in quads' elements of all lanes
    std::uint32_t lanes = 1;
    std::uint32_t lane = 0;
  };

  /// What a place is given.
  struct Change {
    Place place;
    TensorType type;
    std::span<const float> values;
  };

  std::vector<Place> places(const KeptTensor& tensor) const;
  std::vector<std::byte> read(const Place& place, const Shape& shape) const;
  void write(std::span<const Change> changes) const;
  /// Moments saturate: no loss scale learns of an infinite one.
  Overflow overflow_of(const Place& place) const;
  /// What this rank has of a buffer's bytes.
  std::vector<Held> held(plan::BufferId buffer, std::uint64_t first, std::uint64_t count) const;
  void download(plan::BufferId buffer, std::uint64_t first, std::span<std::byte> bytes) const;
  void upload(plan::BufferId buffer, std::uint64_t first, std::span<const std::byte> bytes) const;
  void gather(std::uint64_t first, std::span<std::byte> memory, std::uint64_t each) const;

  std::shared_ptr<vk::Context> context_;
  StoreSpec spec_;
  std::array<vk::Buffer, buffers::table.size()> buffers_;
};

}  // namespace halfstep::state

#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "plan/program.h"
#include "state/exchange_places.h"
#include "state/extents.h"
#include "state/store_spec.h"
#include "vk/command/memory.h"

/// The buffers that programs work on. A new one is a row of the table and, where the engine names it, an id below.
namespace halfstep::state {

struct BufferRow {
  std::string_view name;  ///< in plans and errors
  vk::Memory memory;
  /// How large it is in a store of this spec; 0 where the store has none. Null where it is no store's.
  std::uint64_t (*bytes)(const StoreSpec& spec);
  /// Where tensors lie in it, if it may consist of several buffers of the device: see Parts.
  Extents (*tensors)(const StoreLayout& layout, const WeightStorage& weights) = nullptr;
};

namespace buffers {

inline constexpr auto table = std::to_array<BufferRow>({
    // Activations, cotangents and workspaces: of the programs that take turns in it.
    {"arena", vk::Memory::device, nullptr},
    {"state", vk::Memory::device, [](const StoreSpec& spec) { return spec.layout.state_bytes(); }},
    // The rate of each applied step, optimizer by optimizer.
    {"schedule", vk::Memory::device,
     [](const StoreSpec& spec) { return spec.layout.first_rate(spec.layout.optimizers.size()) * sizeof(float); }},
    // What operators read.
    {"weights", vk::Memory::device,
     [](const StoreSpec& spec) { return spec.layout.parameters.padded_elements() * spec.compute_bytes(); },
     extents::computed},
    // f32 weights, where operators read a copy of them.
    {"masters", vk::Memory::device, [](const StoreSpec& spec) { return spec.master_elements() * 4; }, extents::masters},
    // Of all parameters; of one micro-batch, until the step's last.
    {"gradients", vk::Memory::device, [](const StoreSpec& spec) { return spec.trained() * spec.compute_bytes(); },
     extents::computed},
    // f32, over micro-batches.
    {"gradient sums", vk::Memory::device,
     [](const StoreSpec& spec) { return spec.micro_batches > 1 ? spec.trained() * 4 : 0; }, extents::wide},
    // f32: sums over this rank's micro-batches, then over ranks; after those of gradients, those of states. See
    // exchange_places.h for what ranks that share out the optimizers' states exchange besides.
    {"exchange", vk::Memory::readback,
     [](const StoreSpec& spec) { return spec.exchanged ? exchange_places::bytes(spec.layout) : 0; }},
    // Where gradients have scales of their own: see gradient_scales.h.
    {"gradient scales", vk::Memory::device,
     [](const StoreSpec& spec) {
       return spec.weights.scaled ? gradient_scales::buffer_bytes(spec.layout.parameters) : 0;
     }},
    // The optimizers' states: see ParameterLayout.
    {"moments", vk::Memory::device, [](const StoreSpec& spec) { return spec.moment_elements() * spec.moment_bytes(); },
     extents::moments},
    // f32, of the weights over steps.
    {"averages", vk::Memory::device, [](const StoreSpec& spec) { return spec.averages ? spec.trained() * 4 : 0; },
     extents::wide},
    // The averages as operators read them, where they do not read the averages themselves.
    {"averaged weights", vk::Memory::device,
     [](const StoreSpec& spec) {
       const bool apart = spec.averages && is_narrow(spec.weights.compute);
       return apart ? spec.trained() * spec.compute_bytes() : 0;
     },
     extents::computed},
    // What the graph keeps from step to step, such as running statistics: f32.
    {"states", vk::Memory::device, [](const StoreSpec& spec) { return spec.layout.states.padded_elements() * 4; },
     extents::states},
    // What they become if the step is applied.
    {"next states", vk::Memory::device,
     [](const StoreSpec& spec) { return spec.layout.states.padded_elements() * 4 * spec.next_states(); },
     extents::next_states},
    // What predictors keep from run to run: see Caches.
    {"caches", vk::Memory::device, nullptr},
    // A data set that is kept on the device.
    {"data", vk::Memory::device, [](const StoreSpec& spec) { return spec.data_bytes; }},
    // What the host gives one step, and what the step gives the host: of the step's slot.
    {"slot", vk::Memory::upload, nullptr},
    {"report", vk::Memory::readback, nullptr},
});

/// The place of a row, found when this is compiled: there must be one of that name.
consteval plan::BufferId id(std::string_view name) {
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i].name == name) return static_cast<plan::BufferId>(i);
  }
  throw "no buffer has this name";
}

inline constexpr plan::BufferId arena = id("arena");
inline constexpr plan::BufferId state = id("state");
inline constexpr plan::BufferId schedule = id("schedule");
inline constexpr plan::BufferId weights = id("weights");
inline constexpr plan::BufferId masters = id("masters");
inline constexpr plan::BufferId gradients = id("gradients");
inline constexpr plan::BufferId gradient_sums = id("gradient sums");
inline constexpr plan::BufferId exchange = id("exchange");
inline constexpr plan::BufferId gradient_scales = id("gradient scales");
inline constexpr plan::BufferId moments = id("moments");
inline constexpr plan::BufferId averages = id("averages");
inline constexpr plan::BufferId averaged_weights = id("averaged weights");
inline constexpr plan::BufferId states = id("states");
inline constexpr plan::BufferId next_states = id("next states");
inline constexpr plan::BufferId caches = id("caches");
inline constexpr plan::BufferId data = id("data");
inline constexpr plan::BufferId slot = id("slot");
inline constexpr plan::BufferId report = id("report");
static_assert(arena == plan::arena_buffer);

}  // namespace buffers

/// Bytes of one of a store's buffers.
inline std::uint64_t bytes_of(plan::BufferId buffer, const StoreSpec& spec) {
  return buffers::table[buffer].bytes(spec);
}

}  // namespace halfstep::state

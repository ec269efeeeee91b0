#include "step/stages.h"

namespace halfstep::step {

void update_states(const StageContext& step) {
  constexpr std::uint64_t quad_bytes = 16;
  plan::ProgramBuilder& builder = step.builder;
  const std::uint32_t local_size = flat_local_size(builder.target());
  for (const Chunk& chunk : step.state_chunks()) {
    const auto place = [&](const char* name, plan::Region store) {
      store.offset += chunk.first * quad_bytes;
      return builder.place_bytes(name, chunk.count * quad_bytes, store);
    };
    builder.dispatch(
        {.label = "update states",
         .shader = "update_states",
         .constants = {local_size},
         .push = plan::push_bytes(static_cast<std::uint32_t>(chunk.count)),
         .operands = {{step.state, plan::Access::read},
                      {place("next states", step.next_states), plan::Access::read},
                      {place("states", {state::buffers::states, 0}), plan::Access::write}},
         .groups = plan::groups_for(builder.target(), static_cast<std::int64_t>(chunk.count), local_size)});
  }
}

}  // namespace halfstep::step

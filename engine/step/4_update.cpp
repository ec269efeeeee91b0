#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "step/stages.h"

namespace halfstep::step {
namespace {

struct SgdPush {
  std::uint32_t first_quad;
  std::uint32_t quads;
  float rate;
  float momentum;
  float weight_decay;
};

struct AdamPush {
  std::uint32_t first_quad;
  std::uint32_t quads;
  float rate;
  float beta1;
  float beta2;
  float epsilon;
  float weight_decay;
};

/// The kernel of an optimizer, with its own constants after those that all share, and its push constants.
struct Kernel {
  std::string_view shader;
  std::vector<std::uint32_t> constants;
  std::vector<std::byte> push;
};

Kernel kernel(const Sgd& sgd, const LossScale& scale, std::uint32_t first, std::uint32_t quads,
              const Training& training) {
  return {"sgd",
          {sgd.momentum != 0, sgd.nesterov, scale.in_rate},
          plan::push_bytes(SgdPush{first, quads, training.rate, sgd.momentum, training.weight_decay})};
}

template <typename AdamKind>
Kernel kernel(const AdamKind& adam, const LossScale& /*scale*/, std::uint32_t first, std::uint32_t quads,
              const Training& training) {
  constexpr bool decoupled = std::is_same_v<AdamKind, AdamW>;
  return {"adam",
          {decoupled},
          plan::push_bytes(
              AdamPush{first, quads, training.rate, adam.beta1, adam.beta2, adam.epsilon, training.weight_decay})};
}

class Update {
 public:
  Update(plan::ProgramBuilder& builder, plan::TensorId state, const WeightForm& form, const Precision& precision,
         const ParameterLayout& layout, const ParameterBuffers& buffers)
      : builder_(builder), state_(state), form_(form), precision_(precision), layout_(layout), buffers_(buffers) {}

  void dispatch(const Stretch& stretch, Kernel kernel) {
    const std::uint32_t local_size = flat_local_size(builder_.target());
    std::vector<std::uint32_t> constants{local_size,
                                         form_.master,
                                         form_.copy,
                                         form_.moments == DType::f16,
                                         precision_.rounding.optimizer == Rounding::stochastic,
                                         form_.scaled};
    constants.insert(constants.end(), kernel.constants.begin(), kernel.constants.end());
    builder_.dispatch({.label = "update",
                       .shader = fmt::format("{}.{}", kernel.shader, storage(builder_.target(), form_.compute)),
                       .constants = std::move(constants),
                       .push = std::move(kernel.push),
                       .operands = operands(stretch),
                       .groups = plan::groups_for(static_cast<std::int64_t>(stretch.count), local_size),
                       .storing = storing()});
  }

 private:
  plan::Storing storing() const {
    return {.stochastic = precision_.rounding.weights == Rounding::stochastic,
            .saturate = precision_.overflow == Overflow::saturate,
            .stream = weight_rounding_stream};
  }

  /// Bindings that a form of the kernel does not touch are given the gradients: a buffer must be bound all the same.
  std::vector<plan::Operand> operands(const Stretch& stretch) {
    const auto compute = static_cast<std::uint64_t>(bytes(form_.compute));
    const auto moment = static_cast<std::uint64_t>(bytes(form_.moments));
    const plan::Operand gradients{place("gradients", buffers_.gradients, stretch, compute), plan::Access::read};
    std::vector<plan::Operand> result{{state_, plan::Access::read}, gradients, gradients, gradients, gradients};
    if (form_.master) result[2] = {place("masters", buffers_.masters, stretch, 4), plan::Access::read_write};
    if (form_.copy || !form_.master) {
      result[3] = {place("weights", buffers_.weights, stretch, compute), plan::Access::read_write};
    }
    if (form_.moments_per_element > 0) {
      result[4] = {place("moments", buffers_.moments, stretch, moment * form_.moments_per_element),
                   plan::Access::read_write};
    }
    result.push_back(read_blocks(builder_, layout_, form_, buffers_, gradients.tensor));
    return result;
  }

  plan::TensorId place(const char* name, plan::BufferId buffer, const Stretch& stretch, std::uint64_t element_bytes) {
    return builder_.place_bytes(name, stretch.count * 4 * element_bytes, {buffer, stretch.first * 4 * element_bytes});
  }

  plan::ProgramBuilder& builder_;
  plan::TensorId state_;
  const WeightForm& form_;
  const Precision& precision_;
  const ParameterLayout& layout_;
  const ParameterBuffers& buffers_;
};

}  // namespace

void update_weights(plan::ProgramBuilder& builder, plan::TensorId state, const ParameterLayout& layout,
                    const Precision& precision, const ParameterBuffers& buffers, const Optimizer& optimizer) {
  const WeightForm form = weight_form(precision, optimizer);
  const std::uint64_t widest = 16 * std::max<std::uint32_t>(1, form.moments_per_element);
  Update update(builder, state, form, precision, layout, buffers);
  for (const ParameterRun& run : layout.runs()) {
    if (run.training.frozen) continue;
    const auto kernel_for = [&](std::uint32_t first, std::uint32_t quads) {
      return std::visit(
          [&](const auto& kind) { return kernel(kind, precision.loss_scale, first, quads, run.training); }, optimizer);
    };
    for (Stretch stretch : cut(builder.target(), run.padded_elements / 4, widest)) {
      stretch.first += run.first_element / 4;
      const auto first = static_cast<std::uint32_t>(stretch.first);
      update.dispatch(stretch, kernel_for(first, static_cast<std::uint32_t>(stretch.count)));
    }
  }
}

void update_states(plan::ProgramBuilder& builder, plan::TensorId state, const ParameterLayout& layout,
                   plan::BufferId states, plan::Region next) {
  constexpr std::uint64_t quad_bytes = 16;
  const std::uint32_t local_size = flat_local_size(builder.target());
  for (const Stretch& stretch : cut(builder.target(), layout.padded_elements() / 4, quad_bytes)) {
    const auto place = [&](const char* name, plan::Region store) {
      store.offset += stretch.first * quad_bytes;
      return builder.place_bytes(name, stretch.count * quad_bytes, store);
    };
    builder.dispatch({.label = "update states",
                      .shader = "update_states",
                      .constants = {local_size},
                      .push = plan::push_bytes(static_cast<std::uint32_t>(stretch.count)),
                      .operands = {{state, plan::Access::read},
                                   {place("next states", next), plan::Access::read},
                                   {place("states", {states, 0}), plan::Access::write}},
                      .groups = plan::groups_for(static_cast<std::int64_t>(stretch.count), local_size)});
  }
}

}  // namespace halfstep::step

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/expression.h"
#include "vk/optimize/flow.h"
#include "vk/optimize/module.h"
#include "vk/optimize/specialized.h"
#include "vk/shader/shaders.h"
#include "vk/shader/spirv.h"

namespace halfstep {
namespace {

using vk::ir::Id;
using vk::ir::Instruction;

/// How a variable of a workgroup has been accessed since the last barrier: by an invocation for itself, or by many of
/// them at once, as matrix units and atomic operations do.
struct Accesses {
  bool read = false, written = false, read_by_many = false, written_by_many = false;

  Accesses operator|(const Accesses& other) const {
    return {read || other.read, written || other.written, read_by_many || other.read_by_many,
            written_by_many || other.written_by_many};
  }
  bool operator==(const Accesses&) const = default;
  /// Whether these and those after them are of the same bytes, some write, and some are of many invocations.
  bool needs_barrier_before(const Accesses& next) const {
    return (written_by_many && (next.read || next.written || next.read_by_many)) || (read_by_many && next.written) ||
           (written && (next.read_by_many || next.written_by_many)) || (next.written_by_many && (read || read_by_many));
  }
};

bool is_atomic(std::uint32_t opcode) {
  return opcode >= vk::op_atomic_load && opcode <= vk::op_atomic_xor;
}

/// A kernel of one function.
class Kernel {
 public:
  explicit Kernel(const vk::ir::Module& module) : function_(module.functions.at(0)), flow_(function_) {
    constexpr std::uint32_t workgroup = 4;
    for (const Instruction& i : module.globals()) {
      if (i.opcode == vk::op_variable && i.operands[0] == workgroup) roots_[i.result] = i.result;
    }
    for (const vk::ir::Block& block : function_.blocks) {
      for (const Instruction& i : block.code) {
        if (i.opcode != vk::op_access_chain && i.opcode != vk::op_in_bounds_access_chain) continue;
        if (const auto root = roots_.find(i.operands[0]); root != roots_.end()) roots_[i.result] = root->second;
      }
    }
  }

  /// Whether barriers are where Accesses needs them, on every way through the kernel.
  bool has_its_barriers() {
    std::vector<State> before(function_.blocks.size());
    for (bool changes = true; changes;) {
      changes = false;
      for (const std::uint32_t block : flow_.order()) {
        State state = before[block];
        if (!run(function_.blocks[block], state)) return false;
        for (const std::uint32_t next : flow_.successors(block)) {
          for (const auto& [variable, accesses] : state) {
            Accesses& known = before[next][variable];
            changes = changes || !(known == (known | accesses));
            known = known | accesses;
          }
        }
      }
    }
    return true;
  }

 private:
  using State = std::map<Id, Accesses>;

  bool run(const vk::ir::Block& block, State& state) const {
    for (const Instruction& i : block.code) {
      if (i.opcode == vk::op_control_barrier) state.clear();
      const Accesses next = accesses_of(i.opcode);
      const auto root = next == Accesses{} ? roots_.end() : roots_.find(i.operands.at(0));
      if (root == roots_.end()) continue;
      Accesses& known = state[root->second];
      if (known.needs_barrier_before(next)) return false;
      known = known | next;
    }
    return true;
  }

  static Accesses accesses_of(std::uint32_t opcode) {
    return {.read = opcode == vk::op_load,
            .written = opcode == vk::op_store,
            .read_by_many = opcode == vk::op_cooperative_matrix_load,
            .written_by_many = opcode == vk::op_cooperative_matrix_store || is_atomic(opcode)};
  }

  const vk::ir::Function& function_;
  vk::ir::Flow flow_;
  std::map<Id, Id> roots_;  ///< the variable that a pointer is of
};

bool has_its_barriers(const vk::ir::Module& module) {
  return Kernel(module).has_its_barriers();
}

/// Kernels that have accesses by many invocations. Not those of attention, of which it cannot be seen that their loops
/// have at least one round; nor those that are others with sums in f16.
bool is_wanted(std::string_view name) {
  if (name.starts_with("attention") || name.ends_with(".f16")) return false;
  bool found = false;
  vk::for_each_instruction(vk::find_shader(name).words, [&](const vk::Instruction& i) {
    found = found || is_atomic(i.opcode) || i.opcode == vk::op_cooperative_matrix_load;
  });
  return found;
}

/// How many barriers of subgroups a kernel can do without.
std::size_t needless_barriers(vk::ir::Module& module) {
  constexpr std::uint32_t scope_subgroup = 3;
  std::size_t needless = 0;
  for (vk::ir::Block& block : module.functions.at(0).blocks) {
    for (Instruction& i : block.code) {
      if (i.opcode != vk::op_control_barrier || module.bits(i.operands[0]) != scope_subgroup) continue;
      i.opcode = 0;  // OpNop
      needless += has_its_barriers(module) ? 1U : 0U;
      i.opcode = vk::op_control_barrier;
    }
  }
  return needless;
}

}  // namespace

// Software drivers run a workgroup's subgroups in turns, from one barrier to the next: they hide that one is missing.
TEST_CASE("barriers part what many invocations access at once in shared memory from all else") {
  const vk::Constants constants{
      {0, 128}, {static_cast<std::uint32_t>(plan::first_expression_constant) + 2, plan::kernel_value << 8}};
  std::size_t of_matrices = 0, of_atomics = 0;
  for (const std::string_view name : vk::shader_names()) {
    if (!is_wanted(name)) continue;
    CAPTURE(name);
    auto module = vk::ir::read(vk::specialized(vk::find_shader(name).words, constants));
    REQUIRE(module);
    REQUIRE(module->functions.size() == 1);
    CHECK(has_its_barriers(*module));
    const bool matrices = name.find("cooperative") != std::string_view::npos;
    // finish_values() of mlp_units.glsl is followed by another one, before what it is for.
    CHECK(needless_barriers(*module) == (name.starts_with("mlp") ? 1 : 0));
    (matrices ? of_matrices : of_atomics) += 1;
  }
  CHECK(of_matrices >= 10);
  CHECK(of_atomics >= 3);
}

}  // namespace halfstep

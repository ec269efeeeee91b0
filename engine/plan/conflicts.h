#pragma once

#include <optional>
#include <span>

#include "plan/program.h"

namespace halfstep::plan {

bool writes(const Operand& operand);
/// Whether one writes what the other accesses.
bool conflict(const Program& program, const Operand& a, const Operand& b);
/// Whether two dispatches must stay in order.
bool conflict(const Program& program, const Dispatch& a, const Dispatch& b);

bool stores_narrow(const Program& program, std::span<const Operand> operands);
/// Whether it matters to a dispatch how narrow types are stored.
bool makes_narrow(const Program& program, const Dispatch& dispatch);
/// Whether the stored values depend on the tensor: noise is keyed on the tensor and its quads, and each tensor has its
/// own scale.
bool own_to_result(const Storing& storing);
/// How both store narrow types, where that is the same way.
std::optional<Storing> common_storing(const Program& program, const Dispatch& producer, const Dispatch& consumer);

}  // namespace halfstep::plan

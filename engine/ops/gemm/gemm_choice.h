#pragma once

#include <string_view>
#include <vector>

#include "ops/gemm/gemm_bodies.h"
#include "plan/choice.h"

/// A matrix product's bodies as a choice that can be measured, and checks of them.
namespace halfstep::ops {

/// The choice among `bodies` for a product.
plan::Choice gemm_choice(const plan::Lowering& out, const Gemm& gemm, const Problem& problem,
                         const std::vector<Body>& bodies);

/// Small products of a choice's kind with their results, over the edges of every tile: one of whole numbers, which
/// every body and accumulator computes exactly, and one of random numbers. Throws Error where there is no such kind.
std::vector<plan::Trial> gemm_checks(std::string_view kind);

}  // namespace halfstep::ops

#pragma once

#include <random>

#include "plan/program.h"

namespace halfstep::testing {

/// A program of random dispatches over random tensors, in the arena and in a caller's buffer; every tensor is written
/// before it is read. Some dispatches read the key of the noise or the table of scales, and others write them.
inline plan::Program random_program(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t end) {
    return std::uniform_int_distribution<std::uint32_t>(0, end - 1)(random);
  };
  plan::Program program;
  program.buffers.emplace_back("outside");
  program.noise_key = 0;
  program.scales = 1;
  program.buffers.emplace_back("state");
  program.tensors = {{"noise key", {}, 80, {2, 0}}, {"scales", {}, 64, {2, 256}}};
  const std::uint32_t dispatches = 1 + below(40);
  for (std::uint32_t i = 0; i < dispatches; ++i) {
    plan::Dispatch dispatch;
    const auto known = static_cast<std::uint32_t>(program.tensors.size());
    for (std::uint32_t reads = known == 0 ? 0 : below(4); reads > 0; --reads) {
      const bool both = below(5) == 0;
      dispatch.operands.push_back({below(known), both ? plan::Access::read_write : plan::Access::read});
    }
    for (std::uint32_t writes = 1 + below(2); writes > 0; --writes) {
      const bool outside = below(4) == 0;
      const std::uint64_t bytes = 16 * (1 + below(200));
      program.tensors.push_back(
          {"t", {}, bytes, {outside ? 1U : 0U, outside ? 256 * std::uint64_t{below(20)} : 0}, below(10) == 0});
      dispatch.operands.push_back({static_cast<plan::TensorId>(program.tensors.size() - 1), plan::Access::write});
    }
    dispatch.storing.stochastic = below(4) == 0;
    dispatch.storing.scaled = below(4) == 0;
    program.dispatches.push_back(std::move(dispatch));
  }
  return program;
}

}  // namespace halfstep::testing

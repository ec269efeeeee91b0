// Tests the rules for the GEMM kernels that load by address; test_gemm_kernels.cpp computes products with them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "ops/gemm/gemm_kernels.h"
#include "plan/target.h"

using namespace halfstep;

namespace {

plan::Target uniform_target() {
  plan::Target target;
  target.uniform_loads = true;
  target.subgroups = {.size = 8, .shuffle = true, .broadcast = true};
  target.max_storage_range = 1U << 27;
  return target;
}

}  // namespace

TEST_CASE("tiles have as many sums as the processor has registers for, and with few of these few columns") {
  plan::Target target = uniform_target();
  const ops::Problem problem{
      .operands = ops::Operands::patches_row, .rows = 4096, .columns = 32, .k = 32, .segments = 9};
  for (const bool many : {true, false}) {
    target.vector_registers = many ? 32 : 16;
    const std::vector<ops::GemmKernel> all = ops::gemm_kernels(target, problem);
    CHECK(all[0].name == (many ? "uniform6x32" : "uniform6x16"));
    CHECK(all[1].name == (many ? "uniform4x32" : "uniform3x32"));
    CHECK(all[0].k_quads == 8);
  }
}

TEST_CASE("tiles are parts of a line of positions where those have enough sums") {
  plan::Target target = uniform_target();
  target.vector_registers = 32;
  const auto first = [&](std::int64_t columns, std::int64_t positions, bool in_phases = false) {
    const ops::Problem problem{.operands = ops::Operands::patches_row,
                               .rows = 64 * positions,
                               .columns = columns,
                               .k = 16,
                               .segments = 9,
                               .segments_in_row = 3,
                               .bordered_quads = in_phases ? 0 : 5000,
                               .row_positions = positions,
                               .a_apart = 4,
                               .margin = 1};
    return ops::gemm_kernels(target, problem).front();
  };
  CHECK(first(8, 32).name == "uniform16x8");
  CHECK(first(8, 14).name == "uniform14x8");
  CHECK(first(16, 28).name == "uniform7x16");
  CHECK(first(32, 9).name == "uniform3x32");
  CHECK(first(8, 9).name == "uniform24x8");
  CHECK(first(8, 32, true).name == "uniform24x8");
  const auto apart = [](const ops::GemmKernel& kernel) { return kernel.constants[10]; };
  CHECK(apart(first(8, 32)) == 4);
  CHECK(apart(first(8, 24)) == 4);
  CHECK(apart(first(8, 9)) == 0);
  target.vector_registers = 16;
  CHECK(first(16, 28).name == "uniform6x16");
}

TEST_CASE("few products are added at once, and images of few channels get borders for taps outside") {
  plan::Target target = uniform_target();
  target.vector_registers = 16;
  const auto first = [&](std::int64_t channels, std::int64_t bordered_quads, bool inside) {
    return ops::gemm_kernels(target, {.operands = ops::Operands::patches_row,
                                      .rows = 4096,
                                      .columns = 16,
                                      .k = channels,
                                      .segments = 9,
                                      .segments_in_row = 3,
                                      .bordered_quads = bordered_quads,
                                      .taps_inside = inside})
        .front();
  };
  const ops::GemmKernel few = first(3, 5000, false);
  CHECK(few.bordered);
  CHECK(few.k_quads == 9);
  CHECK(!first(3, 5000, true).bordered);
  CHECK(!first(3, 10'000'000, false).bordered);
  const ops::GemmKernel many = first(16, 5000, false);
  CHECK(!many.bordered);
  CHECK(many.k_quads == 12);
}

TEST_CASE("rows of B are read where they are if few rows use them, and they are f32 and make whole tiles") {
  const plan::Target target = uniform_target();
  const auto packs = [&](const ops::Problem& problem) {
    const std::vector<ops::GemmKernel> all = ops::gemm_kernels(target, problem);
    const auto tile = std::ranges::find_if(all, [](const ops::GemmKernel& kernel) { return kernel.uniform; });
    REQUIRE(tile != all.end());
    CHECK((tile->b_pitch == 0) == tile->panels);
    return tile->panels;
  };
  const ops::Problem few{.rows = 144, .columns = 64, .k = 256};
  CHECK(!packs(few));
  for (const auto& change : std::vector<void (*)(ops::Problem&)>{
           [](ops::Problem& problem) { problem.rows = 1024; }, [](ops::Problem& problem) { problem.columns = 1024; },
           [](ops::Problem& problem) { problem.columns = 68; }, [](ops::Problem& problem) { problem.batches = 2; },
           [](ops::Problem& problem) { problem.dtype = DType::f16; },
           [](ops::Problem& problem) { problem.operands = ops::Operands::row_col; }}) {
    ops::Problem problem = few;
    change(problem);
    CHECK(packs(problem));
  }
}

TEST_CASE("operands in f16 are converted to f32 where they are used often enough") {
  const plan::Target target = uniform_target();
  const auto first = [&](std::int64_t channels, std::int64_t columns, DType dtype) {
    const std::int64_t pixels = 65536;
    const std::int64_t padded = plan::divided_up(channels, 4) * 4;
    return ops::gemm_kernels(target, {.operands = ops::Operands::pixels_row,
                                      .dtype = dtype,
                                      .rows = 9 * padded,
                                      .columns = columns,
                                      .k = 32,
                                      .segments = pixels / 32,
                                      .operand_quads = pixels * std::max(padded, columns) / 4,
                                      .tap_rows = channels,
                                      .segments_in_row = 32})
        .front()
        .name;
  };
  CHECK(first(16, 16, DType::f16).starts_with("outer"));
  CHECK(first(1, 32, DType::f32).starts_with("outer"));
  CHECK_FALSE(first(1, 32, DType::f16).starts_with("outer"));
}

TEST_CASE("operands that are used often are laid out as planes, and k is not by rows then") {
  plan::Target target = uniform_target();
  const auto first = [&](std::int64_t channels, std::int64_t plane_quads) {
    const ops::Problem problem{.operands = ops::Operands::pixels_row,
                               .rows = 9 * channels,
                               .columns = channels,
                               .k = 16,
                               .segments = 256,
                               .tap_rows = channels,
                               .segments_in_row = 16,
                               .plane_quads = plane_quads};
    return ops::gemm_kernels(target, problem).front().name;
  };
  const auto quads = [](std::int64_t channels) { return 16 * channels * 18 * 5; };
  CHECK(first(16, quads(16)).starts_with("outer"));
  CHECK(first(256, quads(256)).starts_with("uniform"));
  CHECK(first(256, 0).starts_with("outer"));  // groups of channels
  CHECK(first(64, quads(64)).starts_with("outer"));
  target.vector_registers = 16;
  CHECK(first(64, quads(64)).starts_with("uniform"));
  target.max_storage_range = 1U << 20;
  CHECK(first(256, quads(256)).starts_with("outer"));
}

// The forms of kernels that some drivers execute faster, on whichever driver the tests run.
#include <doctest/doctest.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "harness/device.h"
#include "ops/kernel.h"
#include "plan/choice.h"
#include "tune/admission.h"
#include "tune/trial_run.h"
#include "vk/shader/pair_access.h"
#include "vk/shader/pipelines.h"
#include "vk/shader/shaders.h"
#include "vk/shader/subgroup_ids.h"

using namespace halfstep;

namespace {

/// Gives all shaders of pipelines that are made while it lives both forms.
struct FasterForms {
  FasterForms() {
    vk::patch_shaders([](std::string_view, const std::vector<std::uint32_t>& words) {
      return vk::with_pair_access(vk::with_subgroup_ids(words));
    });
  }
  ~FasterForms() { vk::patch_shaders({}); }
  FasterForms(const FasterForms&) = delete;
  FasterForms& operator=(const FasterForms&) = delete;
};

}  // namespace

TEST_CASE("kernels compute the same with numbers from those of subgroups and with quads as pairs") {
  vk::Context& context = testing::context();
  const bool has_integers = context.capabilities().buffer_address;  // of 64 bits, which are enabled with it
  const bool is_patched = vk::settings({}).limits.contains("loop_rounds");
  if (!has_integers || is_patched || context.target().subgroups.size == 0) return;
  const FasterForms forms;
  vk::Pipelines pipelines(context);
  const TensorType type{DType::f32, {1001}};
  plan::Trial copy;
  copy.inputs = {type};
  copy.output = type;
  copy.expected.resize(1001);
  std::iota(copy.expected.begin(), copy.expected.end(), 1.0F);
  copy.values = {copy.expected};
  copy.lower = [](plan::Lowering& out) {
    const std::uint32_t pairs = 502;
    ops::dispatch_flat(out, "copy", pairs, pairs,
                       {{out.input(0), plan::Access::read}, {out.output(0), plan::Access::write}});
  };
  tune::TrialRun run(context, pipelines, context.target(), copy);
  run.run();
  CHECK(run.result() == copy.expected);
  for (const char* operands : {"row_row", "col_row", "patches_row", "patches_col", "pixels_row"}) {
    for (const char* types : {"f32 f32", "f16 f32", "bf16 f32"}) {
      const std::string kind = std::string("gemm ") + operands + " " + types;
      CAPTURE(kind);
      CHECK(tune::check(context, pipelines, context.target(), kind, "tile32").empty());
    }
  }
}

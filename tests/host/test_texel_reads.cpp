#include <halfstep/error.h>

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "plan/program.h"
#include "vk/shader/binding_kinds.h"
#include "vk/shader/exact_arithmetic.h"
#include "vk/shader/first_group.h"
#include "vk/shader/shaders.h"
#include "vk/shader/spirv.h"
#include "vk/shader/texel_reads.h"
#include "vk/shader/validate_spirv.h"
#include "vk/shader/variable_bytes.h"

namespace halfstep {
namespace {

using Words = std::vector<std::uint32_t>;

/// The code as a reproducible trainer has it, or as it is where a kernel has no such form.
Words exact(const Words& words, std::string_view name) {
  try {
    return vk::with_exact_arithmetic(words, name);
  } catch (const Error&) {
    return words;
  }
}

std::size_t count(std::span<const std::uint32_t> words, vk::Op opcode) {
  std::size_t found = 0;
  vk::for_each_instruction(words, [&](const vk::Instruction& i) { found += i.opcode == opcode ? 1 : 0; });
  return found;
}

}  // namespace

TEST_CASE("every kernel can have the quads of f32 that it reads in texel buffers, and is valid then") {
  std::size_t changed = 0;
  for (const std::string_view name : vk::shader_names()) {
    CAPTURE(name);
    const std::span<const std::uint32_t> words = vk::find_shader(name).words;
    const std::uint32_t reads = vk::quad_reads(words);
    const Words made = vk::with_texel_reads(words, reads);
    CHECK((vk::quad_reads(made) & reads) == 0);
    CHECK(count(made, vk::op_image_fetch) + count(made, vk::op_load) >= count(words, vk::op_load));
    CHECK(count(made, vk::op_store) == count(words, vk::op_store));
    if (reads == 0) {
      CHECK(made == Words(words.begin(), words.end()));
      continue;
    }
    ++changed;
    for (const auto& [place, kind] : vk::binding_kinds(made)) {
      const auto [set, binding] = place;
      const bool texels = set == 0 && binding < 32 && (reads >> binding & 1) != 0;
      if (texels) CHECK(kind == vk::BindingKind::texel_buffer);
    }
    CHECK(count(made, vk::op_image_fetch) > 0);
    if (name.find("cooperative") != std::string_view::npos) continue;  // which old validators do not know
    vk::check_spirv(made, name);
    const auto pushed = static_cast<std::uint32_t>(vk::variable_bytes(made, {}).pushed);
    if (pushed != 0) vk::check_spirv(vk::with_first_group(exact(made, name), pushed), name);
  }
  CHECK(changed > 100);
}

TEST_CASE("only what is read in quads, and not written, becomes a texel buffer") {
  const auto reads = [](std::string_view name) { return vk::quad_reads(vk::find_shader(name).words); };
  CHECK(reads("channel_norm_sums.f32") == 0b0111);
  CHECK(reads("channel_norm_gradient.f32") == 0b011111);
  CHECK(reads("channel_norm_sums.f16") == 0b0100);
  // Some of the bindings alone.
  const Words some = vk::with_texel_reads(vk::find_shader("channel_norm_sums.f32").words, 0b0010);
  vk::check_spirv(some, "channel_norm_sums.f32");
  CHECK(vk::quad_reads(some) == 0b0101);
}

TEST_CASE("operands that are large, narrow, written or addressed are not marked for texel buffers") {
  plan::Target target;
  target.max_texels = 64;
  target.max_storage_buffers = 8;
  const auto marks = [&](const plan::Target& on) {
    plan::ProgramBuilder builder(on);
    const plan::TensorId small = builder.tensor("small", {DType::f32, {64, 4}});
    const plan::TensorId large = builder.tensor("large", {DType::f32, {65, 4}});
    const plan::TensorId narrow = builder.tensor("narrow", {DType::f16, {4, 4}});
    const plan::TensorId in_place = builder.tensor("in_place", {DType::f32, {4, 4}});
    const plan::TensorId addressed = builder.tensor("addressed", {DType::f32, {4, 4}});
    const plan::TensorId words = builder.tensor("words", {DType::u32, {4, 4}});
    plan::Dispatch dispatch;
    dispatch.shader = "any.f32";
    dispatch.constants = {64};
    dispatch.operands = {{small, plan::Access::read},     {large, plan::Access::read},
                         {narrow, plan::Access::read},    {in_place, plan::Access::read},
                         {in_place, plan::Access::write}, {addressed, plan::Access::read, false, true},
                         {words, plan::Access::read}};
    builder.dispatch(dispatch);
    const plan::Program program = builder.finish();
    std::vector<bool> marked;
    for (const plan::Operand& operand : program.dispatches[0].operands) marked.push_back(operand.may_be_texels);
    return marked;
  };
  CHECK(marks(target) == std::vector<bool>{true, false, false, false, false, false, true});
  target.max_texels = 0;
  CHECK(marks(target) == std::vector<bool>(7, false));
}

}  // namespace halfstep

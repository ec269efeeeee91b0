#include "tune/note_key.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zlib.h>

#include "vk/device/cooperative_matrix.h"
#include "vk/optimize/specialized.h"
#include "vk/shader/pipelines.h"

namespace halfstep::tune {
namespace {

/// What code is rewritten by, and pipelines are made with. The rest of vk::Capabilities is the driver build's.
std::string text_of(const vk::Capabilities& c) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {}", c.storage_16bit, c.float16_arithmetic, c.float_controls,
                     c.buffer_address, c.cooperative_matrix, c.bfloat16_matrices, c.float8_matrices, c.mixed_dots,
                     c.subgroup_size, c.subgroup_size_control);
}

/// What lowering depends on, but for who rounds to f16, a program's own choices and how steps are cut.
std::string text_of(const plan::Target& t) {
  const plan::Float16& f16 = t.float16;
  std::string all = fmt::format("{} {} {} {} {}", static_cast<int>(f16.storage), f16.words, f16.arithmetic, f16.dots,
                                f16.rounding_is_promised);
  all += fmt::format(" {} {} {} {}", t.cpu, t.subgroups.size, t.subgroups.shuffle, t.subgroups.broadcast);
  all += fmt::format(" {} {} {} {} {}", t.max_invocations, fmt::join(t.max_groups, "x"), t.shared_memory_bytes,
                     t.max_push_bytes, t.max_rounds);
  all += fmt::format(" {} {} {} {} {}", t.max_storage_range, t.part_bytes, t.offset_alignment, t.max_storage_buffers,
                     t.max_texels);
  all += fmt::format(" {} {} {} {}", t.vector_registers, t.uniform_loads, t.wanted_groups, t.compute_units);
  all += fmt::format(" [{}] {}", vk::text(t.matrix_shapes), t.matrices_along_k);
  return all + fmt::format(" [{}] [{}] [{}]", t.gemm_kernels, t.attention_kernel, t.mlp_kernel);
}

}  // namespace

std::string note_key(std::string_view about, const vk::Capabilities& capabilities, const plan::Target& target) {
  const std::string form = fmt::format("{} {} {} {} {}", checks_revision, vk::code_revision, vk::specializer_revision,
                                       text_of(capabilities), text_of(target));
  const auto checksum = crc32_z(0, reinterpret_cast<const Bytef*>(form.data()), form.size());
  const std::string_view rounding = target.float16.rounded_by_driver ? ", rounded by the driver" : "";
  return fmt::format("{}{}, as {:08x}", about, rounding, checksum);
}

}  // namespace halfstep::tune

#include "vk/device/workarounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "base/host_memory.h"
#include "vk/device/float_controls.h"

namespace halfstep::vk {
namespace {

/// 22 for "Mesa 22.3.6 (LLVM 15.0.6)"; 0 if the driver is not Mesa's.
int mesa_version(const Capabilities& capabilities) {
  constexpr std::string_view mesa = "Mesa ";
  if (!capabilities.driver_info.starts_with(mesa)) return 0;
  return std::atoi(capabilities.driver_info.c_str() + mesa.size());
}

bool newest_lavapipe(const Capabilities& capabilities) {
  return capabilities.driver_id == VK_DRIVER_ID_MESA_LLVMPIPE && mesa_version(capabilities) >= 26;
}

/// Whether it has vectors of 512 bits, as LP_NATIVE_VECTOR_WIDTH says.
bool crashes_on_matrices(const Capabilities& capabilities) {
  return newest_lavapipe(capabilities) && capabilities.subgroup_size > 8;
}

/// lavapipe of Mesa 22 for ARM crashes in LLVM, or takes the bits of an f16 for those of an f32. That of Mesa 25 does
/// not; versions in between have not been run. For x86 all work.
bool crashes_on_halves(const Capabilities& capabilities) {
#if defined(__x86_64__) || defined(__i386__)
  constexpr bool x86 = true;  // as is the driver, which is in this process
#else
  constexpr bool x86 = false;
#endif
  return !x86 && capabilities.driver_id == VK_DRIVER_ID_MESA_LLVMPIPE && mesa_version(capabilities) < 25;
}

/// A GPU that does not promise to keep subnormal f16 numbers may take them for 0 wherever it converts them. Software
/// drivers keep them, which selftest shows.
bool may_flush_halves(const Capabilities& capabilities) {
  return capabilities.type != VK_PHYSICAL_DEVICE_TYPE_CPU && !promises_subnormals(capabilities);
}

}  // namespace

void apply_workarounds(Capabilities& capabilities) {
  // Software drivers name a size of their own, as lavapipe of Mesa 22 its 2 GiB, and give whatever the host has.
  if (capabilities.type == VK_PHYSICAL_DEVICE_TYPE_CPU) {
    for (VkMemoryHeap& heap : capabilities.memory.memoryHeaps) heap.size = std::max(heap.size, process::host_memory());
  }
  // SwiftShader aborts on shaders that read by address. Only software drivers have kernels that do.
  if (capabilities.driver_id != VK_DRIVER_ID_MESA_LLVMPIPE) capabilities.buffer_address = false;
  // Some versions give wrong results, and there is no way to tell which.
  if (capabilities.driver_id == VK_DRIVER_ID_INTEL_PROPRIETARY_WINDOWS) capabilities.cooperative_matrix = false;
  if (crashes_on_matrices(capabilities)) capabilities.cooperative_matrix = false;
  if (crashes_on_halves(capabilities)) {
    capabilities.storage_16bit = capabilities.float16_arithmetic = capabilities.unpacks_halves = false;
  }
  if (may_flush_halves(capabilities)) capabilities.storage_16bit = capabilities.unpacks_halves = false;
  // lavapipe of Mesa 22 counts the rounds of all loops of an invocation and ends them after 65,535. Mesa 26's does not.
  // tests/ops/test_limits.cpp shows both. Versions in between have not been run.
  if (capabilities.driver_id == VK_DRIVER_ID_MESA_LLVMPIPE && !newest_lavapipe(capabilities))
    capabilities.max_loop_rounds = 65535;
}

std::vector<std::string> avoided(const Capabilities& capabilities) {
  std::vector<std::string> texts;
  if (capabilities.driver_id == VK_DRIVER_ID_GOOGLE_SWIFTSHADER)
    texts.insert(texts.end(), {"loads by buffer addresses: SwiftShader aborts on them",
                               "tanh of the driver: SwiftShader's is NaN for large numbers; Halfstep's is made of exp",
                               "packHalf2x16: SwiftShader's is NaN for infinity; Halfstep converts by integers"});
  if (capabilities.driver_id == VK_DRIVER_ID_INTEL_PROPRIETARY_WINDOWS)
    texts.emplace_back("matrix units: some versions of Intel's driver for Windows give wrong products");
  if (crashes_on_matrices(capabilities))
    texts.emplace_back("matrix units: lavapipe crashes on them with vectors of 512 bits");
  if (may_flush_halves(capabilities))
    texts.emplace_back(
        "conversions from f16, and 16-bit storage: the device does not promise to keep subnormal numbers "
        "(VK_KHR_shader_float_controls); Halfstep converts by integers");
  else if (!capabilities.unpacks_halves)
    texts.emplace_back(
        "conversions from f16: lavapipe before Mesa 25 crashes on them on ARM; Halfstep converts by integers");
  if (capabilities.max_loop_rounds != std::numeric_limits<std::uint32_t>::max())
    texts.push_back(fmt::format("more than {} loop rounds of an invocation: the driver ends its loops there",
                                capabilities.max_loop_rounds));
  return texts;
}

bool subgroup_size_is_fixed(const Capabilities& capabilities) {
  if (capabilities.min_subgroup_size == capabilities.max_subgroup_size && capabilities.min_subgroup_size != 0)
    return true;
  // Without VK_EXT_subgroup_size_control nothing reports it, but these have only one size.
  return capabilities.type == VK_PHYSICAL_DEVICE_TYPE_CPU || capabilities.driver_id == VK_DRIVER_ID_NVIDIA_PROPRIETARY;
}

bool reads_texels_faster(const Capabilities& capabilities) {
  // lavapipe of Mesa 22 reads storage buffers lane by lane and element by element, which takes most of a GEMM's time:
  // 62 GFLOPS with texel buffers, 40 with storage buffers. Mesa 26's does not.
  const int version = mesa_version(capabilities);
  return capabilities.driver_id == VK_DRIVER_ID_MESA_LLVMPIPE && version > 0 && version <= 22;
}

bool divides_for_local_ids(const Capabilities& capabilities) {
  // lavapipe of Mesa 26 divides the number of each invocation by the workgroup's width, one after the other: a copy of
  // 6.4 MB takes 1.2 ms, and 0.6 without. Mesa 22's does not.
  return newest_lavapipe(capabilities);
}

bool moves_pairs_faster(const Capabilities& capabilities) {
  // lavapipe of Mesa 26 gathers and scatters as many numbers in a time, whatever their width: in pairs, that copy takes
  // 0.4 ms. With vectors of 128 bits its compiler (LLVM 21) gets kernels wrong that load pairs: one that goes over rows
  // twice, to sum squares in reproducible arithmetic, skips the second loop.
  return newest_lavapipe(capabilities) && capabilities.buffer_address && capabilities.subgroup_size > 4;
}

bool reads_matrices_along_k(const Capabilities& capabilities) {
  // RADV loads a fragment that lies across k element by element, and spills 29 to 201 registers. NVIDIA's driver loads
  // it either way: on an H200, 4096 cubed in f16 took 0.58 ms as stored and 0.79 transposed, with A^T 0.51 and 1.03.
  return capabilities.driver_id != VK_DRIVER_ID_NVIDIA_PROPRIETARY;
}

bool loads_uniforms_once(const Capabilities& capabilities) {
  // True for lavapipe of Mesa 26, where it doubles the GEMM's speed. Mesa 22's loads lane by lane and takes twenty
  // times as long. Versions in between have not been measured.
  return newest_lavapipe(capabilities);
}

bool rounds_to_half_well(const Capabilities& capabilities) {
  // A mixed step of fashion_cnn takes 29 ms with the driver's conversion on lavapipe of Mesa 26, and 35 with integers;
  // on Mesa 22's it takes 42 instead of 39. GPUs may flush subnormals: of those, tune::Tuner asks and checks.
  return newest_lavapipe(capabilities);
}

}  // namespace halfstep::vk

#include "bench/gpus.h"

#include <algorithm>
#include <array>

namespace bench {
namespace {

// "Vega Instruction Set Architecture" (AMD, 2017), "RDNA Architecture" (white paper, 2019), "RDNA3 Instruction Set
// Architecture" (2023), "How to accelerate AI applications on RDNA 3 using WMMA" and "Using the Matrix Cores of AMD
// RDNA 4 architecture GPUs" (GPUOpen). From RDNA 3 on, f32 counts two multiply-adds that are issued together, as data
// sheets do.
constexpr ComputeUnit polaris{.float32_flops = 128, .float16_flops = 128, .simds = 4, .lanes = 16};
constexpr ComputeUnit vega{.float32_flops = 128, .float16_flops = 256, .simds = 4, .lanes = 16};
constexpr ComputeUnit rdna{.float32_flops = 128, .float16_flops = 256, .simds = 2, .lanes = 32};
constexpr ComputeUnit rdna3{.float32_flops = 256, .float16_flops = 256, .matrix_flops = 512, .simds = 2, .lanes = 32};
constexpr ComputeUnit rdna4{.float32_flops = 256, .float16_flops = 256, .matrix_flops = 1024, .simds = 2, .lanes = 32};

// Compute units, boost clock and memory bandwidth: AMD's product page of each card, "Specifications".
constexpr std::array<Gpu, 7> table{{
    {"POLARIS10", "Radeon RX 480", 36, 1.266, 256, polaris},
    {"VEGA10", "Radeon RX Vega 64", 64, 1.546, 483.8, vega},
    {"NAVI10", "Radeon RX 5700 XT", 40, 1.905, 448, rdna},
    {"NAVI21", "Radeon RX 6800", 60, 2.105, 512, rdna},
    {"NAVI31", "Radeon RX 7900 XTX", 96, 2.5, 960, rdna3},
    {"GFX1151", "Radeon 8060S", 40, 2.9, 256, rdna3, "STRIX_HALO"},
    {"GFX1201", "Radeon RX 9070 XT", 64, 2.97, 640, rdna4},
}};

}  // namespace

std::span<const Gpu> gpus() {
  return table;
}

std::optional<Gpu> gpu_of(std::string_view device_name) {
  const auto found = std::ranges::find_if(table, [&](const Gpu& gpu) {
    return device_name.find(gpu.chip) != std::string_view::npos ||
           (!gpu.newer_name.empty() && device_name.find(gpu.newer_name) != std::string_view::npos);
  });
  return found != table.end() ? std::optional(*found) : std::nullopt;
}

}  // namespace bench

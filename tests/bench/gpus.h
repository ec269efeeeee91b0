#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace bench {

/// What one compute unit of a generation of GPUs does in one clock.
struct ComputeUnit {
  double float32_flops = 0;  ///< multiply-adds of f32, counted as two
  double float16_flops = 0;  ///< of pairs of f16
  double matrix_flops = 0;   ///< of f16 by matrix units; 0 if it has none
  std::uint32_t simds = 0;
  std::uint32_t lanes = 0;   ///< that a SIMD computes at once
  double local_bytes = 128;  ///< to and from shared memory
  double cached_bytes = 64;  ///< from the vector cache next to it
};

/// A GPU as its data sheet describes it.
struct Gpu {
  std::string_view chip;  ///< as its driver names it: "NAVI31"
  std::string_view card;
  std::uint32_t compute_units = 0;
  double gigahertz = 0;             ///< boost clock
  double gigabytes_per_second = 0;  ///< of its memory
  ComputeUnit unit;
  std::string_view newer_name = {};  ///< of the chip, where newer drivers have another

  double clock() const { return gigahertz * 1e9; }
};

/// The GPUs that predictions can be made for.
std::span<const Gpu> gpus();

/// The GPU of a device with this name: "AMD Radeon RX 7900 XTX (RADV NAVI31)".
std::optional<Gpu> gpu_of(std::string_view device_name);

}  // namespace bench

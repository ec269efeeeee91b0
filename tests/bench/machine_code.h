#pragma once

#include <cstdint>
#include <string_view>

namespace bench {

/// How many instructions of each kind a piece of code has. Bytes are of one invocation.
struct Mix {
  std::uint32_t matrix = 0;        ///< products of fragments by matrix units
  std::uint32_t packed16 = 0;      ///< multiply-adds of pairs of f16, and dot products of such pairs with f32 sums
  std::uint32_t mixed16 = 0;       ///< f32 multiply-adds that read f16
  std::uint32_t float32 = 0;       ///< multiply-adds of f32
  std::uint32_t paired32 = 0;      ///< of `float32`, those that are issued two at a time
  std::uint32_t vector_other = 0;  ///< any other arithmetic of all invocations
  std::uint32_t slow = 0;          ///< of `vector_other`, those at a quarter of the rate: reciprocals, 32-bit products
  std::uint32_t scalar = 0;        ///< arithmetic and loads that all invocations share
  std::uint32_t local = 0;         ///< accesses of shared memory
  std::uint32_t loads = 0;         ///< of buffers
  std::uint32_t narrow_loads = 0;  ///< of `loads`, those of less than 128 bits
  std::uint32_t stores = 0;        ///< to buffers
  std::uint32_t spills = 0;        ///< accesses of scratch memory
  std::uint32_t waits = 0;         ///< for memory, and barriers
  double local_bytes = 0;
  double load_bytes = 0;
  double store_bytes = 0;

  std::uint32_t vector() const { return packed16 + mixed16 + float32 + vector_other; }
  /// Floating-point operations of a subgroup of `lanes` invocations; a multiply-add counts as two.
  double flops(std::uint32_t lanes) const;
};

/// What a kernel compiled to.
struct MachineCode {
  /// In all of these, loops that run a known number of times count as often, others once.
  Mix whole;
  /// A round of the innermost loop with the most multiply-adds; all zeros if there is none that has any, or if the code
  /// outside of loops has more of them.
  Mix inner_loop;
  Mix outside;  ///< of that loop
  bool has_loops = false;
};

/// Reads AMD's instructions (GFX8 to GFX12) as RADV prints them: blocks "BB3:", then one instruction a line.
MachineCode read_machine_code(std::string_view disassembly);

}  // namespace bench

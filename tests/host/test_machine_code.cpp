#include <doctest/doctest.h>

#include <string>

#include "bench/gpus.h"
#include "bench/machine_code.h"
#include "bench/prediction.h"

using namespace bench;

namespace {

/// A loop within a loop, as RADV prints them.
const std::string code = R"(
BB0:
	s_load_dwordx4 s[0:3], s[2:3], 0x0                          ; c00a0001 00000000
	v_rcp_f32_e32 v4, v4                                        ; 7e085504
BB1:
	buffer_load_dwordx2 v[2:3], v1, s[0:3], 0 offen             ; e0541000 80000201
	buffer_load_b128 v[44:47], v3, s[12:15], 0 offen            ; e05c0000 80432c03
	s_waitcnt vmcnt(0)                                          ; bf8c3f70
	s_wait_alu depctr_va_vcc(0)                                 ; bf88fffd
	ds_write_b64 v0, v[2:3]                                     ; d89a0000 00000200
	s_barrier                                                   ; bf8a0000
BB2:
	ds_read2_b32 v[4:5], v0 offset1:1                           ; d86e0100 04000000
	v_fmac_f32_e32 v6, v4, v5                                   ; 560c0b04
	(then repeated 2 times)
	v_pk_fma_f16 v7, v4, v5, v7                                 ; cc0e4007 1c1e0b04
	v_fma_mix_f32 v8, v4, v5, v8                                ; cc200008 04220b04
	v_dual_fmac_f32 v0, v1, v2 :: v_dual_mov_b32 v3, v4         ; c8000000 00000000
	v_add_nc_u32_e32 v0, 4, v0                                  ; 4a000084
	s_cbranch_scc1 BB2                                          ; bf85fff0
BB3:
	s_cbranch_scc1 BB1                                          ; bf85ffe0
BB4:
	scratch_load_dword v1, off, s0                              ; dc504000 017c0000
	buffer_store_short v6, v1, s[4:7], 0 offen                  ; e0681000 80010601
	s_endpgm                                                    ; bf810000
)";

}  // namespace

TEST_CASE("machine code is read instruction by instruction") {
  const MachineCode read = read_machine_code(code);
  CHECK(read.has_loops);
  const Mix& loop = read.inner_loop;
  CHECK(loop.float32 == 4);  // one is repeated twice, one is half of a pair
  CHECK(loop.paired32 == 1);
  CHECK(loop.packed16 == 1);
  CHECK(loop.mixed16 == 1);
  CHECK(loop.vector_other == 2);
  CHECK(loop.local == 1);
  CHECK(loop.local_bytes == 8);
  CHECK(loop.loads == 0);
  CHECK(loop.flops(64) == 64 * (4 * 2 + 4 + 2));
  CHECK(read.whole.loads == 2);
  CHECK(read.whole.narrow_loads == 1);
  CHECK(read.whole.load_bytes == 24);
  CHECK(read.whole.store_bytes == 2);
  CHECK(read.whole.spills == 1);
  CHECK(read.whole.waits == 2);
  CHECK(read.whole.scalar == 1);
  CHECK(read.whole.slow == 1);
  CHECK(read.outside.float32 == 0);
  CHECK(read.outside.loads == read.whole.loads);
  CHECK(read.outside.vector_other == read.whole.vector_other - loop.vector_other);
}

TEST_CASE("a loop with a few multiply-adds after unrolled products is no inner loop") {
  const std::string product = "v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]\n";
  const std::string loop = "BB1:\nv_fma_f32 v1, v2, v3, v1\ns_cbranch_scc0 BB1\n";
  CHECK(read_machine_code("BB0:\n" + product + loop).inner_loop.float32 == 0);
  const MachineCode read = read_machine_code("BB0:\nv_mov_b32 v1, 0\n" + loop);
  CHECK(read.inner_loop.float32 == 1);
  CHECK(read.outside.vector_other == 1);
}

TEST_CASE("a loop in a loop counts as often as it is known to run") {
  std::string counted = code;
  counted.replace(counted.find("\ts_barrier"), 0, "\ts_mov_b32 s4, 0 ; be840080\n");
  counted.replace(counted.find("\tds_read2"), 0,
                  "\ts_add_u32 s4, s4, 2 ; 80048204\n\ts_cmp_ge_i32 s4, 15 ; bf039004\n");
  const Mix round = read_machine_code(counted).inner_loop;
  CHECK(round.float32 == 8 * 4);
  CHECK(round.local == 8 + 1);
  CHECK(round.loads == 2);
  CHECK(round.narrow_loads == 1);
  counted.replace(counted.find("s_mov_b32 s4, 0"), 15, "s_mov_b32 s4, 3");
  CHECK(read_machine_code(counted).inner_loop.loads == 0);
}

TEST_CASE("machine code without loops or of no known kind is read too") {
  CHECK_FALSE(read_machine_code("").has_loops);
  const MachineCode read = read_machine_code("BB0:\n\tv_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]\n");
  CHECK_FALSE(read.has_loops);
  CHECK(read.whole.matrix == 1);
  CHECK(read.whole.flops(32) == 8192);
  CHECK(read_machine_code("define void @main() {\n  ret void\n}\n").whole.vector() == 0);
}

TEST_CASE("a dot product of two pairs of f16 is two multiply-adds") {
  const std::string dots =
      "v_dot2c_f32_f16 v79, v108, v104\nv_dot2_f32_f16 v1, v2, v3, v1\n"
      "v_dual_dot2acc_f32_f16 v0, v1, v2 :: v_dual_mov_b32 v3, v4\n";
  const Mix whole = read_machine_code(dots).whole;
  CHECK(whole.packed16 == 3);
  CHECK(whole.vector_other == 1);
  CHECK(whole.flops(64) == 64 * 3 * 4);
}

TEST_CASE("a prediction is the longest of arithmetic, shared memory, loads and memory") {
  const Gpu gpu = gpu_of("AMD Radeon RX 6800 (RADV NAVI21)").value();
  Work work{.flops = 1e12, .groups = 60 * 64, .invocations = 256, .lanes = 64, .code = {}};
  work.code.inner_loop.float32 = 64;
  // 60 units of 64 lanes at 2.105 GHz: 16.17 TFLOPS.
  CHECK(predict(gpu, work).milliseconds == doctest::Approx(1e15 / 16.1664e12).epsilon(1e-3));
  CHECK(predict(gpu, work).at_peak == doctest::Approx(1e15 / 16.1664e12).epsilon(1e-3));
  CHECK(predict(gpu, work).bound == "arithmetic");
  work.code.inner_loop.packed16 = 64;  // two thirds of the operations in half of the instructions
  CHECK(predict(gpu, work).milliseconds == doctest::Approx(1e15 / 16.1664e12 * 2 / 3).epsilon(1e-3));
  work.code.inner_loop.local_bytes = 1024;
  CHECK(predict(gpu, work).bound == "shared memory");
  const double local = predict(gpu, work).milliseconds;
  work.code.outside.local_bytes =
      1024;  // once for each of 60 * 64 * 4 subgroups; the loop runs 1e12 / (64 * 384) times
  CHECK(predict(gpu, work).milliseconds == doctest::Approx(local * (1 + 15360 * 24576 / 1e12)).epsilon(1e-9));
  work.bytes = 1e12;  // at 512 GB/s
  CHECK(predict(gpu, work).milliseconds == doctest::Approx(1e3 / 0.512));
  CHECK(predict(gpu, work).bound == "memory");
  CHECK(predict(gpu, work).at_peak == doctest::Approx(1e3 / 0.512));
}

TEST_CASE("a prediction is held against the peak of the arithmetic that most of it takes") {
  const Gpu gpu = gpu_of("RADV NAVI31").value();
  Work work{.flops = 1e12, .groups = 96 * 64, .invocations = 256, .lanes = 32, .code = {}};
  work.code.inner_loop.float32 = 64;
  work.code.inner_loop.packed16 = 8;
  CHECK(predict(gpu, work).at_peak == doctest::Approx(1e15 / (96 * 256 * 2.5e9)));
  work.code.inner_loop.packed16 = 65;  // no more operations a clock than f32's, two of which are issued together
  CHECK(predict(gpu, work).at_peak == doctest::Approx(1e15 / (96 * 256 * 2.5e9)));
  work.code.inner_loop.matrix = 1;
  CHECK(predict(gpu, work).at_peak == doctest::Approx(1e15 / (96 * 512 * 2.5e9)));
}

TEST_CASE("SIMDs without work and subgroups too few to hide latency take time") {
  const Gpu gpu = gpu_of("RADV NAVI21").value();
  Work work{.flops = 1e10, .groups = 60 * 64, .invocations = 64, .lanes = 64, .code = {}};
  work.code.inner_loop.float32 = 64;
  const double full = predict(gpu, work).milliseconds;
  work.groups = 30;
  CHECK(predict(gpu, work).milliseconds > 1.9 * full);
  work.groups = 120;
  work.parallelism = 4;
  CHECK(predict(gpu, work).milliseconds == doctest::Approx(4 * full).epsilon(0.01));
}

TEST_CASE("a GPU without a data sheet here is not guessed") {
  CHECK(gpu_of("AMD EPYC (RADV STRIX_HALO)").value().chip == "GFX1151");  // as Mesa 26 calls it
  CHECK_FALSE(gpu_of("llvmpipe (LLVM 15.0.6, 256 bits)"));
  for (const Gpu& gpu : gpus()) {
    CAPTURE(gpu.card);
    CHECK(gpu.unit.float32_flops >= 2.0 * gpu.unit.simds * gpu.unit.lanes);
    CHECK(gpu.gigabytes_per_second > 0);
    CHECK(gpu.gigahertz > 1);
  }
}

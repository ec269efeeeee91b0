#include "selftest/planted.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "selftest/bed.h"
#include "selftest/patches.h"
#include "vk/shader/shaders.h"

namespace halfstep::selftest {
namespace {

namespace fs = std::filesystem;

/// A fault with the kernels that it is planted in, by the start of their names, and the change.
struct Fault {
  Planted planted;
  std::string kernels;
  Patch patch;
  enum class Kind : std::uint8_t { of_shaders, crash, lost_submits } kind = Kind::of_shaders;
};

/// Operators' kernels are Halfstep's own; those that begin with "selftest/" are the self-test's.
// Arithmetic of f32.
const std::vector<Fault> of_arithmetic{
    {{"add.subtracts", "f32 sums are differences", "f32/exact"},
     "selftest/arithmetic.add",
     swapped(op::f_add, op::f_sub)},
    {{"mul.adds", "f32 products are sums", "f32/exact"}, "selftest/arithmetic.mul", swapped(op::f_mul, op::f_add)},
    {{"neg.keeps", "negation does nothing", "f32/exact"}, "selftest/arithmetic.neg", removed_unary(op::f_negate)},
    {{"round.truncates", "roundEven truncates: a wrong rounding mode", "f32/exact"},
     "selftest/arithmetic.round_even",
     other_function(ext::round_even, ext::trunc)},
    {{"floor.ceils", "floor rounds up", "f32/exact"},
     "selftest/arithmetic.floor",
     other_function(ext::floor, ext::ceil)},
    {{"result.truncated", "sums lose their last bit: rounding towards zero", "f32/exact"},
     "selftest/arithmetic.add",
     stores_masked(0xFFFFFFFEU)},
    {{"mul.coarse", "products lose twelve bits, as if computed in less precision", "f32/exact"},
     "selftest/arithmetic.mul",
     stores_masked(0xFFFFF000U)},
    {{"div.multiplies", "division multiplies", "f32/division"},
     "selftest/arithmetic.div",
     swapped(op::f_div, op::f_mul)},
    {{"sqrt.inverse", "a root is its inverse", "f32/division"},
     "selftest/arithmetic.sqrt",
     other_function(ext::sqrt, ext::inverse_sqrt)},
    {{"div.coarse", "division loses eight bits", "f32/division"},
     "selftest/arithmetic.div",
     stores_masked(0xFFFFFF00U)},
    {{"exp.exp2", "exp has the wrong base", "f32/functions"},
     "selftest/arithmetic.exp",
     other_function(ext::exp, ext::exp2)},
    {{"log.log2", "log has the wrong base", "f32/functions"},
     "selftest/arithmetic.log",
     other_function(ext::log, ext::log2)},
    {{"tanh.overflows", "tanh of large numbers is no number: sinh over cosh", "f32/functions"},
     "selftest/arithmetic.tanh",
     tanh_by_exponentials()},
    {{"sin.cos", "the sine is the cosine", "f32/functions"},
     "selftest/arithmetic.sin",
     other_function(ext::sin, ext::cos)},
    {{"fma.drops", "fma's sum is lost", "f32/fma"}, "selftest/arithmetic.fma", fma_without_sum()},
    {{"sum.contracted", "the sum of a product and a number is rounded once", "f32/contraction"},
     "selftest/arithmetic.mul_add",
     sums_contracted()},
    {{"max.min", "max is min", "f32/order"}, "selftest/arithmetic.max", other_function(ext::f_max, ext::f_min)},
    {{"less.greater", "a comparison is the other way", "f32/order"},
     "selftest/arithmetic.less",
     swapped(op::f_ord_less, op::f_ord_greater)},
};

// Integers and conversions.
const std::vector<Fault> of_integers{
    {{"udiv.signed", "unsigned division is signed", "integer/arithmetic"},
     "selftest/arithmetic.udiv",
     swapped(op::u_div, op::s_div)},
    {{"sar.logical", "a shift to the right loses the sign", "integer/arithmetic"},
     "selftest/arithmetic.sar",
     swapped(op::shift_right_arithmetic, op::shift_right_logical)},
    {{"uint.signed", "unsigned numbers are converted as signed", "integer/conversions"},
     "selftest/arithmetic.from_uint",
     stores_masked(0xFFFF0000U)},
    {{"half.sign", "unpacking f16 loses the sign", "f16/packing"},
     "selftest/arithmetic.unpack_half",
     stores_masked(0x7FFFFFFFU)},
    {{"half.last", "packing loses the last bit of f16", "f16/packing"},
     "selftest/arithmetic.pack_half",
     stores_masked(0xFFFEFFFEU)},
    {{"half.second", "the second f16 of a word is the first", "f16/packing"},
     "selftest/arithmetic.unpack_second",
     component_zero(1)},
    {{"half.swapped", "two f16 are packed in the other order", "f16/packing"},
     "selftest/arithmetic.pack_half",
     pairs_swapped()},
};

// Memory, barriers, order.
const std::vector<Fault> of_memory{
    {{"store.outside", "a kernel writes outside its buffer", "f32/exact"}, "selftest/arithmetic.add", index_offset(7)},
    {{"store.missing", "results stay what the memory held: stale memory", "f32/exact"},
     "selftest/arithmetic.sub",
     without_stores()},
    {{"barrier.shared", "a missing barrier of shared memory", "memory/shared"},
     "selftest/exchange.shared",
     without_barriers()},
    {{"barrier.buffer", "a missing barrier of a buffer", "memory/buffer"},
     "selftest/exchange.buffer",
     without_barriers()},
    {{"atomic.plain", "atomic sums are loads and stores: a race", "memory/atomics"},
     "selftest/atomics",
     atomics_as_stores()},
    {{"atomic.min.max", "atomicMin takes the largest", "memory/atomics"},
     "selftest/atomics",
     swapped(op::atomic_u_min, op::atomic_u_max)},
    {{"flag.early", "a flag is seen before its data: coherence", "memory/messages"},
     "selftest/messages",
     data_stored_late()},
    {{"chain.stale", "a dispatch reads what was there before", "memory/dispatches"},
     "selftest/chain",
     without_stores()},
    {{"submit.lost", "a recording that is submitted again is not executed", "memory/submits"},
     "",
     {},
     Fault::Kind::lost_submits},
    {{"loop.65535", "loops end after 65,535 rounds", "limit/loops"}, "selftest/loops", loops_cut(65535)},
    {{"push.shifted", "push constants are read a word further", "limit/constants"},
     "selftest/constants",
     push_shifted(4)},
    {{"constant.ignored", "specialization constants keep their defaults", "limit/constants"},
     "selftest/constants",
     without_specialization()},
    {{"address.wraps", "what is added to an address wraps around at 128 KiB", "memory/addresses"},
     "selftest/far.address",
     wide_products_masked(0x1FFFFU)},
    {{"address.stale", "what is stored by address is not", "memory/addresses"},
     "selftest/address",
     without_stores_by_address()},
    {{"group.row", "workgroups of the second row run as the first", "limit/groups"},
     "selftest/groups",
     component_zero(1)},
};

// Subgroups.
const std::vector<Fault> of_subgroups{
    {{"subgroup.add.max", "a subgroup's sum is its largest", "subgroup/operations"},
     "selftest/subgroup.add",
     swapped(op::group_i_add, op::group_u_max)},
    {{"subgroup.scan", "an exclusive sum is inclusive", "subgroup/operations"},
     "selftest/subgroup.exclusive",
     scan_kind(2, 1)},
    {{"subgroup.size", "subgroups are half as large as they say", "subgroup/operations"},
     "selftest/subgroup.add",
     builtin_doubled(36)},
    {{"subgroup.xor", "a shuffle takes the wrong lane", "subgroup/operations"},
     "selftest/subgroup.shuffle_xor",
     swapped(op::group_shuffle_xor, op::group_shuffle)},
};

// Halfstep's own kernels: operators, forward and backward.
const std::vector<Fault> of_operators{
    {{"denormal.flushed", "denormal f16 are loaded as 0",
      "operator/rounding: every pattern of 16 bits widens to the number it stands for"},
     "pointwise.",
     denormal_halves_flushed()},
    {{"bf16.truncated", "bf16 are rounded towards zero: a wrong rounding mode",
      "operator/rounding: rounding to nearest: every number, every tie, every neighbour"},
     "pointwise.",
     other_constant(0x7FFFU, 0U)},
    {{"softmax.max", "the largest of a row is the least",
      "operator/softmax: softmax of large numbers does not overflow"},
     "softmax.",
     other_function(ext::f_max, ext::f_min)},
    {{"softmax.gradient", "a gradient has the wrong sign", "operator/softmax: gradients of softmax and its logarithm"},
     "softmax_gradient.",
     swapped(op::f_sub, op::f_add)},
    {{"norm.gradient", "differences of a norm's gradient are sums",
      "operator/row_norm: gradients of layer norm and RMS norm"},
     "row_norm_gradient.",
     swapped(op::f_sub, op::f_add)},
    {{"max.nan", "the larger of two numbers swallows NaN",
      "operator/math: the larger and the smaller of two numbers are NaN if either is"},
     "pointwise.",
     other_constant(0x7F800000U, 0x7FFFFFFFU)},
    {{"pool.average", "average pooling multiplies what it should add", "operator/pool2d: average pooling"},
     "average_pool2d.",
     swapped(op::f_add, op::f_mul)},
    {{"loss.gradient", "cross-entropy's gradient is off", "operator/losses: gradient of cross-entropy"},
     "cross_entropy_gradient.",
     swapped(op::f_sub, op::f_add)},
    {{"embedding.offset", "a gradient's row is off by one",
      "operator/embedding: gradient of embedding: sums over the positions of each row"},
     "embedding_gradient.",
     index_offset(1)},
    {{"sum.stale", "a sum is never stored: stale memory", "operator/sum: sum and mean over any axes"},
     "sum.",
     without_stores()},
    {{"gemm.offset", "a fragment of a product is at the wrong offset", "operator/matmul: matmul"},
     "gemm.",
     index_offset(1)},
    {{"gemm.fma", "a product's sums are lost", "operator/matmul: gradients of matmul"}, "gemm.", fma_without_sum()},
    {{"conv.loop", "a convolution's loop is cut", "operator/conv2d: weight gradient of conv2d"}, "gemm.", loops_cut(3)},
};

// Drivers that crash.
const std::vector<Fault> of_crashes{
    {{"crash.floor", "a kernel ends the process", "f32/exact"}, "selftest/arithmetic.floor", {}, Fault::Kind::crash},
};

/// What is changed of shaders before the driver gets them.
struct Changes {
  std::map<std::string, Words, std::less<>> replaced;
  std::string replaced_by_file;  ///< which a user named, until a driver got it
  std::optional<Fault> fault;
  Words last;  ///< what the driver got last
  std::filesystem::path folder;
};

Changes& changes() {
  static Changes all;
  return all;
}

const std::string own_kernels = "selftest/";

std::string file_of(std::string_view shader) {
  std::string name(shader.substr(shader.starts_with(own_kernels) ? own_kernels.size() : 0));
  std::ranges::replace(name, '/', '_');
  return name + ".spv";
}

/// Keeps what a driver gets next, in place of what was kept before. Where that cannot be written, a crash is told
/// without its kernel.
void keep_given(std::string_view shader, const Words& words) {
  if (changes().folder.empty()) return;
  std::error_code ignored;
  fs::remove_all(changes().folder, ignored);
  fs::create_directories(changes().folder, ignored);
  std::ofstream stream(changes().folder / file_of(shader), std::ios::binary);
  stream.write(reinterpret_cast<const char*>(words.data()), static_cast<std::streamsize>(words.size() * 4));
}

void change_shaders() {
  vk::patch_shaders([](std::string_view shader, Words words) {
    const auto found = changes().replaced.find(shader);
    if (found != changes().replaced.end()) words = found->second;
    if (shader == changes().replaced_by_file) changes().replaced_by_file.clear();
    const std::optional<Fault>& fault = changes().fault;
    const bool is_faulty = fault && shader.starts_with(fault->kernels);
    changes().last = is_faulty && fault->patch ? fault->patch(words) : words;
    keep_given(shader, changes().last);
    if (is_faulty && fault->kind == Fault::Kind::crash) std::abort();
    return changes().last;
  });
}

// Matrix units.
const std::vector<Fault> of_matrices{
    {{"matrix.offset", "a fragment of b is loaded eight elements too late", "matrix/f16"},
     "selftest/matrix.",
     fragment_moved(1, 8)},
    {{"matrix.second", "the second fragment of a is loaded eight elements too late", "matrix/f16"},
     "selftest/matrix.",
     fragment_moved(3, 8)},
    {{"matrix.store", "a fragment is stored eight elements too late", "matrix/f16"},
     "selftest/matrix.",
     stored_fragment_moved(8)},
    {{"matrix.layout", "a is always taken column by column", "matrix/f16"}, "selftest/matrix.", fragment_by_columns(0)},
    {{"matrix.stride", "the rows of b are as far apart as those of a", "matrix/f16"},
     "selftest/matrix.",
     fragment_stride(1)},
    {{"matrix.sum", "a product of fragments is not added to the one before", "matrix/f16"},
     "selftest/matrix.",
     matrix_sums_lost()},
    {{"matrix.signs", "signed integers are multiplied as unsigned ones", "matrix/integers"},
     "selftest/matrix.",
     matrix_signs_lost()},
};

std::vector<Fault> faults() {
  std::vector<Fault> all;
  for (const auto* part :
       {&of_arithmetic, &of_integers, &of_memory, &of_subgroups, &of_operators, &of_matrices, &of_crashes})
    all.insert(all.end(), part->begin(), part->end());
  return all;
}

}  // namespace

const std::vector<Planted>& planted_faults() {
  static const std::vector<Planted> all = [] {
    std::vector<Planted> made;
    for (const Fault& fault : faults()) made.push_back(fault.planted);
    return made;
  }();
  return all;
}

void plant(std::string_view name) {
  for (const Fault& fault : faults()) {
    if (fault.planted.name != name) continue;
    changes().fault = fault;
    return change_shaders();
  }
  throw Error(fmt::format("[selftest] expected a fault of --list-planted, got '{}'", name));
}

void replace_kernel(const std::string& kernel, Words words) {
  changes().replaced.try_emplace(own_kernels + kernel, std::move(words));
  change_shaders();
}

void replace_kernel_by_file(std::string_view replacement) {
  const std::size_t equals = replacement.find('=');
  if (equals == std::string_view::npos)
    throw Error(fmt::format("[selftest] expected KERNEL=FILE of SPIR-V, got '{}'", replacement));
  const std::string kernel(replacement.substr(0, equals));
  if (!kernel.starts_with("matrix.")) kernel_words(kernel);  // those are made for what the device offers
  replace_kernel(kernel, read_spirv(replacement.substr(equals + 1)));
  changes().replaced_by_file = own_kernels + kernel;
}

bool has_used_file() {
  return changes().replaced_by_file.empty();
}

bool loses_submits() {
  return changes().fault && changes().fault->kind == Fault::Kind::lost_submits;
}

void keep_given_kernels(const fs::path& folder) {
  changes().folder = folder.empty() ? folder : folder / "running";
  change_shaders();
}

void forget_given_kernels() {
  std::error_code ignored;
  fs::remove_all(changes().folder, ignored);
  fs::remove(changes().folder.parent_path(), ignored);  // unless there is anything else
}

fs::path given_kernel_of(const fs::path& folder) {
  std::error_code ignored;
  for (const fs::directory_entry& file : fs::directory_iterator(folder / "running", ignored)) {
    fs::path kept = folder / file.path().filename();
    fs::rename(file.path(), kept, ignored);
    fs::remove(folder / "running", ignored);
    if (!ignored) return kept;
  }
  return {};
}

plan::Dispatch given_dispatch(const plan::Dispatch& dispatch) {
  change_shaders();
  vk::Pipelines fresh(bench().context);
  const std::uint32_t texels = fresh.get(dispatch).texels;
  plan::Dispatch given = dispatch;
  // A dispatch says how it stores, but not for which type its kernel was specialized, nor who rounds.
  vk::Constants constants =
      vk::constants_of(dispatch, dispatch.spirv ? vk::EmbeddedShader{dispatch.shader, *dispatch.spirv}
                                                : vk::find_shader(dispatch.shader));
  std::erase_if(constants, [](const auto& one) { return one.first < vk::first_storing_constant; });
  given.spirv = std::make_shared<const Words>(constants_fixed(constants)(changes().last));
  given.expression.reset();
  given.reproducible = false;
  given.rounded_by_driver = false;
  given.matrices = {};
  given.push_is_known = false;
  for (std::uint32_t i = 0; i < given.operands.size(); ++i) given.operands[i].texels = i < 32 && (texels >> i & 1) != 0;
  return given;
}

Words given_words(const std::string& kernel) {
  const auto found = changes().replaced.find(own_kernels + kernel);
  return vk::patched(own_kernels + kernel, found == changes().replaced.end() ? kernel_words(kernel) : found->second, 0);
}

}  // namespace halfstep::selftest

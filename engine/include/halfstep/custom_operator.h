#pragma once

#include <halfstep/tensor.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

/// An application's own operators: shapes, a gradient, and kernels as SPIR-V.
namespace halfstep {

/// What a dispatch of a custom operator binds: an input, an output, or one of CustomKernels::workspaces. In memory a
/// tensor is rows of its last axis, each padded with zeros to a multiple of four elements; a kernel reads and writes
/// such quads (QUAD in shaders/common/precision.glsl), and whoever writes a tensor writes the zeros too.
struct CustomOperand {
  enum class Kind : std::uint8_t { input, output, workspace };
  enum class Use : std::uint8_t { read, write, read_write };
  Kind kind = Kind::input;
  std::size_t index = 0;
  Use use = Use::read;  ///< inputs are only read; barriers between dispatches follow from it
};

/// Operand number `index` of each kind, for short.
inline CustomOperand reads_input(std::size_t index) {
  return {CustomOperand::Kind::input, index, CustomOperand::Use::read};
}
inline CustomOperand writes_output(std::size_t index) {
  return {CustomOperand::Kind::output, index, CustomOperand::Use::write};
}

/// One dispatch of a one-dimensional kernel. Its GLSL declares `layout(local_size_x_id = 0) in;`, as
/// shaders/common/indexing.glsl does, takes its number from linear_invocation() there, and returns where that is
/// `invocations` or more.
struct CustomDispatch {
  std::string shader;  ///< its name in errors: "snake"
  /// Its SPIR-V for Vulkan 1.1, for each storage type that it must support: "f32", "f16" (16-bit buffer elements),
  /// "packed" (f16 in 32-bit words) and "bf16". That of the one narrow type among its operands is used, or of f32.
  std::map<std::string, std::vector<std::uint32_t>> spirv{};
  std::vector<CustomOperand> operands{};  ///< operand i is the storage buffer of binding i in set 0
  /// Specialization constants 1, 2, ... of 32 bits; 0 is the workgroup's size, and those from 100 on are the library's.
  std::vector<std::uint32_t> constants{};
  std::vector<std::byte> push{};  ///< as the kernel declares them; at most 128 bytes, a multiple of 4
  std::int64_t invocations = 0;   ///< at least 1
  /// Of a workgroup; 0: as suits the device. With operations across subgroups it must be a multiple of their size where
  /// a device has several sizes, as Intel's and AMD's do: elsewhere compile() throws Error.
  std::uint32_t local_size = 0;
  /// An upper bound on the loop iterations of one invocation, all loops together. Set it if it is in the thousands:
  /// some drivers end loops after 65,535 iterations, and a dispatch beyond that is refused there.
  std::int64_t rounds = 0;
  double flops = 0;  ///< of all invocations, a multiply-add counts as two: for profiles, and for cutting up submits
  /// Whether what it writes in narrow types is as it should be whatever Precision::rounding and overflow say: it only
  /// moves bits, or rounds by itself. Otherwise it writes them by to_quad(v, place) of shaders/common/precision.glsl:
  /// where the precision rounds at random or saturates, compile() throws Error for a kernel that has none.
  bool stores_by_itself = false;
};

/// A struct of scalars as push constants.
template <typename Push>
std::vector<std::byte> push_constants(const Push& push) {
  static_assert(std::is_trivially_copyable_v<Push> && sizeof(Push) <= 128);
  std::vector<std::byte> bytes(sizeof(Push));
  std::memcpy(bytes.data(), &push, sizeof(Push));
  return bytes;
}

/// The dispatches that compute a custom operator, one after the other.
struct CustomKernels {
  std::vector<CustomDispatch> dispatches;
  std::vector<TensorType> workspaces{};  ///< tensors that exist while it runs
};

/// The types of an operator's tensors as they are stored.
struct CustomTypes {
  std::vector<TensorType> inputs;
  std::vector<TensorType> outputs;
};

/// A number or text that a custom operator computes with, other than its inputs.
struct CustomAttribute {
  std::string name;
  std::variant<bool, std::int64_t, float, std::string, std::vector<std::int64_t>, DType> value;
};

/// What a gradient is computed from.
struct CustomGradientCall {
  std::span<const Tensor> inputs;
  std::span<const Tensor> outputs;
  /// The loss's gradient for each output, of its type, multiplied by the loss scale; empty where the loss does not
  /// depend on it.
  std::span<const std::optional<Tensor>> gradients;
  std::vector<bool> needed;  ///< which inputs need a gradient
  /// The loss scale of the step, f32 {}: 1 without one. The gradients that are returned must be multiplied by it, as
  /// all that is linear in `gradients` is. A gradient that is computed from something else is to be multiplied by it;
  /// what is not linear, such as a limit, is to be computed in f32 of `gradients` divided by it.
  Tensor loss_scale;
};

/// An operator of the application: derive from it, and apply it with apply_operator(). Immutable, since graphs,
/// trainers and predictors share it, on any thread. Elementwise functions that the operators of ops.h can express need
/// none: those are fused into single kernels.
class HALFSTEP_API CustomOperator {
 public:
  virtual ~CustomOperator() = default;

  /// Its name in errors and texts of graphs: "snake".
  virtual std::string name() const = 0;
  /// All it computes with that is not an input: two operators of one name and equal attributes compute the same.
  virtual std::vector<CustomAttribute> attributes() const { return {}; }
  /// The outputs' types; called once when it is applied, and again with the types that the precision decides on, which
  /// must not change their number and shapes: compile() throws Error. Throws Error where the inputs are not what the
  /// operator takes.
  virtual std::vector<TensorType> outputs(std::span<const TensorType> inputs) const = 0;
  /// The dispatches, each output written by one of them. Called when a program is compiled.
  virtual CustomKernels kernels(const CustomTypes& types) const = 0;
  /// The gradient for each input, of its type, or nothing where it has or needs none: written in operators, custom ones
  /// among them. The default throws Error: there is none.
  virtual std::vector<std::optional<Tensor>> gradients(const CustomGradientCall& call) const;
  /// Whether it takes each input in the type that it has, as losses do. Otherwise the precision decides on the one
  /// floating type of all, as for activations.
  virtual bool keeps_types() const { return false; }
};

/// Applies an operator to tensors of one graph, at least one. Throws Error where there is no operator, where
/// CustomOperator::outputs does, or gives no output. What is wrong with its kernels is an Error of compile that names
/// it.
HALFSTEP_API std::vector<Tensor> apply_operator(std::shared_ptr<const CustomOperator> op,
                                                std::span<const Tensor> inputs);

}  // namespace halfstep

#include "vk/shader/windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/beyond_limit.h"
#include "vk/shader/additions.h"
#include "vk/shader/spirv.h"
#include "vk/shader/window_access.h"

namespace halfstep::vk {
namespace {

/// Where an instruction's pointer is among its words; 0 where it has none that can be rewritten.
std::size_t pointer_place(std::uint32_t opcode) {
  constexpr std::array more_atomics{5614U, 5615U, 6035U};  // on floats: least, largest, sum
  if (opcode == op_load) return 3;
  if (opcode == op_store || opcode == op_atomic_store) return 1;
  const bool atomic = opcode >= op_atomic_load && opcode <= op_atomic_xor;
  return atomic || std::ranges::find(more_atomics, opcode) != more_atomics.end() ? 3 : 0;
}

/// Which words of an instruction in a function may be ids of pointers: from the first to before the second.
std::pair<std::size_t, std::size_t> id_places(const Instruction& i) {
  switch (i.opcode) {
    case op_line:
    case op_function:
    case op_switch:
    case op_selection_merge:
    case op_loop_merge:
    case op_branch_conditional:
      return {1, 1};
    case op_load:
      return {3, 4};
    case op_store:
      return {1, 3};
    case op_composite_extract:
      return {3, 4};
    case op_composite_insert:
    case op_vector_shuffle:
      return {3, 5};
    case op_ext_inst:
      return {5, i.words.size()};
    default:
      return {1, i.words.size()};
  }
}

class WindowRewriter {
 public:
  WindowRewriter(std::span<const std::uint32_t> words, const plan::Windows& windows, std::string_view shader)
      : additions_(words), functions_(additions_), windows_(windows), shader_(shader) {
    for (const auto& [id, type] : module().variables) {
      const plan::OperandWindows* operand = operand_of(id);
      if (operand != nullptr && operand->count != 1) windowed_[id] = operand;
    }
    if (windowed_.empty()) {
      body_.assign(words.begin() + spirv_header_words, words.end());
      return;
    }
    for_each_instruction(words, [&](const Instruction& i) { visit(i); });
  }

  /// What names or decorates an id that is no longer there is left out.
  std::vector<std::uint32_t> finish() const {
    std::vector<std::uint32_t> body;
    for (const Instruction& i : before_functions_) {
      const bool about = i.opcode == op_name || i.opcode == op_decorate;
      const bool gone = about && (pointers_.contains(i.operand(1)) || wide_.contains(i.operand(1)));
      if (!gone) body.insert(body.end(), i.words.begin(), i.words.end());
    }
    body.insert(body.end(), body_.begin(), body_.end());
    return additions_.finish(body);
  }

 private:
  /// A pointer into a buffer.
  struct Pointer {
    std::uint32_t variable;
    std::uint32_t type;
    std::vector<std::uint32_t> indices;
  };

  /// The f32 in place of f16 that was loaded.
  struct Wide {
    std::uint32_t id = 0;
    std::uint32_t type = 0;
    std::uint32_t narrow = 0;  ///< the type that was loaded
  };

  const Declarations& module() const { return additions_.module(); }

  /// How the buffer in this variable is bound; null if it is no operand.
  const plan::OperandWindows* operand_of(std::uint32_t variable) const {
    constexpr std::array of_buffers{2U, 12U};  // Uniform, StorageBuffer
    const std::uint32_t storage = module().types.at(module().variables.at(variable))[1];
    const auto found = module().decorations.find(variable);
    const bool is_buffer = std::ranges::find(of_buffers, storage) != of_buffers.end();
    if (!is_buffer || found == module().decorations.end()) return nullptr;
    const plan::OperandWindows* operand = nullptr;
    for (const std::vector<std::uint32_t>& decoration : found->second) {
      if (decoration[0] == decoration_descriptor_set && decoration[1] != 0) return nullptr;
      if (decoration[0] == decoration_binding && decoration[1] < windows_.operands.size())
        operand = &windows_.operands[decoration[1]];
    }
    return operand;
  }

  void visit(const Instruction& i) {
    in_functions_ |= i.opcode == op_function;
    if (!in_functions_) return before_functions_.push_back(i);
    const bool chain = i.opcode == op_access_chain || i.opcode == op_in_bounds_access_chain;
    if (chain && enter(i)) return;
    const std::size_t place = pointer_place(i.opcode);
    const auto pointer = pointers_.find(place == 0 ? 0 : i.operand(place));
    if (pointer != pointers_.end()) return access(i, place, pointer->second);
    if (i.opcode == op_f_convert && wide_.contains(i.operand(3))) return take_wide(i);
    if (i.opcode == op_store && wide_.contains(i.operand(2))) return store_wide(i);
    refuse_pointers(i);
    if (i.opcode == op_f_convert && !module().has_float64) converted_[i.operand(2)] = i.operand(3);
    keep(i);
  }

  /// Notes a pointer into a windowed buffer; whether it is one.
  bool enter(const Instruction& i) {
    const std::uint32_t base = i.operand(3);
    const auto outer = pointers_.find(base);
    if (outer == pointers_.end() && !windowed_.contains(base)) return false;
    Pointer pointer = outer != pointers_.end() ? outer->second : Pointer{base, 0, {}};
    pointer.type = i.operand(1);
    pointer.indices.insert(pointer.indices.end(), i.words.begin() + 4, i.words.end());
    pointers_[i.operand(2)] = std::move(pointer);
    return true;
  }

  void access(const Instruction& i, std::size_t place, const Pointer& to) {
    const plan::OperandWindows& operand = *windowed_.at(to.variable);
    if (operand.count == 0) refuse(to.variable, "a use of its binding, beside its address");
    WindowAccess access;
    access.opcode = i.opcode;
    access.variable = to.variable;
    access.pointer_type = to.type;
    access.indices = to.indices;
    if (place == 3) access.result_type = i.operand(1);
    if (to.indices.empty() || is_in_first_window(to)) return access_in(i, place, access, to.variable);
    access.count = operand.count;
    access.rest = operand.rest;
    access.elements = elements_of_window(to);
    std::size_t rest = place + 1;
    if (i.opcode == op_store) access.value = i.operand(rest++);
    access.operands.assign(i.words.begin() + static_cast<std::ptrdiff_t>(rest), i.words.end());
    const auto known = module().constants.find(to.indices[1]);
    if (known != module().constants.end()) return access_known(i, place, access, known->second);
    for (const std::uint32_t index : to.indices) {
      if (!module().integers.contains(index)) refuse(to.variable, "an index that does not have 32 bits");
    }
    if (!module().is_narrow(module().pointee(to.type)))
      return functions_.call(body_, access, place == 3 ? i.operand(2) : 0);
    access_narrow(i, std::move(access));
  }

  /// An access to an element whose index is a constant.
  void access_known(const Instruction& i, std::size_t place, const WindowAccess& access, std::uint32_t index) {
    const std::uint32_t window = index / access.elements;
    if (window >= access.count) refuse(access.variable, fmt::format("an access to element {}", index));
    WindowAccess known = access;
    known.indices[1] = additions_.constant(module().integers.at(access.indices[1]), index % access.elements);
    const std::uint32_t variable =
        window == 0 ? access.variable : additions_.variable_like(access.variable, access.rest + window - 1);
    access_in(i, place, known, variable);
  }

  /// The access as it was, but to another variable.
  void access_in(const Instruction& i, std::size_t place, const WindowAccess& access, std::uint32_t variable) {
    std::vector<std::uint32_t> chain{access.pointer_type, additions_.next_id(), variable};
    chain.insert(chain.end(), access.indices.begin(), access.indices.end());
    append(body_, op_access_chain, chain);
    std::vector<std::uint32_t> words(i.words.begin(), i.words.end());
    words[place] = chain[1];
    keep({i.opcode, words});
  }

  /// Loads f16 as f32, and stores it from f32: functions have no other types.
  void access_narrow(const Instruction& i, WindowAccess access) {
    const std::uint32_t type = functions_.wide(module().pointee(access.pointer_type));
    if (i.opcode == op_load) {
      access.result_type = type;
      wide_[i.operand(2)] = {additions_.next_id(), type, i.operand(1)};
      return functions_.call(body_, access, wide_[i.operand(2)].id);
    }
    if (i.opcode != op_store) refuse(access.variable, "an atomic of f16");
    const auto wide = wide_.find(access.value);
    const auto source = converted_.find(access.value);
    if (wide != wide_.end()) {
      access.value = wide->second.id;
    } else if (source != converted_.end()) {
      access.value = source->second;
    } else {
      const std::uint32_t value = additions_.next_id();
      append(body_, op_f_convert, {type, value, access.value});
      access.value = value;
    }
    functions_.call(body_, access, 0);
  }

  void take_wide(const Instruction& i) {
    const Wide& wide = wide_.at(i.operand(3));
    append(body_, i.operand(1) == wide.type ? op_copy_object : op_f_convert, {i.operand(1), i.operand(2), wide.id});
  }

  /// Stores f16 that was loaded as f32 where there are no windows.
  void store_wide(const Instruction& i) {
    std::vector<std::uint32_t> words(i.words.begin(), i.words.end());
    words[2] = additions_.next_id();
    const Wide& wide = wide_.at(i.operand(2));
    append(body_, op_f_convert, {wide.narrow, words[2], wide.id});
    keep({i.opcode, words});
  }

  /// Whether a pointer points into a member that lies in the first window as a whole, such as a StepState.
  bool is_in_first_window(const Pointer& to) const {
    const std::uint32_t block = module().pointee(module().variables.at(to.variable));
    const std::uint32_t member = module().constants.at(to.indices[0]);
    const auto offset = module().offsets.find({block, member});
    if (offset == module().offsets.end()) return false;
    const std::optional<std::uint64_t> bytes = module().bytes(module().types.at(block).at(1 + member));
    return bytes && offset->second + *bytes <= std::uint64_t{1} << windows_.shift;
  }

  /// Elements of the array that a pointer points into, which must begin with the buffer, in one window.
  std::uint32_t elements_of_window(const Pointer& to) const {
    const std::uint32_t block = module().pointee(module().variables.at(to.variable));
    if (to.indices.size() < 2) refuse(to.variable, "an access to all elements at once");
    const std::uint32_t member = module().constants.at(to.indices[0]);
    const std::uint32_t array = module().types.at(block).at(1 + member);
    const std::uint32_t opcode = module().types.at(array)[0];
    const auto offset = module().offsets.find({block, member});
    const bool first = offset != module().offsets.end() && offset->second == 0;
    if ((opcode != op_type_runtime_array && opcode != op_type_array) || !first)
      refuse(to.variable, "a block with other members than an array");
    const std::uint32_t stride = module().stride(array);
    if (!std::has_single_bit(stride) || stride >> windows_.shift != 0)
      refuse(to.variable, fmt::format("elements of {} bytes", stride));
    return static_cast<std::uint32_t>((std::uint64_t{1} << windows_.shift) / stride);
  }

  /// What was a pointer, or loaded as f32, is not used in another way.
  void refuse_pointers(const Instruction& i) const {
    const auto [first, end] = id_places(i);
    for (std::size_t place = first; place < std::min(end, i.words.size()); ++place) {
      const auto pointer = pointers_.find(i.words[place]);
      if (pointer != pointers_.end()) refuse(pointer->second.variable, fmt::format("a pointer in opcode {}", i.opcode));
      const bool variable = windowed_.contains(i.words[place]) && i.opcode != op_function;
      if (variable) refuse(i.words[place], fmt::format("the whole buffer in opcode {}", i.opcode));
      if (wide_.contains(i.words[place])) {
        refuse(windowed_.begin()->first, fmt::format("f16 as it is stored in opcode {}", i.opcode));
      }
    }
  }

  [[noreturn]] void refuse(std::uint32_t variable, const std::string& what) const {
    const plan::OperandWindows& operand = *windowed_.at(variable);
    fail_beyond_limit(
        ErrorCode::unsupported, shader_,
        fmt::format("expected a kernel that only loads and stores elements of an array of '{}', which is larger than "
                    "a binding of {} bytes, got {}",
                    operand.tensor, std::uint64_t{1} << windows_.shift, what),
        "a smaller batch makes smaller tensors");
  }

  void keep(const Instruction& i) { body_.insert(body_.end(), i.words.begin(), i.words.end()); }

  Additions additions_;
  WindowFunctions functions_;
  const plan::Windows& windows_;
  std::string_view shader_;
  std::map<std::uint32_t, const plan::OperandWindows*> windowed_;  ///< variables
  std::map<std::uint32_t, Pointer> pointers_;
  std::vector<Instruction> before_functions_;
  std::map<std::uint32_t, Wide> wide_;                ///< loads of f16
  std::map<std::uint32_t, std::uint32_t> converted_;  ///< results of conversions: from what
  std::vector<std::uint32_t> body_;
  bool in_functions_ = false;
};

}  // namespace

std::vector<std::uint32_t> with_windows(std::span<const std::uint32_t> words, const plan::Windows& windows,
                                        std::string_view shader) {
  return WindowRewriter(words, windows, shader).finish();
}

}  // namespace halfstep::vk

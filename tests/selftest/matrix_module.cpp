#include <array>
#include <cstring>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "selftest/bed.h"
#include "selftest/matrix_types.h"

namespace halfstep::selftest {
namespace {

/// Opcodes and enumerants of the SPIR-V specification, of SPV_KHR_cooperative_matrix, SPV_KHR_bfloat16 and
/// SPV_EXT_float8.
namespace spv {
enum : std::uint32_t {
  extension = 10,
  memory_model = 14,
  entry_point = 15,
  execution_mode = 16,
  capability = 17,
  type_void = 19,
  type_bool = 20,
  type_int = 21,
  type_float = 22,
  type_vector = 23,
  type_array = 28,
  type_runtime_array = 29,
  type_struct = 30,
  type_pointer = 32,
  type_function = 33,
  constant = 43,
  spec_constant = 50,
  spec_constant_composite = 51,
  function = 54,
  function_end = 56,
  variable = 59,
  load = 61,
  store = 62,
  access_chain = 65,
  decorate = 71,
  member_decorate = 72,
  i_add = 128,
  u_less_than = 176,
  control_barrier = 224,
  phi = 245,
  loop_merge = 246,
  label = 248,
  branch = 249,
  branch_conditional = 250,
  return_ = 253,
  type_cooperative_matrix = 4456,
  cooperative_matrix_load = 4457,
  cooperative_matrix_store = 4458,
  cooperative_matrix_mul_add = 4459,
};
}  // namespace spv

enum Storage : std::uint32_t { input = 1, workgroup = 4, push_constant = 9, storage_buffer = 12 };
enum Use : std::uint32_t { use_a = 0, use_b = 1, use_accumulator = 2 };

/// One of the four matrices.
struct Matrix {
  Component component;
  std::uint32_t rows, columns;
  Use use;
  bool by_columns;
};

/// The parts of a module. Ids are given out in order; types and constants once each.
class Module {
 public:
  static void put(Words& out, std::uint32_t opcode, const Words& operands) {
    out.push_back(static_cast<std::uint32_t>(operands.size() + 1) << 16U | opcode);
    out.insert(out.end(), operands.begin(), operands.end());
  }
  static Words text(std::string_view text, Words before = {}, const Words& after = {}) {
    const std::size_t first = before.size();
    before.resize(first + text.size() / 4 + 1);
    std::memcpy(&before[first], text.data(), text.size());
    before.insert(before.end(), after.begin(), after.end());
    return before;
  }

  std::uint32_t fresh() { return next_++; }
  void decorate(const Words& operands) { put(decorations_, spv::decorate, operands); }
  void member_offset(std::uint32_t type, std::uint32_t member, std::uint32_t bytes) {
    put(decorations_, spv::member_decorate, {type, member, 35, bytes});
  }
  void declare(std::uint32_t opcode, const Words& operands) { put(declarations_, opcode, operands); }
  /// A type or constant whose result is the first operand, or the second one where it has a type.
  std::uint32_t once(std::uint32_t opcode, const Words& operands, bool typed = false) {
    const auto [found, fresh] = once_.try_emplace({opcode, operands}, next_);
    if (!fresh) return found->second;
    Words all = operands;
    all.insert(all.begin() + (typed ? 1 : 0), next_++);
    declare(opcode, all);
    return found->second;
  }
  std::uint32_t uint() { return once(spv::type_int, {32, 0}); }
  std::uint32_t constant(std::uint32_t value) { return once(spv::constant, {uint(), value}, true); }
  std::uint32_t pointer(Storage storage, std::uint32_t type) { return once(spv::type_pointer, {storage, type}); }
  /// An instruction of the function without a result, and with one.
  void write(std::uint32_t opcode, const Words& operands) { put(body_, opcode, operands); }
  std::uint32_t value(std::uint32_t opcode, std::uint32_t type, Words operands) {
    operands.insert(operands.begin(), {type, next_});
    write(opcode, operands);
    return next_++;
  }
  /// All of it, after `head`: what comes before decorations.
  Words finished(const Words& head) const {
    Words all{0x07230203, 0x00010300, 0, next_, 0};
    for (const Words* part : {&head, &decorations_, &declarations_, &body_})
      all.insert(all.end(), part->begin(), part->end());
    return all;
  }

 private:
  std::uint32_t next_ = 1;
  std::map<std::pair<std::uint32_t, Words>, std::uint32_t> once_;
  Words decorations_, declarations_, body_;
};

class Writer {
 public:
  Writer(const MatrixProduct& product, const MatrixLayouts& layouts)
      : product_(product),
        layouts_(layouts),
        matrices_{Matrix{product.a, product.rows, product.k, use_a, layouts.a},
                  Matrix{product.b, product.k, product.columns, use_b, layouts.b},
                  Matrix{product.c, product.rows, product.columns, use_accumulator, layouts.c},
                  Matrix{product.result, product.rows, product.columns, use_accumulator, layouts.c}} {}

  Words words() {
    declare();
    write_main();
    return module_.finished(head());
  }

 private:
  std::uint32_t type_of(Component component) {
    if (component == Component::bf16) return module_.once(spv::type_float, {16, 0});
    if (component == Component::e4m3) return module_.once(spv::type_float, {8, 4214});
    if (component == Component::e5m2) return module_.once(spv::type_float, {8, 4215});
    if (!is_integer(component)) return module_.once(spv::type_float, {8 * bytes(component)});
    return module_.once(spv::type_int, {8 * bytes(component), is_signed(component) ? 1U : 0U});
  }
  std::uint32_t type_of(const Matrix& m) {
    return module_.once(spv::type_cooperative_matrix,
                        {type_of(m.component), module_.constant(static_cast<std::uint32_t>(product_.scope)),
                         module_.constant(m.rows), module_.constant(m.columns), module_.constant(m.use)});
  }

  Words head() const {
    std::set<std::uint32_t> wanted{1, 5345, 6022};  // Shader, VulkanMemoryModel, CooperativeMatrixKHR
    for (const Matrix& m : matrices_) {
      if (bytes(m.component) == 2) wanted.insert(4433);        // StorageBuffer16BitAccess
      if (bytes(m.component) == 1) wanted.insert({4448, 39});  // StorageBuffer8BitAccess, Int8
      if (m.component == Component::f16) wanted.insert(9);
      if (m.component == Component::s16 || m.component == Component::u16) wanted.insert(22);
      if (m.component == Component::bf16) wanted.insert({5116, 5118});  // the type, and matrices of it
      if (is_float8(m.component)) wanted.insert({4212, 4213});          // likewise
    }
    Words out;
    for (const std::uint32_t capability : wanted) Module::put(out, spv::capability, {capability});
    Module::put(out, spv::extension, Module::text("SPV_KHR_vulkan_memory_model"));
    Module::put(out, spv::extension, Module::text("SPV_KHR_cooperative_matrix"));
    if (wanted.contains(4448)) Module::put(out, spv::extension, Module::text("SPV_KHR_8bit_storage"));
    if (wanted.contains(4212)) Module::put(out, spv::extension, Module::text("SPV_EXT_float8"));
    if (wanted.contains(5116)) Module::put(out, spv::extension, Module::text("SPV_KHR_bfloat16"));
    Module::put(out, spv::memory_model, {0, 3});
    Module::put(out, spv::entry_point, Module::text("main", {5, main_}, {local_index_}));
    Module::put(out, spv::execution_mode, {main_, 17, 1, 1, 1});
    return out;
  }

  void declare() {
    main_ = module_.fresh();
    void_ = module_.once(spv::type_void, {});
    uint_ = module_.uint();
    bool_ = module_.once(spv::type_bool, {});
    local_index_ = module_.fresh();
    module_.decorate({local_index_, 11, 29});  // LocalInvocationIndex
    module_.declare(spv::variable, {module_.pointer(input, uint_), local_index_, input});
    size_ = module_.fresh();
    module_.decorate({size_, 1, 0});  // SpecId 0
    module_.declare(spv::spec_constant, {uint_, size_, 1});
    const std::uint32_t one = module_.constant(1);
    const std::uint32_t sizes = module_.fresh();
    module_.decorate({sizes, 11, 25});  // WorkgroupSize
    module_.declare(spv::spec_constant_composite, {module_.once(spv::type_vector, {uint_, 3}), sizes, size_, one, one});
    declare_push();
    for (std::uint32_t i = 0; i < 4; ++i) declare_buffer(i);
  }

  void declare_push() {
    constexpr std::uint32_t count = sizeof(MatrixPlaces) / 4;
    const std::uint32_t type = module_.fresh();
    Words members{type};
    members.insert(members.end(), count, uint_);
    module_.declare(spv::type_struct, members);
    module_.decorate({type, 2});                                                      // Block
    for (std::uint32_t i = 0; i < count; ++i) module_.member_offset(type, i, 4 * i);  // Offset
    push_ = module_.fresh();
    module_.declare(spv::variable, {module_.pointer(push_constant, type), push_, push_constant});
  }

  void declare_buffer(std::uint32_t binding) {
    const Component component = matrices_[binding].component;
    const std::uint32_t element = type_of(component);
    const std::uint32_t array = module_.fresh();
    module_.declare(spv::type_runtime_array, {array, element});
    module_.decorate({array, 6, bytes(component)});  // ArrayStride
    const std::uint32_t block = module_.fresh();
    module_.declare(spv::type_struct, {block, array});
    module_.decorate({block, 2});
    module_.member_offset(block, 0, 0);
    buffers_[binding] = module_.fresh();
    module_.decorate({buffers_[binding], 34, 0});  // DescriptorSet
    module_.decorate({buffers_[binding], 33, binding});
    module_.declare(spv::variable, {module_.pointer(storage_buffer, block), buffers_[binding], storage_buffer});
    if (!layouts_.shared) return;
    const std::uint32_t kept = module_.once(spv::type_array, {element, module_.constant(shared_elements)});
    shared_[binding] = module_.fresh();
    module_.declare(spv::variable, {module_.pointer(workgroup, kept), shared_[binding], workgroup});
  }

  std::uint32_t pushed(std::uint32_t member) {
    const std::uint32_t at =
        module_.value(spv::access_chain, module_.pointer(push_constant, uint_), {push_, module_.constant(member)});
    return module_.value(spv::load, uint_, {at});
  }
  std::uint32_t in_buffer(std::uint32_t i, std::uint32_t index) {
    return module_.value(spv::access_chain, module_.pointer(storage_buffer, type_of(matrices_[i].component)),
                         {buffers_[i], module_.constant(0), index});
  }
  std::uint32_t in_shared(std::uint32_t i, std::uint32_t index) {
    return module_.value(spv::access_chain, module_.pointer(workgroup, type_of(matrices_[i].component)),
                         {shared_[i], index});
  }
  /// Where a matrix is loaded from or stored to.
  std::uint32_t place(std::uint32_t i, std::uint32_t index) {
    return layouts_.shared ? in_shared(i, index) : in_buffer(i, index);
  }

  /// All invocations copy all elements of a matrix to shared memory, or from it.
  void copy(std::uint32_t i, bool to_shared) {
    const std::uint32_t before = last_label_;
    const std::uint32_t header = module_.fresh(), test = module_.fresh(), body = module_.fresh(),
                        next = module_.fresh(), merge = module_.fresh();
    const std::uint32_t sum = module_.fresh();
    const std::uint32_t end = module_.constant(shared_elements);
    module_.write(spv::branch, {header});
    module_.write(spv::label, {header});
    const std::uint32_t index = module_.value(spv::phi, uint_, {index_, before, sum, next});
    module_.write(spv::loop_merge, {merge, next, 0});
    module_.write(spv::branch, {test});
    module_.write(spv::label, {test});
    const std::uint32_t inside = module_.value(spv::u_less_than, bool_, {index, end});
    module_.write(spv::branch_conditional, {inside, body, merge});
    module_.write(spv::label, {body});
    const std::uint32_t type = type_of(matrices_[i].component);
    const std::uint32_t source = to_shared ? in_buffer(i, index) : in_shared(i, index);
    const std::uint32_t value = module_.value(spv::load, type, {source, non_private});
    module_.write(spv::store, {to_shared ? in_shared(i, index) : in_buffer(i, index), value, non_private});
    module_.write(spv::branch, {next});
    module_.write(spv::label, {next});
    module_.write(spv::i_add, {uint_, sum, index, size_});
    module_.write(spv::branch, {header});
    module_.write(spv::label, {merge});
    last_label_ = merge;
  }

  void barrier() {
    // Of the workgroup: acquire and release, make available and visible, its memory.
    module_.write(spv::control_barrier, {module_.constant(2), module_.constant(2), module_.constant(0x6108)});
  }

  std::uint32_t load(std::uint32_t i, std::uint32_t at, std::uint32_t stride) {
    const Matrix& m = matrices_[i];
    const std::uint32_t from = place(i, at);
    return module_.value(spv::cooperative_matrix_load, type_of(m),
                         {from, module_.constant(m.by_columns ? 1 : 0), stride, non_private});
  }

  std::uint32_t multiply(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    std::uint32_t signs = product_.saturating ? 0x10U : 0U;
    for (std::uint32_t i = 0; i < 4; ++i) {
      const Component component = matrices_[i].component;
      if (is_integer(component) && is_signed(component)) signs |= 1U << i;
    }
    return module_.value(spv::cooperative_matrix_mul_add, type_of(matrices_[3]), {a, b, c, signs});
  }

  void write_main() {
    const std::uint32_t type = module_.once(spv::type_function, {void_});
    module_.write(spv::function, {void_, main_, 0, type});
    last_label_ = module_.fresh();
    module_.write(spv::label, {last_label_});
    index_ = module_.value(spv::load, uint_, {local_index_});
    for (std::uint32_t i = 0; i < 4 && layouts_.shared; ++i) copy(i, true);
    if (layouts_.shared) barrier();
    // In the order of MatrixPlaces.
    Words places;
    for (std::uint32_t i = 0; i < 10; ++i) places.push_back(pushed(i));
    const std::uint32_t a = load(0, places[0], places[6]);
    const std::uint32_t b = load(1, places[2], places[7]);
    std::uint32_t sum = multiply(a, b, load(2, places[4], places[8]));
    if (has_two_products(product_)) {
      const std::uint32_t second = load(0, places[1], places[6]);
      sum = multiply(second, load(1, places[3], places[7]), sum);
    }
    const std::uint32_t result = place(3, places[5]);
    module_.write(spv::cooperative_matrix_store,
                  {result, sum, module_.constant(matrices_[3].by_columns ? 1 : 0), places[9], non_private});
    if (layouts_.shared) {
      barrier();
      copy(3, false);
    }
    module_.write(spv::return_, {});
    module_.write(spv::function_end, {});
  }

  static constexpr std::uint32_t non_private = 0x20;  // NonPrivatePointer, of memory operands

  const MatrixProduct& product_;
  const MatrixLayouts& layouts_;
  std::array<Matrix, 4> matrices_;
  Module module_;
  std::uint32_t main_ = 0, void_ = 0, uint_ = 0, bool_ = 0, size_ = 0, push_ = 0, local_index_ = 0;
  std::uint32_t index_ = 0, last_label_ = 0;
  std::array<std::uint32_t, 4> buffers_{}, shared_{};
};

}  // namespace

bool has_two_products(const MatrixProduct& product) {
  return product.c == product.result;
}

Words matrix_module(const MatrixProduct& product, const MatrixLayouts& layouts) {
  return Writer(product, layouts).words();
}

}  // namespace halfstep::selftest

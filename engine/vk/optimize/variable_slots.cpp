#include "vk/optimize/variable_slots.h"

#include <algorithm>

#include "vk/optimize/fold.h"
#include "vk/optimize/grammar.h"

namespace halfstep::vk::ir {
namespace {

constexpr std::uint32_t most_slots = 100;  // of a variable; what is longer is a table
constexpr std::uint32_t volatile_access = 1;

bool is_volatile(const Instruction& i, std::size_t at) {
  return at < i.operands.size() && (i.operands[at] & volatile_access) != 0;
}

/// Private variables that other functions use.
std::vector<Id> used_elsewhere(const Module& module, const Function& function) {
  std::vector<Id> used;
  for (const Function& f : module.functions) {
    if (&f == &function) continue;
    for (const Block& block : f.blocks) {
      for (const Instruction& i : block.code) {
        for_each_id(i, [&](Id id) {
          const Instruction* global = module.global(id);
          if (global != nullptr && global->opcode == op_variable) used.push_back(id);
        });
      }
    }
  }
  std::ranges::sort(used);
  return used;
}

bool is_entry_point(const Module& module, const Function& function) {
  return std::ranges::any_of(module.preamble, [&](const Instruction& i) {
    return i.opcode == op_entry_point && i.operands[1] == function.head.result;
  });
}

}  // namespace

Slots::Slots(Module& module, const Function& function) : module_(module) {
  collect(function);
  refuse_users(function);
  number();
}

void Slots::collect(const Function& function) {
  const auto add = [&](const Instruction& i) {
    const Instruction* pointer = module_.global(i.type);
    const Id type = pointer->operands[1];
    const Id initializer = i.operands.size() > 1 ? i.operands[1] : 0;
    if (initializer != 0 && !module_.is_constant(initializer)) return;
    if (module_.decorations.contains(i.result) || !count(type)) return;
    variables_[i.result] = {type, initializer};
    in_order_.push_back(i.result);
    roots_[i.result] = i.result;
    places_[i.result] = {type, 0, {}};
  };
  for (const Instruction& i : function.blocks.front().code) {
    if (i.opcode == op_variable) add(i);
  }
  if (!is_entry_point(module_, function)) return;  // others begin with what was there
  const std::vector<Id> elsewhere = used_elsewhere(module_, function);
  for (const Instruction& i : module_.globals()) {
    const bool is_private = i.opcode == op_variable && i.operands[0] == storage_private;
    if (is_private && !std::ranges::binary_search(elsewhere, i.result)) add(i);
  }
}

std::optional<std::uint32_t> Slots::count(Id type) const {
  const std::uint32_t kind = module_.kind(type);
  if (kind == op_type_cooperative_matrix || kind == op_type_runtime_array || kind == 0) return std::nullopt;
  if (kind == op_type_void || kind == op_type_image || kind == op_type_sampled_image || kind == op_type_sampler)
    return std::nullopt;
  if (kind != op_type_array && kind != op_type_struct) return 1;
  const std::optional<std::uint32_t> parts = module_.parts(type);
  if (!parts || *parts == 0 || *parts > most_slots) return std::nullopt;
  std::uint32_t sum = 0;
  for (std::uint32_t i = 0; i < *parts; ++i) {
    const std::optional<std::uint32_t> of_part = count(module_.part(type, i));
    if (!of_part) return std::nullopt;
    sum += *of_part;
    if (sum > most_slots) return std::nullopt;
  }
  return sum;
}

const Place* Slots::place(Id pointer) const {
  const auto root = roots_.find(pointer);
  if (root == roots_.end() || !variables_.contains(root->second)) return nullptr;
  return &places_.at(pointer);
}

void Slots::refuse(Id pointer) {
  const auto root = roots_.find(pointer);
  if (root != roots_.end()) variables_.erase(root->second);
}

void Slots::refuse_users(const Function& function) {
  for (const Block& block : function.blocks) {
    for (const Instruction& i : block.code) {
      if (i.opcode == op_variable) continue;
      const bool load = i.opcode == op_load && !is_volatile(i, 1);
      const bool store = i.opcode == op_store && !is_volatile(i, 2);
      const bool chain = (i.opcode == op_access_chain || i.opcode == op_in_bounds_access_chain) && visit_chain(i);
      bool first = true;
      for_each_id(i, [&](Id id) {
        if (!first || !(load || store || chain)) refuse(id);
        first = false;
      });
      const Place* where = load || store ? place(i.operands[0]) : nullptr;
      if (load && where != nullptr && where->type != i.type) refuse(i.operands[0]);
    }
  }
}

/// Notes where an access chain points; returns whether that is known.
bool Slots::visit_chain(const Instruction& i) {
  const auto root = roots_.find(i.operands[0]);
  if (root == roots_.end()) return false;
  Place place = places_.at(i.operands[0]);
  for (std::size_t at = 1; at < i.operands.size(); ++at) {
    const std::optional<std::uint32_t> index = module_.bits(i.operands[at]);
    const std::optional<std::uint32_t> parts = module_.parts(place.type);
    if (!index || !parts || *index >= *parts) return false;
    const std::uint32_t kind = module_.kind(place.type);
    if (kind == op_type_array || kind == op_type_struct) {
      for (std::uint32_t before = 0; before < *index; ++before) place.slot += *count(module_.part(place.type, before));
    } else {
      place.path.push_back(*index);
    }
    place.type = module_.part(place.type, *index);
  }
  roots_[i.result] = root->second;
  places_[i.result] = std::move(place);
  return true;
}

void Slots::number() {
  std::unordered_map<Id, std::uint32_t> first;
  for (const Id variable : in_order_) {
    if (!is_promoted(variable)) continue;
    first[variable] = static_cast<std::uint32_t>(types_.size());
    add_slots(variables_.at(variable).type, variables_.at(variable).initializer);
  }
  for (auto& [pointer, place] : places_) {
    const auto found = first.find(roots_.at(pointer));
    if (found != first.end()) place.slot += found->second;
  }
}

void Slots::add_slots(Id type, Id initializer) {
  const std::uint32_t kind = module_.kind(type);
  if (kind != op_type_array && kind != op_type_struct) {
    types_.push_back(type);
    initial_.push_back(initializer);
    return;
  }
  for (std::uint32_t part = 0; part < *module_.parts(type); ++part) {
    add_slots(module_.part(type, part), initializer == 0 ? 0 : constituent(module_, initializer, part));
  }
}

}  // namespace halfstep::vk::ir

#include <halfstep/graph.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

#include "graph/ir.h"

namespace halfstep {

namespace graph {
namespace {

struct ValueText {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(float value) const { return fmt::format("{}", value); }
  std::string operator()(const std::string& value) const { return fmt::format("'{}'", value); }
  std::string operator()(const std::vector<std::int64_t>& value) const { return to_string(value); }
  std::string operator()(DType value) const { return std::string(halfstep::name(value)); }
};

std::string_view name(Origin origin) {
  switch (origin) {
    case Origin::input:
      return "input";
    case Origin::parameter:
      return "parameter";
    case Origin::state:
      return "state";
    case Origin::cache:
      return "cache";
    case Origin::node:
      return "node";
  }
  return "?";
}

std::string text_of(const Initializer& initializer) {
  switch (initializer.kind) {
    case Initializer::Kind::constant:
      return fmt::format("constant({})", initializer.a);
    case Initializer::Kind::uniform:
      return fmt::format("uniform({}, {})", initializer.a, initializer.b);
    case Initializer::Kind::normal:
      return fmt::format("normal({}, {})", initializer.a, initializer.b);
  }
  return "?";
}

/// "parameter conv1/weight f32 {3, 3, 1, 32} normal(0, 0.47) stored={3, 2, 0, 1}".
std::string leaf_line(const Value& value) {
  std::string line = fmt::format("{} {} {}", name(value.origin), value.name, to_string(value.type));
  if (value.origin != Origin::input) line += fmt::format(" {}", text_of(value.initializer));
  if (!value.stored.empty()) line += fmt::format(" stored={}", to_string(value.stored));
  return line;
}

/// "conv1/conv2d:0 f32 {8, 28, 28, 32} = conv2d(x, conv1/weight) stride={1, 1} groups=1".
std::string node_line(const Ir& ir, const Node& node) {
  std::vector<std::string> outputs;
  std::vector<std::string_view> inputs;
  for (const ValueId output : node.outputs) {
    outputs.push_back(fmt::format("{} {}", ir.values[output].name, to_string(ir.values[output].type)));
  }
  for (const ValueId input : node.inputs) inputs.push_back(ir.values[input].name);
  std::string line = fmt::format("{} = {}({})", fmt::join(outputs, ", "), node.op->name(), fmt::join(inputs, ", "));
  for (const Attribute& attribute : node.op->attributes()) line += fmt::format(" {}", text_of(attribute));
  return line;
}

}  // namespace

std::string text_of(const Attribute& attribute) {
  return fmt::format("{}={}", attribute.name, std::visit(ValueText{}, attribute.value));
}

std::string text_of(const Ir& ir) {
  std::string text;
  for (ValueId id = 0; id < ir.values.size(); ++id) {
    const Value& value = ir.values[id];
    if (value.origin != Origin::node) {
      text += fmt::format("{}\n", leaf_line(value));
    } else if (ir.nodes[value.producer].outputs.front() == id) {
      text += fmt::format("{}\n", node_line(ir, ir.nodes[value.producer]));
    }
  }
  for (const Update& update : ir.updates) {
    text += fmt::format("update {} = {}\n", ir.values[update.state].name, ir.values[update.next].name);
  }
  return text;
}

}  // namespace graph

std::string to_string(const Graph& graph) {
  return graph::text_of(graph.ir());
}

std::uint64_t hash(const Graph& graph) {
  // FNV-1a: Fowler, Noll and Vo.
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : to_string(graph)) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash;
}

bool operator==(const Graph& a, const Graph& b) {
  return to_string(a) == to_string(b);
}

}  // namespace halfstep

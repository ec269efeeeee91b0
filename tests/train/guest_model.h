#pragma once

#include <halfstep/halfstep.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "harness/values.h"

/// What trains on an application's device in its tests.
namespace halfstep::testing::guest {

inline constexpr std::int64_t batch = 6;

/// Classifies rows of 3 numbers, or of 4.
struct Model {
  explicit Model(std::int64_t columns) : x(graph.input("x", {batch, columns})) {
    const auto layer = [&](const char* name, Tensor in, std::int64_t from, std::int64_t to) {
      const Scope scope = graph.root() / name;
      return linear(in, scope.parameter("weight", {from, to}, he(from)), scope.parameter("bias", {to}, constant(0)));
    };
    logits = layer("second", relu(layer("first", x, columns, 8)), 8, 5);
  }
  Trainer trainer(const Device& device, TrainerOptions options) {
    const Tensor y = graph.input("y", {batch}, DType::u32);
    options.loss = cross_entropy(logits, y);
    options.optimizer = Adam{.rate = 0.05F};
    return Trainer::compile(device, graph, options);
  }

  Graph graph;
  Tensor x;
  Tensor logits;
};

inline std::vector<float> rows(std::int64_t count, std::int64_t columns, std::uint64_t seed) {
  const reference::Array array = uniform({count, columns}, seed);
  return {array.values.begin(), array.values.end()};
}

inline std::vector<std::uint32_t> labels(std::int64_t count) {
  std::vector<std::uint32_t> result;
  for (std::int64_t i = 0; i < count; ++i) result.push_back(static_cast<std::uint32_t>(i * 7 % 5));
  return result;
}

template <typename T>
void put(std::span<float> memory, std::size_t first, const std::vector<T>& values) {
  std::memcpy(&memory[first], values.data(), values.size() * sizeof(T));
}

inline std::vector<float> weights(Trainer& trainer) {
  const std::string names[] = {"first/weight", "first/bias", "second/weight", "second/bias"};
  std::vector<float> all;
  for (const std::string& name : names) {
    const std::vector<float> some = trainer.parameter(name);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace halfstep::testing::guest

// A small decoder, of the operators that large ones have: tied embedding, rotary positions, RMS norm, causal attention
// with grouped heads, gated units, cross-entropy with labels to ignore.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "base/philox.h"
#include "harness/device.h"

using namespace halfstep;

namespace {

constexpr std::int64_t batch = 8;
constexpr std::int64_t positions = 12;
constexpr std::int64_t width = 32;
constexpr std::int64_t heads = 4;
constexpr std::int64_t key_heads = 2;
constexpr std::int64_t head_width = width / heads;
constexpr std::uint32_t vocabulary = 11;
constexpr std::uint32_t nothing = 7777;  ///< the label of positions that are not predicted

Tensor weight(const Scope& scope, std::string_view name, std::int64_t in, std::int64_t out) {
  return scope.parameter(name, {in, out}, normal(1 / std::sqrt(static_cast<float>(in))));
}

/// {batch, positions, count * head_width} as {batch, count, positions, head_width}.
Tensor by_head(Tensor x, std::int64_t count) {
  return permute(reshape(x, {batch, positions, count, head_width}), {0, 2, 1, 3});
}

Tensor attention_layer(const Scope& scope, Tensor x) {
  const Tensor normed = rms_norm(x, scope.parameter("norm", {width}, constant(1)));
  const std::int64_t keys = key_heads * head_width;
  const Tensor all = linear(normed, weight(scope, "qkv", width, width + 2 * keys));
  const std::vector<Tensor> parts = split(all, {width, keys, keys}, -1);
  const Tensor q = rotary(by_head(parts[0], heads));
  const Tensor k = rotary(by_head(parts[1], key_heads));
  const Tensor y = attention(q, k, by_head(parts[2], key_heads), {.causal = true});
  const Tensor joined = reshape(permute(y, {0, 2, 1, 3}), {batch, positions, width});
  return add(x, linear(joined, weight(scope, "out", width, width)));
}

Tensor gated_layer(const Scope& scope, Tensor x) {
  const Tensor normed =
      layer_norm(x, scope.parameter("norm", {width}, constant(1)), scope.parameter("bias", {width}, constant(0)));
  const Tensor gate = linear(normed, weight(scope, "gate", width, 2 * width));
  const Tensor up = linear(normed, weight(scope, "up", width, 2 * width));
  return add(x, linear(swiglu(gate, up), weight(scope, "down", 2 * width, width)));
}

/// A decoder that is to predict, at each position, the token two positions before.
Trainer decoder(const Precision& precision) {
  Graph graph;
  const Scope root = graph.root();
  const Tensor ids = graph.input("ids", {batch, positions}, DType::u32);
  const Tensor labels = graph.input("labels", {batch, positions}, DType::u32);
  const Tensor table = root.parameter("table", {vocabulary, width}, normal(1 / std::sqrt(static_cast<float>(width))));
  Tensor x = embedding(table, ids);
  for (const char* layer : {"0", "1"}) {
    x = attention_layer(root / layer / "attention", x);
    x = gated_layer(root / layer / "gated", x);
  }
  const Tensor logits = matmul(rms_norm(x), table, {.transpose_b = true});
  const Tensor loss =
      cross_entropy(reshape(logits, {batch * positions, vocabulary}), reshape(labels, {batch * positions}), 0, nothing);
  return Trainer::compile(testing::device(), graph,
                          {.loss = loss, .optimizer = Adam{.rate = 0.004F}, .precision = precision, .seed = 3});
}

/// One step on fresh random tokens.
void step(Trainer& trainer, std::uint32_t number) {
  std::vector<std::uint32_t> ids;
  std::vector<std::uint32_t> labels;
  for (std::uint32_t i = 0; i < batch * positions; ++i) {
    ids.push_back(process::philox4x32({i, number, 0, 0}, process::philox_key(1))[0] % vocabulary);
    labels.push_back(i % positions < 2 ? nothing : ids[i - 2]);
  }
  trainer.step({{"ids", std::span<const std::uint32_t>(ids)}, {"labels", std::span<const std::uint32_t>(labels)}});
}

}  // namespace

TEST_CASE("a small decoder learns to look back, in every precision") {
  for (const Precision& precision : {Precision::float32(), Precision::mixed(), Precision::bfloat16()}) {
    CAPTURE(precision.name);
    Trainer trainer = decoder(precision);
    std::uint32_t number = 0;
    step(trainer, number++);
    trainer.finish();
    const double first = trainer.take_totals().mean_loss;
    CHECK(first > 2);  // a guess has log(11) = 2.4
    for (int i = 0; i < 200; ++i) step(trainer, number++);
    trainer.finish();
    trainer.take_totals();
    for (int i = 0; i < 10; ++i) step(trainer, number++);
    trainer.finish();
    CHECK(trainer.take_totals().mean_loss < 0.2);
  }
}

namespace {

/// The arena of a step of attention over sequences of a length, in bytes.
std::uint64_t attention_arena(std::int64_t length, bool fused) {
  Graph graph;
  const Tensor x = graph.input("x", {1, 4, length, 8});
  const Tensor q = linear(x, weight(graph.root(), "q", 8, 8));
  const Tensor y = attention(q, x, x, {.causal = true, .fused = fused});
  const Tensor loss = mean(mul(y, y));
  Trainer trainer = Trainer::compile(testing::device(), graph, {.loss = loss});
  return trainer.inspect().summary().arena_bytes;
}

}  // namespace

TEST_CASE("the memory of attention grows with the length of sequences, not with its square") {
  // A limit of rounds cuts it into parts, which carry their sums in memory.
  if (testing::context().target().max_rounds < 1000) return;
  const std::uint64_t half = attention_arena(2048, true);
  const std::uint64_t whole = attention_arena(4096, true);
  CHECK(whole <= 2 * half + 4096);
  const std::uint64_t scores = std::uint64_t{4} * 1024 * 1024 * 4;
  CHECK(attention_arena(1024, false) > scores);
  CHECK(whole < scores);
}

#include <halfstep/error.h>
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <string>

namespace halfstep {
namespace {

/// Tensors of every kind, valid or not as inputs of operators.
struct Tensors {
  Graph graph;
  Tensor scalar = graph.input("scalar", {});
  Tensor vector = graph.input("vector", {5});
  Tensor matrix = graph.input("matrix", {4, 5});
  Tensor half = graph.input("half", {4, 5}, DType::f16);
  Tensor images = graph.input("images", {2, 6, 7, 3});
  Tensor labels = graph.input("labels", {4}, DType::u32);
  Tensor few_labels = graph.input("few_labels", {3}, DType::u32);
};

struct Mistake {
  std::function<void(Tensors&)> make;
  const char* message;
};

void check(const std::vector<Mistake>& mistakes) {
  for (const Mistake& mistake : mistakes) {
    Tensors tensors;
    CHECK_THROWS_WITH_AS(mistake.make(tensors), mistake.message, Error);
  }
}

}  // namespace

TEST_CASE("elementwise operators name what they cannot take") {
  check(
      {{[](Tensors& t) { relu(t.labels); }, "[relu] expected a tensor of f32, f16 or bf16, got u32 {4}"},
       {[](Tensors& t) { sigmoid(t.labels); }, "[sigmoid] expected a tensor of f32, f16 or bf16, got u32 {4}"},
       {[](Tensors& t) { leaky_relu(t.vector, -0.5F); }, "[leaky_relu] expected a slope of 0 or more, got -0.5"},
       {[](Tensors& t) { leaky_relu(t.vector, std::numeric_limits<float>::quiet_NaN()); },
        "[leaky_relu] expected a slope of 0 or more, got nan"},
       {[](Tensors& t) { silu(t.labels); }, "[silu] expected a tensor of f32, f16 or bf16, got u32 {4}"},
       {[](Tensors& t) { dropout(t.vector, 1); }, "[dropout] expected a probability from 0 to below 1, got 1"},
       {[](Tensors& t) { dropout(t.vector, std::numeric_limits<float>::quiet_NaN()); },
        "[dropout] expected a probability from 0 to below 1, got nan"},
       {[](Tensors& t) { dropout(t.labels, 0.5F); }, "[dropout] expected a tensor of f32, f16 or bf16, got u32 {4}"},
       {[](Tensors& t) { scale(t.vector, std::numeric_limits<float>::infinity()); },
        "[scale] expected a finite factor, got inf"},
       {[](Tensors& t) { offset(t.vector, std::numeric_limits<float>::infinity()); },
        "[offset] expected a finite amount, got inf"},
       {[](Tensors& t) { add(t.matrix, t.images); },
        "[add] expected shapes that broadcast, got {4, 5} and {2, 6, 7, 3}. Hint: aligned at the last axis, extents "
        "must be equal or 1"},
       {[](Tensors& t) { sub(t.matrix, t.labels); }, "[sub] expected a tensor of f32, f16 or bf16, got u32 {4}"},
       {[](Tensors& t) { bias(t.matrix, t.matrix); },
        "[bias] expected x {..., c} and b {c}, got f32 {4, 5} and f32 {4, 5}"},
       {[](Tensors& t) { bias(t.scalar, t.vector); }, "[bias] expected x {..., c} and b {c}, got f32 {} and f32 {5}"},
       {[](Tensors& t) { cast(t.labels, DType::f16); }, "[cast] expected a tensor of f32, f16 or bf16, got u32 {4}"},
       {[](Tensors& t) { cast(t.vector, DType::u32); }, "[cast] expected a result of f32, f16 or bf16, got u32 {5}"}});
}

TEST_CASE("sums name axes there are not") {
  check({{[](Tensors& t) { sum(t.matrix, {2}); }, "[sum] expected axes of a tensor of 2, got 2"},
         {[](Tensors& t) { mean(t.matrix, {-3}); }, "[mean] expected axes of a tensor of 2, got -3"},
         {[](Tensors& t) {
            sum(t.matrix, {1, -1});
          },
          "[sum] expected each axis once, got -1 twice"},
         {[](Tensors& t) { sum(t.scalar, {0}); }, "[sum] expected axes of a tensor of 0, got 0"},
         {[](Tensors& t) { sum(t.labels); }, "[sum] expected a tensor of f32, f16 or bf16, got u32 {4}"}});
}

TEST_CASE("reshape names shapes that do not fit") {
  const std::int64_t huge = std::int64_t{1} << 62;
  check({{[](Tensors& t) {
            reshape(t.matrix, {3, 7});
          },
          "[reshape] expected a shape of 20 elements, as f32 {4, 5} has, got {3, 7}"},
         {[](Tensors& t) {
            reshape(t.matrix, {0, 20});
          },
          "[reshape] expected a shape of 20 elements, as f32 {4, 5} has, got {0, 20}"},
         {[](Tensors& t) {
            reshape(t.matrix, {-2, -10});
          },
          "[reshape] expected a shape of 20 elements, as f32 {4, 5} has, got {-2, -10}"},
         {[](Tensors& t) {
            reshape(t.matrix, {-1, 3});
          },
          "[reshape] expected a shape that 20 elements fit, got {-1, 3}"},
         {[](Tensors& t) {
            reshape(t.matrix, {-1, 0});
          },
          "[reshape] expected a shape that 20 elements fit, got {-1, 0}"},
         {[](Tensors& t) {
            reshape(t.matrix, {-1, -1});
          },
          "[reshape] expected at most one extent of -1, got {-1, -1}"},
         {[](Tensors& t) { flatten(t.scalar); }, "[flatten] expected a tensor with a batch axis, got a scalar"}});
  Tensors tensors;
  CHECK_THROWS_AS(reshape(tensors.matrix, {huge, huge}), Error);
  CHECK_THROWS_AS(reshape(tensors.matrix, {huge, huge, -1}), Error);
}

TEST_CASE("pooling names windows that do not fit") {
  check({{[](Tensors& t) { max_pool2d(t.matrix); }, "[max_pool2d] expected images {n, h, w, c}, got f32 {4, 5}"},
         {[](Tensors& t) {
            max_pool2d(t.images, {.kernel = {7, 2}});
          },
          "[max_pool2d] expected images that a window of {7, 2} fits into, got f32 {2, 6, 7, 3}"},
         {[](Tensors& t) {
            average_pool2d(t.images, {.kernel = {0, 2}});
          },
          "[average_pool2d] expected a kernel of 1 to 32768, got {0, 2}"},
         {[](Tensors& t) {
            max_pool2d(t.images, {.stride = Pair{1, -1}});
          },
          "[max_pool2d] expected strides of 1 to 32768, got {1, -1}"},
         {[](Tensors& t) {
            average_pool2d(t.images, {.padding = {2, 0}});
          },
          "[average_pool2d] expected padding from 0 to half the kernel {2, 2}, got {2, 0}"}});
}

TEST_CASE("losses and metrics name logits, labels and targets that do not belong together") {
  check({{[](Tensors& t) { cross_entropy(t.images, t.labels); },
          "[cross_entropy] expected logits {n, classes}, got f32 {2, 6, 7, 3}"},
         {[](Tensors& t) { cross_entropy(t.matrix, t.few_labels); },
          "[cross_entropy] expected labels u32 {4} for logits f32 {4, 5}, got u32 {3}"},
         {[](Tensors& t) { accuracy(t.matrix, t.vector); },
          "[accuracy] expected labels u32 {4} for logits f32 {4, 5}, got f32 {5}"},
         {[](Tensors& t) { mse_loss(t.matrix, t.vector); },
          "[mse_loss] expected tensors of one shape, got f32 {4, 5} and f32 {5}"},
         {[](Tensors& t) { binary_cross_entropy(t.matrix, t.vector); },
          "[binary_cross_entropy] expected tensors of one shape, got f32 {4, 5} and f32 {5}"},
         {[](Tensors& t) { huber_loss(t.matrix, t.matrix, 0); }, "[huber_loss] expected a delta above 0, got 0"},
         {[](Tensors& t) { l1_loss(t.matrix, t.labels); },
          "[l1_loss] expected a target of f32, f16 or bf16, got u32 {4}"},
         {[](Tensors& t) { mse_loss(t.labels, t.labels); },
          "[mse_loss] expected a prediction of f32, f16 or bf16, got u32 {4}"}});
}

TEST_CASE("rotary names an axis that is not before the last") {
  for (const std::int64_t axis : {std::int64_t{3}, std::int64_t{-1}, std::int64_t{-5},
                                  std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()}) {
    Tensors tensors;
    const std::string message = "[rotary] expected an axis of positions before the last of f32 {2, 6, 7, 3}, got ";
    CHECK_THROWS_WITH_AS(rotary(tensors.images, {.axis = axis}), (message + std::to_string(axis)).c_str(), Error);
  }
}

TEST_CASE("attention says what it cannot take") {
  Graph graph;
  const Tensor q = graph.input("q", {2, 4, 3, 8});
  const Tensor k = graph.input("k", {2, 2, 5, 8});
  const Tensor odd = graph.input("odd", {2, 3, 5, 8});
  const Tensor lengths = graph.input("lengths", {3}, DType::u32);
  CHECK_THROWS_WITH_AS(attention(q, odd, odd),
                       "[attention] expected query heads that are a multiple of 3 key heads, got 4", Error);
  CHECK_THROWS_WITH_AS(attention(q, k, odd), doctest::Contains("[attention] expected q {n, h, queries, c}, k"), Error);
  CHECK_THROWS_WITH_AS(attention(q, k, k, {.window = -1}), "[attention] expected a window of 0 or more, got -1", Error);
  CHECK_THROWS_WITH_AS(attention(q, k, k, {.dropout = 1}),
                       "[attention] expected a probability from 0 to below 1, got 1", Error);
  CHECK_THROWS_WITH_AS(attention(q, k, k, {.key_lengths = lengths}),
                       "[attention] expected key lengths u32 {2}, got u32 {3}", Error);
  const Tensor segments = graph.input("segments", {2, 3}, DType::u32);
  CHECK_THROWS_WITH_AS(attention(q, k, k, {.segments = segments}),
                       "[attention] expected segments u32 {2, 3} of as many keys, got u32 {2, 3} of 5 keys", Error);
  CHECK_THROWS_WITH_AS(attention(q, q, q, {.segments = lengths}),
                       "[attention] expected segments u32 {2, 3} of as many keys, got u32 {3} of 3 keys", Error);
  const Tensor two = graph.input("two", {2}, DType::u32);
  CHECK_THROWS_WITH_AS(attention(q, q, q, {.key_lengths = two, .segments = segments}),
                       doctest::Contains("expected key lengths or segments, got both"), Error);
  CHECK_THROWS_WITH_AS(attention(q, k, k, {.mask = graph.input("mask", {7, 2, 4, 3, 5})}),
                       "[attention] expected a mask that broadcasts to {2, 4, 3, 5}, got f32 {7, 2, 4, 3, 5}", Error);
  // Its bits would be read as numbers near 0, which hide nothing.
  const Tensor ones = graph.input("ones", {3, 5}, DType::u32);
  CHECK_THROWS_WITH_AS(attention(q, k, k, {.mask = ones}),
                       "[attention] expected a mask of f32, f16 or bf16, got u32 {3, 5}", Error);
  const Tensor ids = graph.input("ids", {2, 2, 5, 8}, DType::u32);
  CHECK_THROWS_WITH_AS(attention(ids, k, k), doctest::Contains("expected queries of f32, f16 or bf16, got u32"), Error);
  CHECK_THROWS_WITH_AS(attention(q, ids, k), doctest::Contains("expected keys of f32, f16 or bf16, got u32"), Error);
  CHECK_THROWS_WITH_AS(attention(q, k, ids), doctest::Contains("expected values of f32, f16 or bf16, got u32"), Error);
}

}  // namespace halfstep

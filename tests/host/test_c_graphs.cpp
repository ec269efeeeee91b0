// The C interface makes the graphs that the C++ interface makes.
#include <halfstep/encodings.h>
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>
#include <halfstep.h>

#include <array>
#include <string>
#include <vector>

#include "c/handles.h"
#include "models/bert.h"
#include "models/by_name.h"
#include "models/gpt.h"
#include "models/mlp.h"
#include "models/resnet_cifar.h"

using namespace halfstep;

namespace {

std::string text_of(const hs_graph* graph) {
  std::size_t needed = 0;
  REQUIRE_MESSAGE(hs_graph_text(graph, nullptr, 0, &needed) == HS_OK, hs_error_text());
  std::vector<char> buffer(needed);
  REQUIRE(hs_graph_text(graph, buffer.data(), buffer.size() - 1, nullptr) == HS_BAD_ARGUMENT);
  REQUIRE(hs_graph_text(graph, buffer.data(), buffer.size(), nullptr) == HS_OK);
  return buffer.data();
}

/// A graph of each interface, with the same inputs.
struct Both {
  hs_graph* c = nullptr;
  Graph cpp{};

  Both() { REQUIRE(hs_graph_create(&c) == HS_OK); }
  ~Both() { hs_graph_free(c); }
  Both(const Both&) = delete;
  Both& operator=(const Both&) = delete;

  struct Value {
    hs_tensor c;
    Tensor cpp;
  };
  Value input(const char* name, const Shape& shape, DType dtype = DType::f32) {
    return {hs_input(c, name, c::dtype_of(dtype), c::shape_of(shape)), cpp.input(name, shape, dtype)};
  }
  void compare() const {
    REQUIRE_MESSAGE(hs_graph_status(c) == HS_OK, hs_error_text());
    CHECK(text_of(c) == to_string(cpp));
  }
};

}  // namespace

TEST_CASE("C: products make the graph that C++ makes") {
  Both both;
  hs_graph* g = both.c;
  const auto x = both.input("x", {2, 6, 8, 12});
  const auto w = both.input("w", {3, 3, 4, 6});
  const auto wt = both.input("wt", {3, 3, 2, 12});
  const auto v12 = both.input("v12", {12});
  const auto v6 = both.input("v6", {6});
  const auto a = both.input("a", {5, 12});
  const auto b = both.input("b", {7, 12});
  const auto m = both.input("m", {12, 6});
  hs_conv2d_options conv{};
  conv.size = sizeof conv;
  conv.stride[0] = 2;
  conv.padding[1] = 1;
  conv.dilation[1] = 2;
  conv.groups = 3;
  hs_conv2d(g, x.c, w.c, v6.c, &conv);
  conv2d(x.cpp, w.cpp, {.stride = {2, 1}, .padding = {0, 1}, .dilation = {1, 2}, .groups = 3}, v6.cpp);
  hs_conv2d_options transposed{};
  transposed.size = sizeof transposed;
  transposed.stride[0] = transposed.stride[1] = 2;
  transposed.output_padding[1] = 1;
  hs_conv2d_transpose(g, x.c, wt.c, &transposed);
  conv2d_transpose(x.cpp, wt.cpp, {.stride = {2, 2}}, {0, 1});
  hs_matmul(g, a.c, b.c, 0, 1);
  matmul(a.cpp, b.cpp, {.transpose_b = true});
  hs_linear(g, a.c, m.c, v6.c);
  linear(a.cpp, m.cpp, v6.cpp);
  hs_linear(g, a.c, m.c, 0);
  linear(a.cpp, m.cpp);
  hs_bias(g, x.c, v12.c);
  bias(x.cpp, v12.cpp);
  const auto last = both.input("last", {6, 3});
  const hs_tensor weights[] = {m.c, last.c};
  const hs_tensor biases[] = {v6.c, 0};
  hs_fused_mlp(g, a.c, weights, biases, 2, nullptr);
  fused_mlp(a.cpp, {{m.cpp, v6.cpp}, {last.cpp}});
  hs_fused_mlp_options mlp{};
  mlp.size = sizeof mlp;
  mlp.activation = hs_gelu_tanh;
  mlp.output_activation = hs_sigmoid;
  hs_fused_mlp(g, a.c, weights, nullptr, 2, &mlp);
  fused_mlp(a.cpp, {{m.cpp}, {last.cpp}},
            {.activation = [](Tensor t) { return gelu(t, Gelu::tanh); }, .output_activation = sigmoid});
  both.compare();
}

TEST_CASE("C: norms and pooling make the graph that C++ makes") {
  Both both;
  hs_graph* g = both.c;
  const auto x = both.input("x", {2, 6, 8, 12});
  const auto v12 = both.input("v12", {12});
  const hs_tensor mean = hs_state(g, "bn/mean", HS_SHAPE(12), hs_constant(0));
  const hs_tensor variance = hs_state(g, "bn/variance", HS_SHAPE(12), hs_constant(1));
  hs_batch_norm(g, x.c, v12.c, v12.c, mean, variance, 0, 0.2F);
  const Scope scope = both.cpp.root() / "bn";
  const Tensor mean_cpp = scope.state("mean", {12}, constant(0));
  batch_norm(x.cpp, v12.cpp, v12.cpp, {mean_cpp, scope.state("variance", {12}, constant(1))}, {.momentum = 0.2F});
  hs_group_norm(g, x.c, 3, v12.c, v12.c, 0.5F);
  group_norm(x.cpp, 3, v12.cpp, v12.cpp, 0.5F);
  hs_instance_norm(g, x.c, v12.c, v12.c, 0);
  instance_norm(x.cpp, v12.cpp, v12.cpp);
  hs_layer_norm(g, x.c, 0, v12.c, 0);
  layer_norm(x.cpp, {}, v12.cpp);
  hs_rms_norm(g, x.c, v12.c, 0);
  rms_norm(x.cpp, v12.cpp);
  hs_pool2d_options pool{};
  pool.size = sizeof pool;
  pool.kernel[0] = 3;
  pool.padding[0] = 1;
  pool.count_padding = HS_OFF;
  hs_max_pool2d(g, x.c, nullptr);
  max_pool2d(x.cpp);
  hs_average_pool2d(g, x.c, &pool);
  average_pool2d(x.cpp, {.kernel = {3, 2}, .padding = {1, 0}, .count_padding = false});
  hs_adaptive_average_pool2d(g, x.c, 3, 2);
  adaptive_average_pool2d(x.cpp, {3, 2});
  hs_adaptive_max_pool2d(g, x.c, 1, 2);
  adaptive_max_pool2d(x.cpp, {1, 2});
  hs_global_average_pool(g, x.c);
  global_average_pool(x.cpp);
  both.compare();
}

TEST_CASE("C: encodings make the graph that C++ makes") {
  Both both;
  hs_graph* g = both.c;
  const auto positions = both.input("positions", {9, 3});
  hs_hash_grid_options grid{};
  grid.size = sizeof grid;
  grid.levels = 4;
  grid.log2_hashmap_size = 10;
  const HashGridOptions grid_cpp{.levels = 4, .log2_hashmap_size = 10};
  const auto table = both.input("table", {hash_grid_size(3, grid_cpp)});
  CHECK(hs_hash_grid_size(3, &grid) == hash_grid_size(3, grid_cpp));
  CHECK(hs_hash_grid_size(9, &grid) == 0);
  hs_hash_grid(g, positions.c, table.c, &grid);
  hash_grid(positions.cpp, table.cpp, grid_cpp);
  hs_frequency_encoding(g, positions.c, 5);
  frequency_encoding(positions.cpp, 5);
  hs_one_blob_encoding(g, positions.c, 7);
  one_blob_encoding(positions.cpp, 7);
  hs_spherical_harmonics(g, positions.c, 3);
  spherical_harmonics(positions.cpp, 3);
  both.compare();
}

TEST_CASE("C: changes of shape make the graph that C++ makes") {
  Both both;
  hs_graph* g = both.c;
  const auto x = both.input("x", {4, 6});
  hs_reshape(g, x.c, HS_SHAPE(2, -1, 3));
  reshape(x.cpp, {2, -1, 3});
  hs_permute(g, x.c, HS_SHAPE(1, 0));
  permute(x.cpp, {1, 0});
  hs_transpose(g, x.c, -2, -1);
  transpose(x.cpp);
  std::array<hs_tensor, 2> parts{};
  const std::array<std::int64_t, 2> sizes{2, 4};
  REQUIRE(hs_split(g, x.c, sizes.data(), 2, -1, parts.data()) == HS_OK);
  const std::vector<Tensor> parts_cpp = split(x.cpp, {2, 4}, -1);
  std::swap(parts[0], parts[1]);
  hs_concat(g, parts.data(), 2, 1);
  concat({parts_cpp[1], parts_cpp[0]}, 1);
  hs_slice(g, x.c, HS_SHAPE(0, 1), HS_SHAPE(4, 6), HS_SHAPE(2, 1));
  slice(x.cpp, {0, 1}, {4, 6}, {2, 1});
  hs_slice(g, x.c, HS_SHAPE(0, 1), HS_SHAPE(4, 6), hs_shape{});
  slice(x.cpp, {0, 1}, {4, 6});
  hs_pad(g, x.c, HS_SHAPE(1, 0), HS_SHAPE(0, 2));
  pad(x.cpp, {1, 0}, {0, 2});
  hs_cast(g, x.c, HS_F16);
  cast(x.cpp, DType::f16);
  hs_sum(g, x.c, hs_shape{}, 0);
  sum(x.cpp);
  hs_mean(g, x.c, HS_SHAPE(-1), 1);
  mean(x.cpp, {-1}, true);
  hs_softmax(g, x.c, 0);
  softmax(x.cpp, 0);
  hs_log_softmax(g, x.c, -1);
  log_softmax(x.cpp);
  both.compare();
}

TEST_CASE("C: operators of sequences make the graph that C++ makes") {
  Both both;
  hs_graph* g = both.c;
  const auto x = both.input("x", {4, 6});
  const auto labels = both.input("labels", {4}, DType::u32);
  const auto q = both.input("q", {2, 4, 5, 8});
  const auto k = both.input("k", {2, 2, 7, 8});
  const auto lengths = both.input("lengths", {2}, DType::u32);
  hs_attention_options attention_options{};
  attention_options.size = sizeof attention_options;
  attention_options.scale = 0.25F;
  attention_options.key_lengths = lengths.c;
  attention_options.dropout = 0.5F;
  attention_options.fused = HS_OFF;
  hs_attention(g, q.c, k.c, k.c, &attention_options);
  attention(q.cpp, k.cpp, k.cpp, {.key_lengths = lengths.cpp, .scale = 0.25F, .dropout = 0.5F, .fused = false});
  hs_attention_options causal{};
  causal.size = sizeof causal;
  causal.causal = 1;
  causal.window = 3;
  hs_attention(g, q.c, q.c, q.c, &causal);
  attention(q.cpp, q.cpp, q.cpp, {.causal = true, .window = 3});
  hs_rotary_options rotary_options{};
  rotary_options.size = sizeof rotary_options;
  rotary_options.interleaved = 1;
  rotary_options.position_scale = 0.5F;
  hs_rotary(g, q.c, &rotary_options);
  rotary(q.cpp, {.pairs = RotaryPairs::interleaved, .position_scale = 0.5F});
  hs_embedding(g, x.c, labels.c);
  embedding(x.cpp, labels.cpp);
  const hs_tensor cache = hs_cache(g, "cache", HS_SHAPE(2, 2, 7, 8));
  REQUIRE(hs_update(g, cache, hs_store_rows(g, cache, k.c, lengths.c)) == HS_OK);
  const Tensor cache_cpp = both.cpp.root().cache("cache", {2, 2, 7, 8});
  update(cache_cpp, store_rows(cache_cpp, k.cpp, lengths.cpp));
  both.compare();
}

TEST_CASE("C: losses and the rest make the graph that C++ makes") {
  Both both;
  hs_graph* g = both.c;
  const auto x = both.input("x", {4, 6});
  const auto y = both.input("y", {4, 6});
  const auto labels = both.input("labels", {4}, DType::u32);
  hs_cross_entropy(g, x.c, labels.c, 0.1F, 3);
  cross_entropy(x.cpp, labels.cpp, 0.1F, 3);
  hs_huber_loss(g, x.c, y.c, 2);
  huber_loss(x.cpp, y.cpp, 2);
  hs_accuracy(g, x.c, labels.c, 3);
  accuracy(x.cpp, labels.cpp, 3);
  hs_gelu_tanh(g, x.c);
  gelu(x.cpp, Gelu::tanh);
  hs_geglu_tanh(g, x.c, y.c);
  geglu(x.cpp, y.cpp, Gelu::tanh);
  hs_pow_constant(g, x.c, 3);
  pow(x.cpp, 3);
  hs_leaky_relu(g, x.c, 0.3F);
  leaky_relu(x.cpp, 0.3F);
  hs_scale(g, x.c, 3);
  scale(x.cpp, 3);
  hs_offset(g, x.c, 3);
  offset(x.cpp, 3);
  hs_dropout(g, x.c, 0.5F);
  dropout(x.cpp, 0.5F);
  hs_flatten(g, x.c);
  flatten(x.cpp);
  hs_where(g, x.c, y.c, x.c);
  where(x.cpp, y.cpp, x.cpp);
  both.compare();
}

TEST_CASE("C: elementwise operators make the graph that C++ makes") {
  Both both;
  hs_graph* g = both.c;
  const auto x = both.input("x", {4, 6});
  const auto y = both.input("y", {6});
  const auto z = both.input("z", {4, 6});
#define ONE(name) (hs_##name(g, x.c), name(x.cpp))
#define TWO(name, other) (hs_##name(g, x.c, other.c), name(x.cpp, other.cpp))
  ONE(relu), ONE(relu6), ONE(sigmoid), ONE(tanh), ONE(silu), ONE(hardswish), ONE(gelu), ONE(exp), ONE(log), ONE(sqrt);
  ONE(sin), ONE(cos), ONE(abs);
  TWO(swiglu, z), TWO(geglu, z), TWO(add, y), TWO(sub, y), TWO(mul, y), TWO(div, y), TWO(pow, y), TWO(maximum, y);
  TWO(minimum, y), TWO(greater, y), TWO(greater_equal, y), TWO(less, y), TWO(less_equal, y), TWO(equal, y);
  TWO(not_equal, y), TWO(mse_loss, z), TWO(l1_loss, z), TWO(binary_cross_entropy, z);
#undef ONE
#undef TWO
  both.compare();
}

TEST_CASE("the names of all networks for small images make these, and no larger ones") {
  for (std::int64_t depth = 8; depth <= 56; depth += 6) {
    Graph by_name;
    Graph small;
    models::image_model(by_name.root(), by_name.input("images", {2, 32, 32, 3}), models::resnet_cifar_name(depth), 10);
    models::resnet_cifar(small.root(), small.input("images", {2, 32, 32, 3}), depth, 10);
    CHECK(to_string(by_name) == to_string(small));
  }
}

TEST_CASE("C: models make the graph that C++ makes") {
  Both both;
  hs_graph* g = both.c;
  const auto images = both.input("images", {2, 32, 32, 3});
  const auto tokens = both.input("tokens", {2, 16}, DType::u32);
  const auto lengths = both.input("lengths", {2}, DType::u32);
  const std::array<std::int64_t, 2> widths{20, 10};
  hs_image_model(g, "net", "resnet8", images.c, 10);
  models::image_model(both.cpp.root() / "net", images.cpp, "resnet8", 10);
  hs_image_model(g, nullptr, "lenet5", images.c, 10);
  models::image_model(both.cpp.root(), images.cpp, "lenet5", 10);
  hs_mlp(g, "a/b", images.c, widths.data(), 2, 5);
  models::mlp(both.cpp.root() / "a" / "b", images.cpp, widths, 5);
  hs_transformer_options options{};
  options.size = sizeof options;
  options.layers = 1;
  options.heads = 2;
  options.width = 8;
  options.vocabulary = 30;
  options.dropout = HS_ZERO;
  hs_gpt(g, "gpt", tokens.c, &options);
  models::gpt(both.cpp.root() / "gpt", tokens.cpp,
              {.layers = 1, .heads = 2, .width = 8, .vocabulary = 30, .dropout = 0});
  hs_bert_classifier(g, "tweets", tokens.c, lengths.c, 0, 3, &options);
  models::bert_classifier(both.cpp.root() / "tweets", {.tokens = tokens.cpp, .lengths = lengths.cpp}, 3,
                          {.layers = 1, .heads = 2, .width = 8, .hidden = 32, .vocabulary = 30, .dropout = 0});
  both.compare();
  CHECK(hs_graph_parameter_count(g) == both.cpp.parameter_count());
}

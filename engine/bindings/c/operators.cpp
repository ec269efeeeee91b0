#include <halfstep/encodings.h>
#include <halfstep/ops.h>

#include "c/handles.h"

using namespace halfstep;
using namespace halfstep::c;

namespace {

Pair pair_or(const int64_t (&given)[2], std::int64_t otherwise) {
  return {number_or(given[0], otherwise), number_or(given[1], otherwise)};
}

Conv2dOptions conv2d_options(const hs_conv2d_options& read) {
  Conv2dOptions options;
  options.stride = pair_or(read.stride, 1);
  options.padding = pair_or(read.padding, 0);
  options.dilation = pair_or(read.dilation, 1);
  options.groups = number_or<std::int64_t>(read.groups, 1);
  return options;
}

Pool2dOptions pool2d_options(const char* what, const hs_pool2d_options* given) {
  const hs_pool2d_options read = c::read(given, what);
  Pool2dOptions options;
  options.kernel = pair_or(read.kernel, 2);
  options.stride = Pair{number_or(read.stride[0], options.kernel[0]), number_or(read.stride[1], options.kernel[1])};
  options.padding = pair_or(read.padding, 0);
  options.count_padding = chosen(read.count_padding, true);
  return options;
}

/// A function of the C interface on a tensor of any graph. It finds the tensor in a graph of handles that has nothing
/// else.
std::function<Tensor(Tensor)> function_of(hs_tensor (*function)(hs_graph*, hs_tensor)) {
  return [function](Tensor x) {
    hs_graph handles;
    handles.tensors.push_back(x);
    const hs_tensor result = function(&handles, 1);
    return tensor_of(handles, result);
  };
}

FusedMlpOptions fused_mlp_options(const hs_fused_mlp_options* given) {
  const hs_fused_mlp_options read = c::read(given, "fused_mlp");
  FusedMlpOptions options;
  if (read.activation != nullptr) options.activation = function_of(read.activation);
  if (read.output_activation != nullptr) options.output_activation = function_of(read.output_activation);
  return options;
}

RotaryOptions rotary_options(const hs_rotary_options* given) {
  const hs_rotary_options read = c::read(given, "rotary");
  RotaryOptions options;
  options.pairs = read.interleaved != 0 ? RotaryPairs::interleaved : RotaryPairs::halves;
  options.base = number_or(read.base, options.base);
  options.position_scale = number_or(read.position_scale, options.position_scale);
  options.base_scale = number_or(read.base_scale, options.base_scale);
  options.offset = read.offset;
  options.axis = number_or(read.axis, options.axis);
  return options;
}

AttentionOptions attention_options(const hs_graph& graph, const hs_attention_options* given) {
  const hs_attention_options read = c::read(given, "attention");
  AttentionOptions options;
  options.causal = read.causal != 0;
  options.window = read.window;
  options.key_lengths = optional_tensor_of(graph, read.key_lengths);
  options.segments = optional_tensor_of(graph, read.segments);
  options.mask = optional_tensor_of(graph, read.mask);
  if (read.scale != 0) options.scale = number_or(read.scale, 1.0F);
  options.dropout = read.dropout;
  options.fused = chosen(read.fused, true);
  return options;
}

HashGridOptions hash_grid_options(const hs_hash_grid_options* given) {
  const hs_hash_grid_options read = c::read(given, "hash_grid");
  HashGridOptions options;
  options.levels = number_or(read.levels, options.levels);
  options.features = number_or(read.features, options.features);
  options.log2_hashmap_size = number_or(read.log2_hashmap_size, options.log2_hashmap_size);
  options.base_resolution = number_or(read.base_resolution, options.base_resolution);
  options.per_level_scale = number_or(read.per_level_scale, options.per_level_scale);
  return options;
}

std::vector<Tensor> tensors_of(const hs_graph& graph, const hs_tensor* numbers, std::size_t count) {
  std::vector<Tensor> tensors;
  for (const hs_tensor number : list(numbers, count, "tensors")) tensors.push_back(tensor_of(graph, number));
  return tensors;
}

}  // namespace

// hs_NAME(graph, tensors..., numbers...) as NAME(tensors..., numbers...).
#define HS_OF_ONE(name)                                                                      \
  hs_tensor hs_##name(hs_graph* graph, hs_tensor x) {                                        \
    return added(graph, [&](const hs_graph& g) { return halfstep::name(tensor_of(g, x)); }); \
  }
#define HS_OF_TWO(name)                                                                                       \
  hs_tensor hs_##name(hs_graph* graph, hs_tensor a, hs_tensor b) {                                            \
    return added(graph, [&](const hs_graph& g) { return halfstep::name(tensor_of(g, a), tensor_of(g, b)); }); \
  }
#define HS_OF_ONE_AND(name, type)                                                                    \
  hs_tensor hs_##name(hs_graph* graph, hs_tensor x, type number) {                                   \
    return added(graph, [&](const hs_graph& g) { return halfstep::name(tensor_of(g, x), number); }); \
  }

HS_OF_ONE(relu)
HS_OF_ONE(relu6)
HS_OF_ONE(sigmoid)
HS_OF_ONE(tanh)
HS_OF_ONE(silu)
HS_OF_ONE(hardswish)
HS_OF_ONE(gelu)
HS_OF_ONE(global_average_pool)
HS_OF_ONE(flatten)
HS_OF_ONE(exp)
HS_OF_ONE(log)
HS_OF_ONE(sqrt)
HS_OF_ONE(sin)
HS_OF_ONE(cos)
HS_OF_ONE(abs)
HS_OF_TWO(bias)
HS_OF_TWO(swiglu)
HS_OF_TWO(geglu)
HS_OF_TWO(add)
HS_OF_TWO(sub)
HS_OF_TWO(mul)
HS_OF_TWO(div)
HS_OF_TWO(pow)
HS_OF_TWO(maximum)
HS_OF_TWO(minimum)
HS_OF_TWO(greater)
HS_OF_TWO(greater_equal)
HS_OF_TWO(less)
HS_OF_TWO(less_equal)
HS_OF_TWO(equal)
HS_OF_TWO(not_equal)
HS_OF_TWO(embedding)
HS_OF_TWO(mse_loss)
HS_OF_TWO(l1_loss)
HS_OF_TWO(binary_cross_entropy)
HS_OF_ONE_AND(leaky_relu, float)
HS_OF_ONE_AND(scale, float)
HS_OF_ONE_AND(offset, float)
HS_OF_ONE_AND(dropout, float)
HS_OF_ONE_AND(softmax, int64_t)
HS_OF_ONE_AND(log_softmax, int64_t)
HS_OF_ONE_AND(frequency_encoding, int64_t)
HS_OF_ONE_AND(one_blob_encoding, int64_t)
HS_OF_ONE_AND(spherical_harmonics, int64_t)

hs_tensor hs_gelu_tanh(hs_graph* graph, hs_tensor x) {
  return added(graph, [&](const hs_graph& g) { return gelu(tensor_of(g, x), Gelu::tanh); });
}

hs_tensor hs_geglu_tanh(hs_graph* graph, hs_tensor gate, hs_tensor x) {
  return added(graph, [&](const hs_graph& g) { return geglu(tensor_of(g, gate), tensor_of(g, x), Gelu::tanh); });
}

hs_tensor hs_pow_constant(hs_graph* graph, hs_tensor x, float exponent) {
  return added(graph, [&](const hs_graph& g) { return pow(tensor_of(g, x), exponent); });
}

hs_tensor hs_matmul(hs_graph* graph, hs_tensor a, hs_tensor b, int transpose_a, int transpose_b) {
  return added(graph, [&](const hs_graph& g) {
    return matmul(tensor_of(g, a), tensor_of(g, b), {transpose_a != 0, transpose_b != 0});
  });
}

hs_tensor hs_linear(hs_graph* graph, hs_tensor x, hs_tensor weight, hs_tensor bias) {
  return added(graph, [&](const hs_graph& g) {
    return linear(tensor_of(g, x), tensor_of(g, weight), optional_tensor_of(g, bias));
  });
}

hs_tensor hs_fused_mlp(hs_graph* graph, hs_tensor x, const hs_tensor* weights, const hs_tensor* biases, size_t count,
                       const hs_fused_mlp_options* options) {
  return added(graph, [&](const hs_graph& g) {
    std::vector<DenseLayer> layers;
    for (const Tensor& weight : tensors_of(g, weights, count)) {
      const std::size_t i = layers.size();
      layers.push_back({weight, biases == nullptr ? std::nullopt : optional_tensor_of(g, biases[i])});
    }
    return fused_mlp(tensor_of(g, x), layers, fused_mlp_options(options));
  });
}

hs_tensor hs_conv2d(hs_graph* graph, hs_tensor images, hs_tensor weight, hs_tensor bias,
                    const hs_conv2d_options* options) {
  return added(graph, [&](const hs_graph& g) {
    const hs_conv2d_options read = c::read(options, "conv2d");
    if (read.output_padding[0] != 0 || read.output_padding[1] != 0) {
      fail("conv2d", "expected no output_padding, which is of hs_conv2d_transpose, got some");
    }
    return conv2d(tensor_of(g, images), tensor_of(g, weight), conv2d_options(read), optional_tensor_of(g, bias));
  });
}

hs_tensor hs_conv2d_transpose(hs_graph* graph, hs_tensor images, hs_tensor weight, const hs_conv2d_options* options) {
  return added(graph, [&](const hs_graph& g) {
    const hs_conv2d_options read = c::read(options, "conv2d_transpose");
    return conv2d_transpose(tensor_of(g, images), tensor_of(g, weight), conv2d_options(read),
                            pair_or(read.output_padding, 0));
  });
}

hs_tensor hs_batch_norm(hs_graph* graph, hs_tensor x, hs_tensor weight, hs_tensor bias, hs_tensor mean,
                        hs_tensor variance, float epsilon, float momentum) {
  return added(graph, [&](const hs_graph& g) {
    const BatchNormOptions defaults;
    return batch_norm(tensor_of(g, x), tensor_of(g, weight), tensor_of(g, bias),
                      {tensor_of(g, mean), tensor_of(g, variance)},
                      {number_or(epsilon, defaults.epsilon), number_or(momentum, defaults.momentum)});
  });
}

hs_tensor hs_group_norm(hs_graph* graph, hs_tensor x, int64_t groups, hs_tensor weight, hs_tensor bias, float epsilon) {
  return added(graph, [&](const hs_graph& g) {
    return group_norm(tensor_of(g, x), groups, tensor_of(g, weight), tensor_of(g, bias), number_or(epsilon, 1e-5F));
  });
}

hs_tensor hs_instance_norm(hs_graph* graph, hs_tensor x, hs_tensor weight, hs_tensor bias, float epsilon) {
  return added(graph, [&](const hs_graph& g) {
    return instance_norm(tensor_of(g, x), tensor_of(g, weight), tensor_of(g, bias), number_or(epsilon, 1e-5F));
  });
}

hs_tensor hs_layer_norm(hs_graph* graph, hs_tensor x, hs_tensor weight, hs_tensor bias, float epsilon) {
  return added(graph, [&](const hs_graph& g) {
    return layer_norm(tensor_of(g, x), optional_tensor_of(g, weight), optional_tensor_of(g, bias),
                      number_or(epsilon, 1e-5F));
  });
}

hs_tensor hs_rms_norm(hs_graph* graph, hs_tensor x, hs_tensor weight, float epsilon) {
  return added(graph, [&](const hs_graph& g) {
    return rms_norm(tensor_of(g, x), optional_tensor_of(g, weight), number_or(epsilon, 1e-6F));
  });
}

hs_tensor hs_max_pool2d(hs_graph* graph, hs_tensor images, const hs_pool2d_options* options) {
  return added(graph, [&](const hs_graph& g) {
    return max_pool2d(tensor_of(g, images), pool2d_options("max_pool2d", options));
  });
}

hs_tensor hs_average_pool2d(hs_graph* graph, hs_tensor images, const hs_pool2d_options* options) {
  return added(graph, [&](const hs_graph& g) {
    return average_pool2d(tensor_of(g, images), pool2d_options("average_pool2d", options));
  });
}

hs_tensor hs_adaptive_average_pool2d(hs_graph* graph, hs_tensor images, int64_t height, int64_t width) {
  return added(graph, [&](const hs_graph& g) {
    return adaptive_average_pool2d(tensor_of(g, images), {height, width});
  });
}

hs_tensor hs_adaptive_max_pool2d(hs_graph* graph, hs_tensor images, int64_t height, int64_t width) {
  return added(graph, [&](const hs_graph& g) { return adaptive_max_pool2d(tensor_of(g, images), {height, width}); });
}

hs_tensor hs_reshape(hs_graph* graph, hs_tensor x, hs_shape shape) {
  return added(graph, [&](const hs_graph& g) { return reshape(tensor_of(g, x), shape_of(shape)); });
}

hs_tensor hs_permute(hs_graph* graph, hs_tensor x, hs_shape axes) {
  return added(graph, [&](const hs_graph& g) { return permute(tensor_of(g, x), shape_of(axes)); });
}

hs_tensor hs_transpose(hs_graph* graph, hs_tensor x, int64_t a, int64_t b) {
  return added(graph, [&](const hs_graph& g) { return transpose(tensor_of(g, x), a, b); });
}

hs_status hs_split(hs_graph* graph, hs_tensor x, const int64_t* sizes, size_t count, int64_t axis, hs_tensor* parts) {
  if (parts != nullptr) std::fill_n(parts, count, 0);
  const hs_status status = guarded([&] {
    const std::span<const int64_t> given_sizes = list(sizes, count, "sizes");
    const std::span<hs_tensor> room = list(parts, count, "room for the parts");
    const std::vector<Tensor> made =
        split(tensor_of(given(graph, "a graph"), x), {given_sizes.begin(), given_sizes.end()}, axis);
    graph->tensors.reserve(graph->tensors.size() + made.size());
    for (std::size_t i = 0; i < made.size(); i++) {
      graph->tensors.push_back(made[i]);
      room[i] = static_cast<hs_tensor>(graph->tensors.size());
    }
  });
  if (status != HS_OK && graph != nullptr && graph->failure.status == HS_OK) graph->failure = last_failure();
  return status;
}

hs_tensor hs_slice(hs_graph* graph, hs_tensor x, hs_shape begin, hs_shape end, hs_shape step) {
  return added(
      graph, [&](const hs_graph& g) { return slice(tensor_of(g, x), shape_of(begin), shape_of(end), shape_of(step)); });
}

hs_tensor hs_pad(hs_graph* graph, hs_tensor x, hs_shape before, hs_shape after) {
  return added(graph, [&](const hs_graph& g) { return pad(tensor_of(g, x), shape_of(before), shape_of(after)); });
}

hs_tensor hs_concat(hs_graph* graph, const hs_tensor* parts, size_t count, int64_t axis) {
  return added(graph, [&](const hs_graph& g) { return concat(tensors_of(g, parts, count), axis); });
}

hs_tensor hs_store_rows(hs_graph* graph, hs_tensor x, hs_tensor rows, hs_tensor first) {
  return added(graph,
               [&](const hs_graph& g) { return store_rows(tensor_of(g, x), tensor_of(g, rows), tensor_of(g, first)); });
}

hs_tensor hs_cast(hs_graph* graph, hs_tensor x, hs_dtype dtype) {
  return added(graph, [&](const hs_graph& g) { return cast(tensor_of(g, x), dtype_of(dtype)); });
}

hs_tensor hs_where(hs_graph* graph, hs_tensor condition, hs_tensor a, hs_tensor b) {
  return added(graph,
               [&](const hs_graph& g) { return where(tensor_of(g, condition), tensor_of(g, a), tensor_of(g, b)); });
}

hs_tensor hs_sum(hs_graph* graph, hs_tensor x, hs_shape axes, int keep) {
  return added(graph, [&](const hs_graph& g) { return sum(tensor_of(g, x), shape_of(axes), keep != 0); });
}

hs_tensor hs_mean(hs_graph* graph, hs_tensor x, hs_shape axes, int keep) {
  return added(graph, [&](const hs_graph& g) { return mean(tensor_of(g, x), shape_of(axes), keep != 0); });
}

hs_tensor hs_rotary(hs_graph* graph, hs_tensor x, const hs_rotary_options* options) {
  return added(graph, [&](const hs_graph& g) { return rotary(tensor_of(g, x), rotary_options(options)); });
}

hs_tensor hs_attention(hs_graph* graph, hs_tensor q, hs_tensor k, hs_tensor v, const hs_attention_options* options) {
  return added(graph, [&](const hs_graph& g) {
    return attention(tensor_of(g, q), tensor_of(g, k), tensor_of(g, v), attention_options(g, options));
  });
}

int64_t hs_hash_grid_size(int64_t dimensions, const hs_hash_grid_options* options) {
  std::int64_t size = 0;
  guarded([&] { size = hash_grid_size(dimensions, hash_grid_options(options)); });
  return size;
}

hs_tensor hs_hash_grid(hs_graph* graph, hs_tensor positions, hs_tensor table, const hs_hash_grid_options* options) {
  return added(graph, [&](const hs_graph& g) {
    return hash_grid(tensor_of(g, positions), tensor_of(g, table), hash_grid_options(options));
  });
}

hs_tensor hs_accuracy(hs_graph* graph, hs_tensor logits, hs_tensor labels, uint32_t ignore) {
  return added(graph, [&](const hs_graph& g) { return accuracy(tensor_of(g, logits), tensor_of(g, labels), ignore); });
}

hs_tensor hs_cross_entropy(hs_graph* graph, hs_tensor logits, hs_tensor labels, float label_smoothing,
                           uint32_t ignore) {
  return added(graph, [&](const hs_graph& g) {
    return cross_entropy(tensor_of(g, logits), tensor_of(g, labels), label_smoothing, ignore);
  });
}

hs_tensor hs_huber_loss(hs_graph* graph, hs_tensor prediction, hs_tensor target, float delta) {
  return added(graph,
               [&](const hs_graph& g) { return huber_loss(tensor_of(g, prediction), tensor_of(g, target), delta); });
}

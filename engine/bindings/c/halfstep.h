/// Halfstep's C interface: neural networks in half and mixed precision, trained on Vulkan devices. C11, C++17 or later.
///
/// A complete program, which fits y = 2 x - 1:
///
///     #include <halfstep.h>
///     #include <stdio.h>
///
///     int main(void) {
///       const float xs[] = {-1, 0, 1, 2}, ys[] = {-3, -1, 1, 3};
///       hs_graph *graph = NULL;
///       hs_device *device = NULL;
///       hs_trainer *trainer = NULL;
///       hs_graph_create(&graph);
///       hs_tensor x = hs_input(graph, "x", HS_F32, HS_SHAPE(4, 1));
///       hs_tensor y = hs_input(graph, "y", HS_F32, HS_SHAPE(4, 1));
///       hs_tensor weight = hs_parameter(graph, "line/weight", HS_SHAPE(1, 1), hs_constant(0));
///       hs_tensor bias = hs_parameter(graph, "line/bias", HS_SHAPE(1), hs_constant(0));
///       hs_trainer_options options = {.size = sizeof options};
///       options.loss = hs_mse_loss(graph, hs_linear(graph, x, weight, bias), y);
///       options.optimizer = &(hs_optimizer){.size = sizeof(hs_optimizer), .kind = HS_SGD, .rate = 0.1f};
///       hs_values inputs[] = {{.name = "x", .f32 = xs, .count = 4}, {.name = "y", .f32 = ys, .count = 4}};
///       hs_status status = hs_device_open(NULL, NULL, &device);
///       if (!status) status = hs_trainer_create(device, graph, &options, &trainer);
///       for (int i = 0; i < 300 && !status; i++) status = hs_trainer_step(trainer, inputs, 2);
///       float slope = 0;
///       if (!status) status = hs_trainer_parameter(trainer, "line/weight", HS_CURRENT, &slope, 1);
///       if (status) fprintf(stderr, "%s\n", hs_error_text());
///       else printf("slope %.3f\n", slope);
///       hs_trainer_free(trainer);
///       hs_graph_free(graph);
///       hs_device_free(device);
///       return status != HS_OK;
///     }
///
/// The rules of all functions:
/// - Those that can fail return a status; hs_error_text() then has the reason. A call that failed has changed nothing
///   unless it says so, and set what it was to create to NULL. Texts are UTF-8.
/// - What a function creates is freed by the function of that name with _free, in any order: what still needs a thing
///   keeps it. NULL may be freed. No memory is allocated on one side and freed on the other.
/// - Structs of options begin with their size, so that they can grow: set it to sizeof, and the rest to zero but for
///   what is wanted. A member that is 0 or NULL has its default, which is named where it is not zero. For a float with
///   such a default, HS_ZERO stands for the number 0 itself. NULL in the place of a struct stands for defaults alone. An
///   option that the library does not know is refused, so `reserved` must be 0. Structs without a size never change.
/// - Numbers of tensors are row-major, without padding. Images are {batch, height, width, channels}.
/// - A device may be used by several threads at once; everything else by one at a time. Callbacks may come from other
///   threads where it is said; they must not throw, and must not call functions on what they are called by.
/// - The library opens nothing and changes nothing in the process before it is called: no signals, locale or terminal.
#ifndef HALFSTEP_C_H
#define HALFSTEP_C_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#if defined(HS_BUILDING)
#define HS_API __declspec(dllexport)
#else
#define HS_API __declspec(dllimport)
#endif
#elif defined(__GNUC__)
#define HS_API __attribute__((visibility("default")))
#else
#define HS_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

// ---------------------------------------------------------------------------------------------------- What can fail

typedef enum hs_status {
  HS_OK = 0,
  HS_BAD_ARGUMENT,   ///< a shape, an option, a name, a null pointer
  HS_BAD_FILE,       ///< missing, damaged, or of another format or model
  HS_UNSUPPORTED,    ///< the device or driver cannot do it
  HS_OUT_OF_MEMORY,  ///< on the device or the host
  HS_DEVICE_LOST,    ///< all data on it is gone; see hs_trainer_reopen
  HS_NUMERICS,       ///< training stopped at a number that is not finite
  HS_SYSTEM,         ///< the operating system: a full disk, no Vulkan driver
  HS_INTERNAL,       ///< a fault of the library
  HS_CANCELLED       ///< as hs_trainer_options::cancel asked
} hs_status;

/// Why the last call of this thread that failed did: "[where] expected X, got Y. Hint: Z". Valid until the thread's
/// next failure. Never NULL.
HS_API const char* hs_error_text(void);
/// The version of the library, "0.1.0".
HS_API const char* hs_version(void);

/// The number 0, where a member's 0 stands for its default.
#define HS_ZERO (-1.0f)
/// On, off, or the default.
typedef enum hs_choice { HS_DEFAULT = 0, HS_ON, HS_OFF } hs_choice;

// ---------------------------------------------------------------------------------------------------------- Devices

typedef struct hs_device hs_device;

typedef struct hs_device_info {
  size_t size;
  uint32_t index;
  uint32_t usable;        ///< 1 or 0
  uint64_t memory_bytes;  ///< the device's own memory
  char name[256];
  char type[16];  ///< "discrete", "integrated", "virtual", "cpu" or "other"
  char driver[256];
  char api_version[32];
  char tier[64];             ///< how 16-bit numbers are stored
  char reason[256];          ///< why it is not usable; empty if it is
  char queue_priority[128];  ///< where a low one was asked for: "low", or "default: " and why
} hs_device_info;

typedef enum hs_tuning { HS_TUNING_DEFAULT = 0, HS_TUNING_OFF, HS_TUNING_ON, HS_TUNING_FORCE } hs_tuning;

/// A member that has its default follows the environment variable beside it.
typedef struct hs_device_settings {
  size_t size;
  const char* tier;            ///< HALFSTEP_TIER: "packed" or "native" 16-bit storage
  const char* gemm;            ///< HALFSTEP_GEMM: a prefix that GEMM kernels' names must have
  const char* limits;          ///< HALFSTEP_LIMITS: lower limits than the device's own, for tests
  const char* cache_folder;    ///< HALFSTEP_CACHE, created if needed: "", or "off" of the variable: nothing stored
  double submit_milliseconds;  ///< HALFSTEP_SUBMIT_MS: that one submit may take; 0: 100
  hs_choice fusion;            ///< HALFSTEP_FUSION, default on
  hs_tuning tuning;            ///< HALFSTEP_TUNE, default on
  hs_choice validation;  ///< HALFSTEP_VALIDATION, default off: the Khronos validation layer; not for an adopted one
  hs_choice may_fork;    ///< default off: the process's first call may fork it, to try calls that have crashed drivers;
                         ///< memory that was filled before and is freed later stays in use
  hs_choice
      low_priority;  ///< HALFSTEP_LOW_PRIORITY, default off: other programs are served first; not for an adopted one
  uint32_t reserved;
} hs_device_settings;

/// An application's own Vulkan objects, of an instance for Vulkan 1.1 or later. All must outlive the device and what
/// was made with it.
typedef struct hs_adopted_device {
  size_t size;
  void* instance;         ///< VkInstance
  void* physical_device;  ///< VkPhysicalDevice
  void* device;           ///< VkDevice
  void* queue;            ///< VkQueue, from a queue family with compute
  uint32_t queue_family;
  // What the application enabled (1) when it created the device. What is not set here is not used. Matrix units and
  // mixed dot products are not used on an adopted device: there is no way yet to say that they are enabled.
  uint32_t storage_buffer_16bit_access;
  uint32_t shader_float16;
  uint32_t shader_float_controls;          ///< VK_KHR_shader_float_controls; without it f16 is converted by integers
  uint32_t subgroup_size_control;          ///< VK_EXT_subgroup_size_control with both of its features
  uint32_t buffer_device_address;          ///< VK_KHR_buffer_device_address, its feature and shaderInt64
  void (*get_instance_proc_addr)(void);    ///< PFN_vkGetInstanceProcAddr; NULL: the system's Vulkan loader
  void (*lock_queue)(void* queue_user);    ///< called before and after every submit, from any thread, by applications
  void (*unlock_queue)(void* queue_user);  ///< that submit to the queue from other threads; both or neither
  void* queue_user;
  const void* allocator;        ///< const VkAllocationCallbacks*, for every object that is created; NULL: the driver's
  uint32_t timeline_semaphore;  ///< VK_KHR_timeline_semaphore and its feature
  uint32_t debug_utils;         ///< VK_EXT_debug_utils of the instance: objects get names, and dispatches labels
} hs_adopted_device;

/// An application's semaphore.
typedef struct hs_queue_semaphore {
  uint64_t semaphore;  ///< VkSemaphore
  uint64_t value;      ///< of a timeline semaphore
  uint64_t timeline;   ///< 1: a timeline semaphore; 0: a binary one
} hs_queue_semaphore;

/// A range of an application's memory on an adopted device, as the tensor of that name, without padding, which programs
/// read and write in place: <halfstep/guest.h>, DeviceBuffer. It must stay while there is what uses it.
typedef struct hs_device_buffer {
  const char* name;      ///< of an input; NULL for an output
  uint64_t buffer;       ///< VkBuffer, for use as a storage buffer; or 0
  uint64_t memory;       ///< VkDeviceMemory, in its place; or 0
  uint64_t offset;       ///< in bytes, a multiple of 4; of memory, of what the device asks for (256 always is)
  uint64_t bytes;        ///< of the tensor, or more
  uint32_t memory_type;  ///< of `memory`
  uint32_t usage;        ///< VkBufferUsageFlags of `buffer`, to be checked; 0: not told
} hs_device_buffer;

/// The number of the machine's devices, usable or not.
HS_API hs_status hs_device_count(uint32_t* count);
HS_API hs_status hs_device_describe(uint32_t index, hs_device_info* info);
/// Opens a device by its index (one or two digits) or a part of its name; NULL: HALFSTEP_DEVICE, or else the best. May
/// take seconds.
HS_API hs_status hs_device_open(const char* selector, const hs_device_settings* settings, hs_device** device);
/// Uses an application's own device and queue; destroys and reconfigures nothing of it.
HS_API hs_status hs_device_adopt(const hs_adopted_device* handles, const hs_device_settings* settings,
                                 hs_device** device);
HS_API hs_status hs_device_get_info(const hs_device* device, hs_device_info* info);
/// All work that is submitted to an adopted queue after this waits, on the device, for these semaphores. Fails on a
/// device that is not an adopted one, even for none.
HS_API hs_status hs_device_wait_for(const hs_device* device, const hs_queue_semaphore* semaphores, size_t count);
/// Signals these once all work that was submitted to the queue before this has finished.
HS_API hs_status hs_device_signal(const hs_device* device, const hs_queue_semaphore* semaphores, size_t count);
HS_API void hs_device_free(hs_device* device);

// ----------------------------------------------------------------------------------------------------------- Graphs

/// A model: inputs, parameters and the operators between them. Building one does not use a device.
typedef struct hs_graph hs_graph;
/// A value of a graph. 0 is none: where a tensor is optional, and what is returned by what failed.
///
/// Functions that return a tensor never need to be checked one by one: the graph keeps its first failure, and what is
/// given the 0 of a failure fails silently. hs_graph_status says whether all went well; hs_trainer_create and
/// hs_predictor_create ask it.
typedef uint32_t hs_tensor;

typedef enum hs_dtype { HS_DTYPE_DEFAULT = 0, HS_F32, HS_F16, HS_BF16, HS_U32, HS_WIDEST } hs_dtype;

#define HS_MAX_RANK 8
/// Extents, or axes, or positions: the first `rank` of them. {0} is a scalar's.
typedef struct hs_shape {
  int64_t rank;
  int64_t extent[HS_MAX_RANK];
} hs_shape;
/// HS_SHAPE(64, 28, 28, 1)
#ifdef __cplusplus
#define HS_SHAPE(...) (hs_shape{HS_RANK_OF_(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1, 0), {__VA_ARGS__}})
#else
#define HS_SHAPE(...) ((hs_shape){HS_RANK_OF_(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1, 0), {__VA_ARGS__}})
#endif
#define HS_RANK_OF_(a, b, c, d, e, f, g, h, rank, ...) rank

/// How initial values are drawn, keyed on the seed, the parameter and the element. Refused with the parameter or state
/// that it is for unless the numbers are finite, a uniform range ends no lower than it begins and is no wider than the
/// largest float, and a standard deviation is 0 or more and leaves seven deviations from the mean finite.
typedef struct hs_initializer {
  uint32_t kind;  ///< 0: the constant a; 1: uniform from a to b; 2: normal with mean a and standard deviation b
  float a;
  float b;
} hs_initializer;
HS_API hs_initializer hs_constant(float value);
HS_API hs_initializer hs_uniform(float low, float high);
HS_API hs_initializer hs_normal(float mean, float stddev);  ///< in this order; C++'s normal() has stddev first
HS_API hs_initializer hs_he(int64_t fan_in);                       ///< He et al. 2015, before a ReLU
HS_API hs_initializer hs_glorot(int64_t fan_in, int64_t fan_out);  ///< Glorot and Bengio 2010

HS_API hs_status hs_graph_create(hs_graph** graph);
HS_API void hs_graph_free(hs_graph* graph);
/// The graph's first failure, or HS_OK. hs_error_text() then has its reason again.
HS_API hs_status hs_graph_status(const hs_graph* graph);
/// The number of trainable scalars.
HS_API int64_t hs_graph_parameter_count(const hs_graph* graph);
/// Writes all of the graph as text. Like every function with a buffer: writes at most `capacity` bytes, the zero at the
/// end included, and the bytes that it takes to `needed`; either pointer may be NULL. Fails if the capacity is too
/// small.
HS_API hs_status hs_graph_text(const hs_graph* graph, char* buffer, size_t capacity, size_t* needed);
HS_API hs_status hs_tensor_type(const hs_graph* graph, hs_tensor tensor, hs_dtype* dtype, hs_shape* shape);
HS_API hs_status hs_tensor_name(const hs_graph* graph, hs_tensor tensor, char* buffer, size_t capacity, size_t* needed);

/// Gets new values in every step; f32 or u32.
HS_API hs_tensor hs_input(hs_graph* graph, const char* name, hs_dtype dtype, hs_shape shape);
/// A trainable tensor. Its path names the scopes that it is in: "layer1/conv/weight".
HS_API hs_tensor hs_parameter(hs_graph* graph, const char* path, hs_shape shape, hs_initializer initializer);
/// Likewise; in files its axes are permuted to the order `stored`: HS_SHAPE(3, 2, 0, 1) for PyTorch's convolutions.
HS_API hs_tensor hs_parameter_stored(hs_graph* graph, const char* path, hs_shape shape, hs_initializer initializer,
                                     hs_shape stored);
/// An f32 tensor that is kept from step to step and saved, but not trained; hs_update defines its next value.
HS_API hs_tensor hs_state(hs_graph* graph, const char* path, hs_shape shape, hs_initializer initializer);
/// Zeros at first, kept by a predictor from one run to the next; hs_update defines its next value, by hs_store_rows.
HS_API hs_tensor hs_cache(hs_graph* graph, const char* path, hs_shape shape);
/// Assigns `next` to a state or cache. A failure becomes the graph's too: see hs_graph_status.
HS_API hs_status hs_update(hs_graph* graph, hs_tensor state, hs_tensor next);

// -------------------------------------------------------------------------------------------------------- Operators
// Types, formulas and sources are those of the functions of the same names in the C++ interface, <halfstep/ops.h>.

typedef struct hs_conv2d_options {
  size_t size;
  int64_t stride[2];          ///< {height, width}, here and below; 0: 1
  int64_t padding[2];         ///< zeros on each side
  int64_t dilation[2];        ///< 0: 1
  int64_t groups;             ///< 0: 1
  int64_t output_padding[2];  ///< of hs_conv2d_transpose
} hs_conv2d_options;

typedef struct hs_pool2d_options {
  size_t size;
  int64_t kernel[2];        ///< 0: 2
  int64_t stride[2];        ///< 0: the kernel's extent
  int64_t padding[2];       ///< at most half the kernel
  hs_choice count_padding;  ///< default on: whether padding counts in an average's divisor
  uint32_t reserved;
} hs_pool2d_options;

typedef struct hs_fused_mlp_options {
  size_t size;
  hs_tensor (*activation)(hs_graph* graph, hs_tensor x);         ///< after each layer but the last; NULL: hs_relu
  hs_tensor (*output_activation)(hs_graph* graph, hs_tensor x);  ///< after the last; NULL: none
} hs_fused_mlp_options;

typedef struct hs_rotary_options {
  size_t size;
  uint32_t interleaved;  ///< 1: pairs are neighbours; 0: elements i and i + c / 2
  float base;            ///< 0: 10000
  float position_scale;  ///< 0: 1
  float base_scale;      ///< 0: 1
  int64_t offset;        ///< the first position
  int64_t axis;          ///< along which positions count (negative: from the end); 0: -2
} hs_rotary_options;

typedef struct hs_attention_options {
  size_t size;
  uint32_t causal;        ///< 1: query i sees no key after i
  float scale;            ///< 0: 1 / sqrt(c)
  int64_t window;         ///< query i sees keys less than this away from i; 0: all
  hs_tensor key_lengths;  ///< u32 {n}; keys and values from there on are finite
  hs_tensor segments;     ///< u32 {n, keys}; fastest where numbers do not decrease along a row
  hs_tensor mask;         ///< added to the scores
  float dropout;
  hs_choice fused;  ///< default on: stores no scores
  uint32_t reserved;
} hs_attention_options;

typedef struct hs_hash_grid_options {
  size_t size;
  int64_t levels;             ///< 0: 16
  int64_t features;           ///< 0: 2
  int64_t log2_hashmap_size;  ///< 0: 19
  int64_t base_resolution;    ///< 0: 16
  double per_level_scale;     ///< 0: 1.5
} hs_hash_grid_options;

// Products.
/// a {..., m, k} times b {..., k, n}: {..., m, n}; transposed: a is {..., k, m}, b is {..., n, k}.
HS_API hs_tensor hs_matmul(hs_graph* graph, hs_tensor a, hs_tensor b, int transpose_a, int transpose_b);
/// x {..., in} times weight {in, out}, plus bias {out} or none.
HS_API hs_tensor hs_linear(hs_graph* graph, hs_tensor x, hs_tensor weight, hs_tensor bias);
/// x {..., in} through `count` layers, each of a weight {in, out} and, unless `biases` is NULL or has 0 there, a bias.
HS_API hs_tensor hs_fused_mlp(hs_graph* graph, hs_tensor x, const hs_tensor* weights, const hs_tensor* biases,
                              size_t count, const hs_fused_mlp_options* options);
/// Images {n, h, w, in} with weight {kh, kw, in / groups, out}, plus bias {out} or none.
HS_API hs_tensor hs_conv2d(hs_graph* graph, hs_tensor images, hs_tensor weight, hs_tensor bias,
                           const hs_conv2d_options* options);
/// Its transpose: weight {kh, kw, out / groups, in}.
HS_API hs_tensor hs_conv2d_transpose(hs_graph* graph, hs_tensor images, hs_tensor weight,
                                     const hs_conv2d_options* options);
/// x {..., c} plus b {c}.
HS_API hs_tensor hs_bias(hs_graph* graph, hs_tensor x, hs_tensor b);

// Activations.
HS_API hs_tensor hs_relu(hs_graph* graph, hs_tensor x);
HS_API hs_tensor hs_relu6(hs_graph* graph, hs_tensor x);
HS_API hs_tensor hs_leaky_relu(hs_graph* graph, hs_tensor x, float slope);
HS_API hs_tensor hs_sigmoid(hs_graph* graph, hs_tensor x);
HS_API hs_tensor hs_tanh(hs_graph* graph, hs_tensor x);
HS_API hs_tensor hs_silu(hs_graph* graph, hs_tensor x);
HS_API hs_tensor hs_hardswish(hs_graph* graph, hs_tensor x);
HS_API hs_tensor hs_gelu(hs_graph* graph, hs_tensor x);
HS_API hs_tensor hs_gelu_tanh(hs_graph* graph, hs_tensor x);  ///< approximated by tanh
HS_API hs_tensor hs_swiglu(hs_graph* graph, hs_tensor gate, hs_tensor x);
HS_API hs_tensor hs_geglu(hs_graph* graph, hs_tensor gate, hs_tensor x);
HS_API hs_tensor hs_geglu_tanh(hs_graph* graph, hs_tensor gate, hs_tensor x);

// Norms of x {n, ..., c}, with weight and bias {c}.
/// The running mean and variance {c} are states; epsilon 0: 1e-5, momentum 0: 0.1.
HS_API hs_tensor hs_batch_norm(hs_graph* graph, hs_tensor x, hs_tensor weight, hs_tensor bias, hs_tensor mean,
                               hs_tensor variance, float epsilon, float momentum);
/// Epsilon 0: 1e-5; of hs_rms_norm 1e-6.
HS_API hs_tensor hs_group_norm(hs_graph* graph, hs_tensor x, int64_t groups, hs_tensor weight, hs_tensor bias,
                               float epsilon);
HS_API hs_tensor hs_instance_norm(hs_graph* graph, hs_tensor x, hs_tensor weight, hs_tensor bias, float epsilon);
/// Weight and bias may be none here and below.
HS_API hs_tensor hs_layer_norm(hs_graph* graph, hs_tensor x, hs_tensor weight, hs_tensor bias, float epsilon);
HS_API hs_tensor hs_rms_norm(hs_graph* graph, hs_tensor x, hs_tensor weight, float epsilon);

// Pooling of images {n, h, w, c}.
HS_API hs_tensor hs_max_pool2d(hs_graph* graph, hs_tensor images, const hs_pool2d_options* options);
HS_API hs_tensor hs_average_pool2d(hs_graph* graph, hs_tensor images, const hs_pool2d_options* options);
HS_API hs_tensor hs_adaptive_average_pool2d(hs_graph* graph, hs_tensor images, int64_t height, int64_t width);
HS_API hs_tensor hs_adaptive_max_pool2d(hs_graph* graph, hs_tensor images, int64_t height, int64_t width);
HS_API hs_tensor hs_global_average_pool(hs_graph* graph, hs_tensor images);

// Shapes. Negative axes count from the end.
HS_API hs_tensor hs_reshape(hs_graph* graph, hs_tensor x, hs_shape shape);  ///< one extent may be -1
HS_API hs_tensor hs_flatten(hs_graph* graph, hs_tensor x);
HS_API hs_tensor hs_permute(hs_graph* graph, hs_tensor x, hs_shape axes);
HS_API hs_tensor hs_transpose(hs_graph* graph, hs_tensor x, int64_t a, int64_t b);
/// Consecutive parts along an axis, of `count` sizes; writes a tensor for each, or zeros. A failure becomes the graph's
/// too: see hs_graph_status.
HS_API hs_status hs_split(hs_graph* graph, hs_tensor x, const int64_t* sizes, size_t count, int64_t axis,
                          hs_tensor* parts);
/// From `begin` up to but not including `end`, with a stride of `step`; a scalar's shape is a stride of 1.
HS_API hs_tensor hs_slice(hs_graph* graph, hs_tensor x, hs_shape begin, hs_shape end, hs_shape step);
HS_API hs_tensor hs_pad(hs_graph* graph, hs_tensor x, hs_shape before, hs_shape after);
HS_API hs_tensor hs_concat(hs_graph* graph, const hs_tensor* parts, size_t count, int64_t axis);
HS_API hs_tensor hs_store_rows(hs_graph* graph, hs_tensor x, hs_tensor rows, hs_tensor first);
HS_API hs_tensor hs_cast(hs_graph* graph, hs_tensor x, hs_dtype dtype);

// Elementwise; of two or three tensors with NumPy broadcasting.
HS_API hs_tensor hs_add(hs_graph* graph, hs_tensor a, hs_tensor b);
HS_API hs_tensor hs_sub(hs_graph* graph, hs_tensor a, hs_tensor b);
HS_API hs_tensor hs_mul(hs_graph* graph, hs_tensor a, hs_tensor b);
HS_API hs_tensor hs_div(hs_graph* graph, hs_tensor a, hs_tensor b);
HS_API hs_tensor hs_pow(hs_graph* graph, hs_tensor a, hs_tensor b);
HS_API hs_tensor hs_maximum(hs_graph* graph, hs_tensor a, hs_tensor b);
HS_API hs_tensor hs_minimum(hs_graph* graph, hs_tensor a, hs_tensor b);
HS_API hs_tensor hs_greater(hs_graph* graph, hs_tensor a, hs_tensor b);
HS_API hs_tensor hs_greater_equal(hs_graph* graph, hs_tensor a, hs_tensor b);
HS_API hs_tensor hs_less(hs_graph* graph, hs_tensor a, hs_tensor b);
HS_API hs_tensor hs_less_equal(hs_graph* graph, hs_tensor a, hs_tensor b);
HS_API hs_tensor hs_equal(hs_graph* graph, hs_tensor a, hs_tensor b);
HS_API hs_tensor hs_not_equal(hs_graph* graph, hs_tensor a, hs_tensor b);
HS_API hs_tensor hs_where(hs_graph* graph, hs_tensor condition, hs_tensor a, hs_tensor b);
HS_API hs_tensor hs_scale(hs_graph* graph, hs_tensor x, float factor);
HS_API hs_tensor hs_offset(hs_graph* graph, hs_tensor x, float amount);
HS_API hs_tensor hs_pow_constant(hs_graph* graph, hs_tensor x, float exponent);
HS_API hs_tensor hs_exp(hs_graph* graph, hs_tensor x);
HS_API hs_tensor hs_log(hs_graph* graph, hs_tensor x);
HS_API hs_tensor hs_sqrt(hs_graph* graph, hs_tensor x);
HS_API hs_tensor hs_sin(hs_graph* graph, hs_tensor x);
HS_API hs_tensor hs_cos(hs_graph* graph, hs_tensor x);
HS_API hs_tensor hs_abs(hs_graph* graph, hs_tensor x);
HS_API hs_tensor hs_dropout(hs_graph* graph, hs_tensor x, float probability);

// Along axes; a scalar's shape stands for all.
HS_API hs_tensor hs_sum(hs_graph* graph, hs_tensor x, hs_shape axes, int keep);
HS_API hs_tensor hs_mean(hs_graph* graph, hs_tensor x, hs_shape axes, int keep);
HS_API hs_tensor hs_softmax(hs_graph* graph, hs_tensor x, int64_t axis);
HS_API hs_tensor hs_log_softmax(hs_graph* graph, hs_tensor x, int64_t axis);

// Sequences.
/// The rows of a table {rows, c} that u32 ids {...} name: {..., c}.
HS_API hs_tensor hs_embedding(hs_graph* graph, hs_tensor table, hs_tensor ids);
HS_API hs_tensor hs_rotary(hs_graph* graph, hs_tensor x, const hs_rotary_options* options);
/// Queries {n, h, queries, c}, keys {n, g, keys, c}, values {n, g, keys, d}: {n, h, queries, d}.
HS_API hs_tensor hs_attention(hs_graph* graph, hs_tensor q, hs_tensor k, hs_tensor v,
                              const hs_attention_options* options);

// Encodings of f32 coordinates {n, d}; <halfstep/encodings.h>.
/// The elements of the table of hs_hash_grid; 0 if the options are not valid.
HS_API int64_t hs_hash_grid_size(int64_t dimensions, const hs_hash_grid_options* options);
HS_API hs_tensor hs_hash_grid(hs_graph* graph, hs_tensor positions, hs_tensor table,
                              const hs_hash_grid_options* options);
HS_API hs_tensor hs_frequency_encoding(hs_graph* graph, hs_tensor coordinates, int64_t octaves);
HS_API hs_tensor hs_one_blob_encoding(hs_graph* graph, hs_tensor coordinates, int64_t bins);
HS_API hs_tensor hs_spherical_harmonics(hs_graph* graph, hs_tensor directions, int64_t degrees);

// Losses and metrics: f32 scalars.
/// A label that excludes a row from losses and metrics.
#define HS_IGNORED_LABEL 0xFFFFFFFFu
/// Logits {n, classes}, labels u32 {n}; rows with the label `ignore` do not count.
HS_API hs_tensor hs_cross_entropy(hs_graph* graph, hs_tensor logits, hs_tensor labels, float label_smoothing,
                                  uint32_t ignore);
HS_API hs_tensor hs_mse_loss(hs_graph* graph, hs_tensor prediction, hs_tensor target);
HS_API hs_tensor hs_l1_loss(hs_graph* graph, hs_tensor prediction, hs_tensor target);
HS_API hs_tensor hs_huber_loss(hs_graph* graph, hs_tensor prediction, hs_tensor target, float delta);
HS_API hs_tensor hs_binary_cross_entropy(hs_graph* graph, hs_tensor logits, hs_tensor targets);
/// Of logits and labels as hs_cross_entropy takes them.
HS_API hs_tensor hs_accuracy(hs_graph* graph, hs_tensor logits, hs_tensor labels, uint32_t ignore);

// ----------------------------------------------------------------------------------------------------------- Models
// Their parameters are in the scope `path`; "" or NULL is the outermost one.

/// The logits {n, classes} of a model by its name, on images {n, h, w, c}: lenet5, fashion_conv, fashion_cnn, resnet8,
/// resnet14, ... (6N + 2; that of 50 is resnet_cifar50), resnet18, resnet34, resnet50 or mobilenet_v2.
HS_API hs_tensor hs_image_model(hs_graph* graph, const char* path, const char* name, hs_tensor images, int64_t classes);
/// Dense layers of `count` widths, each with a ReLU, then one of `classes`.
HS_API hs_tensor hs_mlp(hs_graph* graph, const char* path, hs_tensor x, const int64_t* widths, size_t count,
                        int64_t classes);

typedef struct hs_transformer_options {
  size_t size;
  int64_t layers;       ///< 1 or more; 0: 12
  int64_t heads;        ///< 0: 12
  int64_t width;        ///< 0: 768
  int64_t hidden;       ///< of BERT's feed-forward layers; 0: four times the width
  int64_t positions;    ///< 0: GPT 1024, BERT 512
  int64_t vocabulary;   ///< 0: GPT 50257, BERT 30522
  int64_t token_types;  ///< of BERT; 0: 2
  float dropout;        ///< 0: 0.1; HS_ZERO: none
  uint32_t reserved;
} hs_transformer_options;
/// GPT-2: the logits {n, t, vocabulary} of the token after each of u32 tokens {n, t}.
HS_API hs_tensor hs_gpt(hs_graph* graph, const char* path, hs_tensor tokens, const hs_transformer_options* options);
/// BERT: the logits {n, classes} of u32 tokens {n, t}, of u32 lengths {n} or none and u32 types {n, t} or none.
HS_API hs_tensor hs_bert_classifier(hs_graph* graph, const char* path, hs_tensor tokens, hs_tensor lengths,
                                    hs_tensor types, int64_t classes, const hs_transformer_options* options);

// ------------------------------------------------------------------------------------------------------------- Data

typedef enum hs_element { HS_ELEMENT_U8 = 1, HS_ELEMENT_U16, HS_ELEMENT_U32, HS_ELEMENT_F32 } hs_element;
typedef enum hs_split_of_data { HS_TRAIN = 0, HS_TEST } hs_split_of_data;

/// One tensor of every sample.
typedef struct hs_field {
  const char* name;
  hs_element type;
  uint32_t bound;    ///< of integers: every value is below this; 0: not known
  hs_shape shape;    ///< of one sample
  const void* data;  ///< {count, shape...}, row-major; NULL in a source
  size_t bytes;
} hs_field;

/// Samples in host memory.
typedef struct hs_dataset hs_dataset;
/// Refers to the fields' data, which must stay, unchanged, as long as the set and every trainer with it.
HS_API hs_status hs_dataset_borrow(const char* name, const hs_field* fields, size_t count, hs_dataset** set);
/// Copies the fields' data.
HS_API hs_status hs_dataset_copy(const char* name, const hs_field* fields, size_t count, hs_dataset** set);
/// Folders laid out as MNIST's and CIFAR's are: fields "samples" of u8 {h, w, c} and "labels" of u32.
HS_API hs_status hs_dataset_idx(const char* folder, hs_split_of_data split, hs_dataset** set);
HS_API hs_status hs_dataset_cifar10(const char* folder, hs_split_of_data split, hs_dataset** set);
HS_API hs_status hs_dataset_cifar100(const char* folder, hs_split_of_data split, int coarse_labels, hs_dataset** set);
/// PNG and JPEG files in a folder with one subfolder per class, resized to {height, width, channels} on the device.
HS_API hs_status hs_dataset_images(const hs_device* device, const char* folder, int64_t height, int64_t width,
                                   int64_t channels, hs_dataset** set);
/// A file of u16 or u32 tokens, memory-mapped: fields "tokens" and "targets" of {length}.
HS_API hs_status hs_dataset_tokens(const char* file, hs_element type, int64_t length, uint32_t vocabulary,
                                   hs_dataset** set);
/// The first `limit` samples of a set, which share its memory.
HS_API hs_status hs_dataset_take(const hs_dataset* set, int64_t limit, hs_dataset** taken);
HS_API int64_t hs_dataset_count(const hs_dataset* set);
HS_API void hs_dataset_free(hs_dataset* set);

/// A batch that a source is to fill.
typedef struct hs_source_batch {
  int64_t number;           ///< counted from 0 over the whole run
  const uint32_t* indices;  ///< of a source with a count: the sample for each place; otherwise NULL
  size_t samples;           ///< places of the batch
  size_t fields;
  void* const* room;         ///< for each field, room for the batch's samples one after the other; all of it is used
  const size_t* room_bytes;  ///< likewise
} hs_source_batch;

/// Samples that the application makes as they are needed.
typedef struct hs_source {
  size_t size;
  const char* name;  ///< in errors
  int64_t count;     ///< samples of an epoch; 0: unbounded
  const hs_field* fields;
  size_t field_count;
  /// Fills a batch. Called on a thread of the trainer's, for one batch after the other, and may block. Anything but 0
  /// is a failure, which hs_trainer_step then reports.
  int (*fill)(void* user, const hs_source_batch* batch);
  void* user;
} hs_source;

/// How a field of a data set enters an input: bytes as (byte / 255 - mean) / stddev, f32 as (x - mean) / stddev,
/// integers as they are. One number each, or one for each channel.
typedef struct hs_feed {
  hs_tensor input;
  uint32_t numbers;   ///< of mean and stddev; 0: mean 0, stddev 1
  const char* field;  ///< NULL: the input's name
  const float* mean;
  const float* stddev;
} hs_feed;

/// Random changes of training images in the field "samples", on the device; off by default.
typedef struct hs_augmentation {
  size_t size;
  int64_t crop_padding;  ///< pixels of black on each side, before a crop
  int64_t cutout;        ///< side in pixels of a square that is filled with the mean
  float flip;            ///< probability of a horizontal mirror
  float brightness;
  float saturation;
  float hue;
  float contrast;
  uint32_t reserved;
} hs_augmentation;

// --------------------------------------------------------------------------------------------------------- Training

typedef enum hs_optimizer_kind { HS_SGD = 0, HS_ADAM, HS_ADAMW, HS_LION, HS_RMSPROP, HS_MUON } hs_optimizer_kind;

/// How weights are updated; <halfstep/optimizer.h> has the formulas and defaults. Members that a kind does not have are
/// refused.
typedef struct hs_optimizer {
  size_t size;
  hs_optimizer_kind kind;
  float rate;          ///< 0: SGD and RMSprop 0.01, Adam, AdamW and Muon 0.001, Lion 0.0001
  const float* rates;  ///< in place of `rate`: one for each applied step; after the last, the last
  size_t rate_count;
  float weight_decay;  ///< 0: AdamW and Muon 0.01, others none
  float momentum;      ///< of SGD and RMSprop 0: none; of Muon 0: 0.95
  float beta1;         ///< of Adam, AdamW and Lion; 0: 0.9
  float beta2;         ///< likewise; 0: 0.999, of Lion 0.99
  float alpha;         ///< of RMSprop; 0: 0.99
  float epsilon;       ///< of Adam, AdamW and RMSprop; 0: 1e-8
  hs_choice nesterov;  ///< of SGD and Muon; default: Muon only
  hs_choice centered;  ///< of RMSprop; default off
} hs_optimizer;

/// Tables for hs_optimizer::rates: write the rates of the first `steps` steps, as <halfstep/schedule.h> defines them.
/// After a table, its last rate is kept. A cosine and a polynomial reach `floor` only at step `steps`: for a training
/// that may go on, give room for steps + 1 numbers, set the last one to `floor`, and let rate_count be steps + 1.
HS_API hs_status hs_schedule_step(float rate, int64_t every, float factor, int64_t steps, float* rates);
HS_API hs_status hs_schedule_linear(float from, float to, int64_t steps, float* rates);
HS_API hs_status hs_schedule_cosine(float peak, int64_t warmup, int64_t steps, float floor, float* rates);
HS_API hs_status hs_schedule_polynomial(float rate, float power, float floor, int64_t steps, float* rates);
HS_API hs_status hs_schedule_one_cycle(float peak, float rise, int64_t steps, float* rates);

/// Parameters by a pattern of their names, "layer1/*", that are trained with other settings.
typedef struct hs_parameter_group {
  const char* pattern;
  float rate;                     ///< multiplies the optimizer's; 0: 1
  float weight_decay;             ///< replaces the optimizer's; 0: as the optimizer's; HS_ZERO: none
  uint32_t frozen;                ///< 1: not trained
  const hs_optimizer* optimizer;  ///< NULL: the trainer's
} hs_parameter_group;

typedef enum hs_rounding { HS_ROUNDING_DEFAULT = 0, HS_NEAREST, HS_STOCHASTIC } hs_rounding;
typedef enum hs_overflow { HS_OVERFLOW_DEFAULT = 0, HS_INFINITY, HS_SATURATE } hs_overflow;
typedef enum hs_loss_scale { HS_SCALE_DEFAULT = 0, HS_SCALE_NONE, HS_SCALE_FIXED, HS_SCALE_DYNAMIC } hs_loss_scale;
typedef enum hs_stop_on { HS_STOP_ON_OVERFLOW = 1, HS_STOP_ON_INVALID = 2, HS_STOP_ON_DIVISION_BY_ZERO = 4 } hs_stop_on;

/// A type for operators of a name, or for layers whose scope matches a pattern.
typedef struct hs_dtype_of {
  const char* name;
  hs_dtype dtype;
} hs_dtype_of;

/// Types for storage and computation; <halfstep/precision.h>. Defaults are the preset's.
typedef struct hs_precision {
  size_t size;
  const char* preset;   ///< "float32", "autocast", "mixed", "float16", "bfloat16", ... or "O0" to "O3"; NULL: "mixed"
  hs_dtype weights;     ///< as they are kept from step to step
  hs_dtype parameters;  ///< as operators read them
  hs_dtype moments;     ///< the optimizer's
  hs_dtype products;    ///< what lists of operators compute in; HS_WIDEST: as their inputs
  hs_dtype pairs;
  hs_dtype reductions;
  hs_dtype norms;
  hs_dtype others;
  hs_dtype partials_matmul;  ///< the accumulator of products
  hs_dtype partials_conv2d;
  const hs_dtype_of* operators;
  size_t operator_count;
  const hs_dtype_of* layers;
  size_t layer_count;
  hs_choice promote;  ///< whether operators accept inputs of two types
  hs_rounding round_weights;
  hs_rounding round_optimizer;
  hs_rounding round_activations;
  hs_rounding round_gradients;
  hs_overflow overflow;
  hs_choice gradient_scales;  ///< a scale for each parameter's gradient
  uint32_t stop_on;           ///< of hs_stop_on, or-ed
  hs_loss_scale loss_scale;
  hs_choice scale_in_rate;  ///< with a fixed scale, and SGD
  float scale_initial;      ///< 0: of a dynamic scale 65536, of a fixed one 256
  float scale_growth;       ///< 0: 2
  float scale_backoff;      ///< 0: 0.5
  float scale_floor;        ///< 0: 1
  float scale_ceiling;      ///< 0: 2^24
  uint32_t scale_interval;  ///< 0: 2000
  hs_choice reproducible;   ///< the same bits on every device, in more time; see Precision::reproducible
  hs_choice float8_linear;  ///< linear layers in f16 multiply numbers of 8 bits; see Precision::float8_linear
} hs_precision;

typedef struct hs_metric {
  const char* name;
  hs_tensor tensor;  ///< a scalar
} hs_metric;

/// A graph for the samples of at most `length`; <halfstep/trainer_options.h>, Buckets.
typedef struct hs_bucket {
  int64_t length;
  const hs_graph* graph;
  hs_tensor loss;
  const hs_metric* metrics;  ///< as many as the trainer has
  const hs_feed* feeds;
  size_t feed_count;
} hs_bucket;

/// Only `loss` must be set. <halfstep/trainer_options.h> says more of each.
typedef struct hs_trainer_options {
  size_t size;
  hs_tensor loss;  ///< a scalar
  const hs_metric* metrics;
  size_t metric_count;
  const hs_optimizer* optimizer;  ///< NULL: SGD
  const hs_precision* precision;  ///< NULL: "mixed"
  const hs_parameter_group* groups;
  size_t group_count;
  const hs_feed* feeds;  ///< how fields of a data set enter the inputs
  size_t feed_count;
  const hs_augmentation* augmentation;  ///< NULL: none
  const hs_dataset* training_set;
  const hs_source* source;   ///< in place of a training set
  const char* bucket_field;  ///< with `buckets`: the field of lengths; NULL: "lengths"
  int64_t longest;           ///< with `buckets`: the length of the trainer's own graph
  const hs_bucket* buckets;
  size_t bucket_count;
  int64_t accumulate;  ///< micro-batches of a step; 0: 1
  float clip_norm;
  float ema_decay;  ///< of averages of the weights; 0: none
  float weight_limit;
  hs_choice decay_vectors;  ///< default on: weight decay of norms and biases too
  uint64_t seed;            ///< 0: 42
  const char* recompute;    ///< a pattern of scopes
  const char* trace;        ///< a pattern of tensors
  const char* model;        ///< stored in checkpoints
  const char* const* classes;
  size_t class_count;
  int64_t snapshot_every;   ///< steps between snapshots for hs_trainer_reopen
  uint64_t memory_limit;    ///< bytes of device memory; 0: what the device has
  uint64_t resident_limit;  ///< bytes of the training set that the device may keep; 0: what it allows
  /// Called with each decision by hs_trainer_create, hs_trainer_create_to_fit and hs_trainer_reopen, in their thread.
  /// This, `cancel` and their users must stay valid until hs_trainer_free.
  void (*log)(void* log_user, const char* line);
  void* log_user;
  int (*cancel)(void* cancel_user);  ///< called before each kernel that is compiled, likewise; not 0: HS_CANCELLED
  void* cancel_user;
  uint32_t gradient_norm;                 ///< 1: hs_report has the norm of gradients where nothing is clipped, too
  const hs_device_buffer* shared_inputs;  ///< inputs that are read from an application's memory; not with feeds
  size_t shared_input_count;
} hs_trainer_options;

/// Values for one input, without padding: either f32 or u32.
typedef struct hs_values {
  const char* name;
  const float* f32;
  const uint32_t* u32;
  size_t count;
} hs_values;

typedef struct hs_report {
  size_t size;
  uint64_t step;     ///< attempted so far, this one included
  uint64_t applied;  ///< updates so far
  uint64_t skipped;  ///< steps skipped so far because a gradient was not finite
  uint64_t tensor_updates_skipped;
  float loss;  ///< unscaled
  float loss_scale;
  float rate;
  float clip;
  uint32_t overflowed;    ///< 1: this step was skipped
  uint32_t metric_count;  ///< of the room at `metrics`
  float* metrics;         ///< room for the metrics, in the order of the options; or NULL
  float gradient_norm;    ///< before clipping; NaN unless `clip_norm` or `gradient_norm` of the options asks for it
  uint32_t reserved;
} hs_report;

typedef struct hs_evaluation {
  size_t size;
  int64_t samples;
  double loss;
  uint32_t metric_count;  ///< as in hs_report
  double* metrics;
} hs_evaluation;

typedef enum hs_weights { HS_CURRENT = 0, HS_AVERAGED } hs_weights;

typedef struct hs_resume_point {
  uint64_t step;
  int64_t epoch;
  int64_t epoch_step;
} hs_resume_point;

typedef struct hs_trainer hs_trainer;
/// Compiles a training step: may take seconds. The graph must not change any more; it may be freed.
HS_API hs_status hs_trainer_create(const hs_device* device, const hs_graph* graph, const hs_trainer_options* options,
                                   hs_trainer** trainer);
/// The same for a model at any batch size, such that it fits the device, or the memory limit. `model` builds it in
/// `graph` and fills `options`, whose size is set and whose pointers must stay valid; anything but HS_OK ends all.
HS_API hs_status hs_trainer_create_to_fit(const hs_device* device,
                                          hs_status (*model)(void* user, hs_graph* graph, int64_t batch,
                                                             hs_trainer_options* options),
                                          void* user, int64_t batch, hs_trainer** trainer);
HS_API void hs_trainer_free(hs_trainer* trainer);

/// Submits a step and returns. If `count` is 0: on the next batch of the training set or source, or on what shared
/// inputs contain, where all are shared. Otherwise, of a trainer without feeds: on values for every input that is not
/// shared.
HS_API hs_status hs_trainer_step(hs_trainer* trainer, const hs_values* inputs, size_t count);
/// Submits as much of a step on the next batch as is expected to take the device that long, and returns. `ended`,
/// unless NULL, is set to 1 if a step was submitted to its end, else to 0.
HS_API hs_status hs_trainer_run_for(hs_trainer* trainer, int64_t nanoseconds, int* ended);
/// Records a step, whose inputs are all shared, into an application's VkCommandBuffer, which trains each time that it
/// is submitted to the adopted queue; hs_trainer_executed is called once for each time, after it has finished and
/// before 15 others have begun. After hs_trainer_reopen the command buffer must not be submitted again.
HS_API hs_status hs_trainer_record(hs_trainer* trainer, void* command_buffer);
HS_API hs_status hs_trainer_executed(hs_trainer* trainer);
/// The newest finished step; does not wait. `report` is zero but for its size and the room for metrics.
HS_API hs_status hs_trainer_report(hs_trainer* trainer, hs_report* report);
/// Waits for every step submitted so far.
HS_API hs_status hs_trainer_finish(hs_trainer* trainer);
/// Loss and metrics over a whole set. `stop`, unless NULL, is called before each batch; anything but 0 ends it.
HS_API hs_status hs_trainer_evaluate(hs_trainer* trainer, const hs_dataset* set, hs_weights weights,
                                     int (*stop)(void* user), void* user, hs_evaluation* evaluation);
/// Reads, or sets, a parameter or state. `count` is the number of its elements.
HS_API hs_status hs_trainer_parameter(hs_trainer* trainer, const char* path, hs_weights weights, float* values,
                                      size_t count);
HS_API hs_status hs_trainer_set_parameter(hs_trainer* trainer, const char* path, const float* values, size_t count);
/// Every dispatch with its memory; or each operator's types and why.
HS_API hs_status hs_trainer_plan(hs_trainer* trainer, char* buffer, size_t capacity, size_t* needed);
HS_API hs_status hs_trainer_explain(hs_trainer* trainer, char* buffer, size_t capacity, size_t* needed);
/// Goes on with another device, or with one that was opened anew after a loss: from the present state or the last
/// snapshot. `point`, here and below, may be NULL.
HS_API hs_status hs_trainer_reopen(hs_trainer* trainer, const hs_device* device, hs_resume_point* point);
/// Likewise of a trainer with shared inputs, each with its memory on the new device.
HS_API hs_status hs_trainer_reopen_shared(hs_trainer* trainer, const hs_device* device,
                                          const hs_device_buffer* shared_inputs, size_t count, hs_resume_point* point);

// ------------------------------------------------------------------------------------------------------ Checkpoints

/// Writes all state as a safetensors file, atomically; continues from one.
HS_API hs_status hs_trainer_save(hs_trainer* trainer, const char* path);
HS_API hs_status hs_trainer_load(hs_trainer* trainer, const char* path, hs_resume_point* point);
/// The same in host memory, which another thread may write to a file.
typedef struct hs_checkpoint hs_checkpoint;
HS_API hs_status hs_trainer_checkpoint(hs_trainer* trainer, hs_checkpoint** checkpoint);
HS_API hs_status hs_trainer_load_checkpoint(hs_trainer* trainer, const hs_checkpoint* checkpoint,
                                            hs_resume_point* point);
HS_API hs_status hs_checkpoint_write(const hs_checkpoint* checkpoint, const char* path);
HS_API void hs_checkpoint_free(hs_checkpoint* checkpoint);
/// An entry of a file's metadata: "model", "classes", ...
HS_API hs_status hs_file_metadata(const char* path, const char* key, char* buffer, size_t capacity, size_t* needed);

/// What reading weights found: lists of names.
typedef struct hs_load_report hs_load_report;
typedef enum hs_load_list {
  HS_LOADED = 0,
  HS_MISSING,     ///< in the model, but not in the file
  HS_UNEXPECTED,  ///< in the file, but not in the model
  HS_MISMATCHED,  ///< "NAME: expected ..., got ..."
  HS_NOT_FINITE   ///< loaded, but NaN or infinite in part, as operators read them
} hs_load_list;
HS_API size_t hs_load_report_count(const hs_load_report* report, hs_load_list list);
/// Valid until the report is freed; NULL if there is no such entry.
HS_API const char* hs_load_report_name(const hs_load_report* report, hs_load_list list, size_t index);
HS_API void hs_load_report_free(hs_load_report* report);

/// Only weights and states, for use by others, and from others: safetensors of F32, F16 or BF16. With `strict`, every
/// name and shape must agree. `report` may be NULL.
HS_API hs_status hs_trainer_save_weights(hs_trainer* trainer, const char* path, hs_weights weights);
HS_API hs_status hs_trainer_load_weights(hs_trainer* trainer, const char* path, int strict, hs_load_report** report);

// -------------------------------------------------------------------------------------------------------- Inference

typedef struct hs_predictor hs_predictor;
/// Computes `output` of a graph, with weights that hs_predictor_load_weights reads, as the precision's forward
/// pass does. A precision of NULL: "float32".
HS_API hs_status hs_predictor_create(const hs_device* device, const hs_graph* graph, hs_tensor output,
                                     const hs_precision* precision, hs_predictor** predictor);
/// With the weights that a trainer, or another predictor, has at the time of each run; not copied.
HS_API hs_status hs_predictor_of_trainer(const hs_trainer* trainer, const hs_graph* graph, hs_tensor output,
                                         hs_predictor** predictor);
HS_API hs_status hs_predictor_of_predictor(const hs_predictor* other, const hs_graph* graph, hs_tensor output,
                                           hs_predictor** predictor);
HS_API void hs_predictor_free(hs_predictor* predictor);
HS_API hs_status hs_predictor_load_weights(hs_predictor* predictor, const char* path, int strict,
                                           hs_load_report** report);
/// The same with inputs, and the output unless it is NULL, in an application's memory.
typedef struct hs_shared_buffers {
  size_t size;
  const hs_device_buffer* inputs;
  size_t input_count;
  const hs_device_buffer* output;
} hs_shared_buffers;
HS_API hs_status hs_predictor_create_shared(const hs_device* device, const hs_graph* graph, hs_tensor output,
                                            const hs_precision* precision, const hs_shared_buffers* shared,
                                            hs_predictor** predictor);
HS_API hs_status hs_predictor_of_trainer_shared(const hs_trainer* trainer, const hs_graph* graph, hs_tensor output,
                                                const hs_shared_buffers* shared, hs_predictor** predictor);
HS_API hs_status hs_predictor_of_predictor_shared(const hs_predictor* other, const hs_graph* graph, hs_tensor output,
                                                  const hs_shared_buffers* shared, hs_predictor** predictor);
/// Submits a run whose output is shared, and returns.
HS_API hs_status hs_predictor_submit(hs_predictor* predictor, const hs_values* inputs, size_t count);
/// Records a run, whose inputs and output are all shared, into an application's VkCommandBuffer.
HS_API hs_status hs_predictor_record(hs_predictor* predictor, void* command_buffer);
/// Writes the output's `output_count` numbers, of a shared one none. Waits for them.
HS_API hs_status hs_predictor_run(hs_predictor* predictor, const hs_values* inputs, size_t count, float* output,
                                  size_t output_count);
/// Makes the caches (hs_cache) zeros again, as before another text, for all predictors that share them.
HS_API hs_status hs_predictor_clear_caches(hs_predictor* predictor);

#ifdef __cplusplus
}
#endif

#endif

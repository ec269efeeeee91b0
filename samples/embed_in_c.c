// An application in C that owns its Vulkan instance, device and queue, draws frames off-screen, and trains a network
// between them, for at most a budget of the device's time in each frame: embed_in_c [--frames N] [--budget MS]
// Prints how long frames take without training and with it. HALFSTEP_VALIDATION=1 runs it under the validation layer.
#define _POSIX_C_SOURCE 200809L
#include <getopt.h>
#include <halfstep.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <vulkan/vulkan.h>

enum { width = 640, height = 360, batch = 256, texels = 64 };

static void stop(const char *what, const char *why) {
  fprintf(stderr, "%s: %s\n", what, why);
  exit(1);
}

static void check(VkResult result, const char *what) {
  char number[32];
  snprintf(number, sizeof number, "VkResult %d", (int)result);
  if (result != VK_SUCCESS) stop(what, number);
}

static void expect(hs_status status) {
  if (status != HS_OK) stop("Halfstep", hs_error_text());
}

// ------------------------------------------------------------------------------------------------- The application

typedef struct application {
  VkInstance instance;
  VkPhysicalDevice physical;
  VkDevice device;
  VkQueue queue;
  uint32_t family;
  VkImage image;
  VkDeviceMemory memory;
  VkCommandPool pool;
  VkCommandBuffer commands;
  VkFence fence;
} application;

static void create_device(application *app) {
  const char *layer = "VK_LAYER_KHRONOS_validation";
  const char *validation = getenv("HALFSTEP_VALIDATION");
  const bool validated = validation != NULL && strcmp(validation, "1") == 0;
  const VkApplicationInfo about = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_1};
  const VkInstanceCreateInfo instance = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                         .pApplicationInfo = &about,
                                         .enabledLayerCount = validated ? 1 : 0,
                                         .ppEnabledLayerNames = &layer};
  check(vkCreateInstance(&instance, NULL, &app->instance), "vkCreateInstance");
  uint32_t count = 1;
  const VkResult listed = vkEnumeratePhysicalDevices(app->instance, &count, &app->physical);
  if (count == 0) stop("Vulkan", "there is no device");
  check(listed == VK_INCOMPLETE ? VK_SUCCESS : listed, "vkEnumeratePhysicalDevices");
  VkQueueFamilyProperties families[16];
  count = 16;
  vkGetPhysicalDeviceQueueFamilyProperties(app->physical, &count, families);
  while (app->family < count && !(families[app->family].queueFlags & VK_QUEUE_COMPUTE_BIT)) app->family++;
  if (app->family == count) stop("Vulkan", "the device has no queue for compute");
  const float priority = 1;
  const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                         .queueFamilyIndex = app->family,
                                         .queueCount = 1,
                                         .pQueuePriorities = &priority};
  const VkDeviceCreateInfo device = {
      .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .queueCreateInfoCount = 1, .pQueueCreateInfos = &queue};
  check(vkCreateDevice(app->physical, &device, NULL, &app->device), "vkCreateDevice");
  vkGetDeviceQueue(app->device, app->family, 0, &app->queue);
}

static void create_image(application *app) {
  const VkImageCreateInfo image = {.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
                                   .imageType = VK_IMAGE_TYPE_2D,
                                   .format = VK_FORMAT_R8G8B8A8_UNORM,
                                   .extent = {width, height, 1},
                                   .mipLevels = 1,
                                   .arrayLayers = 1,
                                   .samples = VK_SAMPLE_COUNT_1_BIT,
                                   .tiling = VK_IMAGE_TILING_OPTIMAL,
                                   .usage = VK_IMAGE_USAGE_TRANSFER_DST_BIT};
  check(vkCreateImage(app->device, &image, NULL, &app->image), "vkCreateImage");
  VkMemoryRequirements needs;
  vkGetImageMemoryRequirements(app->device, app->image, &needs);
  uint32_t type = 0;
  while (!(needs.memoryTypeBits & (1u << type))) type++;
  const VkMemoryAllocateInfo memory = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = needs.size, .memoryTypeIndex = type};
  check(vkAllocateMemory(app->device, &memory, NULL, &app->memory), "vkAllocateMemory");
  check(vkBindImageMemory(app->device, app->image, app->memory, 0), "vkBindImageMemory");
}

static void create_commands(application *app) {
  const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                        .queueFamilyIndex = app->family};
  check(vkCreateCommandPool(app->device, &pool, NULL, &app->pool), "vkCreateCommandPool");
  const VkCommandBufferAllocateInfo commands = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                                .commandPool = app->pool,
                                                .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                                .commandBufferCount = 1};
  check(vkAllocateCommandBuffers(app->device, &commands, &app->commands), "vkAllocateCommandBuffers");
  const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  check(vkCreateFence(app->device, &fence, NULL, &app->fence), "vkCreateFence");
}

/// Draws a frame, whose colour is `shade`, and waits for it.
static void draw(application *app, float shade) {
  const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                          .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
  check(vkBeginCommandBuffer(app->commands, &begin), "vkBeginCommandBuffer");
  const VkImageSubresourceRange whole = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
  const VkImageMemoryBarrier discarded = {.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER,
                                          .dstAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                                          .oldLayout = VK_IMAGE_LAYOUT_UNDEFINED,
                                          .newLayout = VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL,
                                          .srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
                                          .dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
                                          .image = app->image,
                                          .subresourceRange = whole};
  vkCmdPipelineBarrier(app->commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 0, NULL, 0,
                       NULL, 1, &discarded);
  const VkClearColorValue colour = {.float32 = {shade, 0.2f, 1 - shade, 1}};
  vkCmdClearColorImage(app->commands, app->image, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, &colour, 1, &whole);
  check(vkEndCommandBuffer(app->commands), "vkEndCommandBuffer");
  const VkSubmitInfo submit = {
      .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &app->commands};
  check(vkQueueSubmit(app->queue, 1, &submit, app->fence), "vkQueueSubmit");
  check(vkWaitForFences(app->device, 1, &app->fence, VK_TRUE, UINT64_MAX), "vkWaitForFences");
  check(vkResetFences(app->device, 1, &app->fence), "vkResetFences");
}

static void destroy(application *app) {
  vkDestroyFence(app->device, app->fence, NULL);
  vkDestroyCommandPool(app->device, app->pool, NULL);
  vkDestroyImage(app->device, app->image, NULL);
  vkFreeMemory(app->device, app->memory, NULL);
  vkDestroyDevice(app->device, NULL);
  vkDestroyInstance(app->instance, NULL);
}

// ----------------------------------------------------------------------------------------------------- The network

/// A picture as positions and colours: rings around the middle.
static hs_dataset *make_picture(void) {
  static float positions[texels * texels][2];
  static float colours[texels * texels][3];
  for (int i = 0; i < texels * texels; i++) {
    const float x = ((float)(i % texels) + 0.5f) / texels;
    const float y = ((float)(i / texels) + 0.5f) / texels;
    const float ring = 0.5f + 0.5f * sinf(30 * hypotf(x - 0.5f, y - 0.5f));
    memcpy(positions[i], (float[]){x, y}, sizeof positions[i]);
    memcpy(colours[i], (float[]){ring, x, y}, sizeof colours[i]);
  }
  const hs_field fields[] = {{.name = "position",
                              .type = HS_ELEMENT_F32,
                              .shape = HS_SHAPE(2),
                              .data = positions,
                              .bytes = sizeof positions},
                             {.name = "colour",
                              .type = HS_ELEMENT_F32,
                              .shape = HS_SHAPE(3),
                              .data = colours,
                              .bytes = sizeof colours}};
  hs_dataset *picture = NULL;
  expect(hs_dataset_borrow("picture", fields, 2, &picture));
  return picture;
}

static hs_tensor dense(hs_graph *graph, const char *weight, const char *bias, hs_tensor x, int64_t in, int64_t out) {
  return hs_linear(graph, x, hs_parameter(graph, weight, HS_SHAPE(in, out), hs_he(in)),
                   hs_parameter(graph, bias, HS_SHAPE(out), hs_constant(0)));
}

/// A trainer on the application's device that learns the picture.
static hs_trainer *make_trainer(const application *app, const hs_dataset *picture) {
  const hs_adopted_device handles = {.size = sizeof handles,
                                     .instance = app->instance,
                                     .physical_device = app->physical,
                                     .device = app->device,
                                     .queue = app->queue,
                                     .queue_family = app->family,
                                     .get_instance_proc_addr = (void (*)(void))vkGetInstanceProcAddr};
  hs_device *device = NULL;
  hs_graph *graph = NULL;
  hs_trainer *trainer = NULL;
  expect(hs_device_adopt(&handles, NULL, &device));
  expect(hs_graph_create(&graph));
  const hs_tensor position = hs_input(graph, "position", HS_F32, HS_SHAPE(batch, 2));
  const hs_tensor colour = hs_input(graph, "colour", HS_F32, HS_SHAPE(batch, 3));
  hs_tensor x = hs_frequency_encoding(graph, position, 6);
  x = hs_relu(graph, dense(graph, "first/weight", "first/bias", x, 24, 64));
  x = hs_relu(graph, dense(graph, "second/weight", "second/bias", x, 64, 64));
  x = dense(graph, "last/weight", "last/bias", x, 64, 3);
  const hs_feed feeds[] = {{.input = position}, {.input = colour}};
  const hs_trainer_options options = {
      .size = sizeof options,
      .loss = hs_mse_loss(graph, x, colour),
      .optimizer = &(hs_optimizer){.size = sizeof(hs_optimizer), .kind = HS_ADAM, .rate = 0.01f},
      .feeds = feeds,
      .feed_count = 2,
      .training_set = picture,
  };
  expect(hs_trainer_create(device, graph, &options, &trainer));
  hs_graph_free(graph);
  hs_device_free(device);
  return trainer;
}

// ------------------------------------------------------------------------------------------------------ The frames

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return 1e3 * (double)time.tv_sec + 1e-6 * (double)time.tv_nsec;
}

static int by_value(const void *a, const void *b) {
  const double difference = *(const double *)a - *(const double *)b;
  return difference < 0 ? -1 : difference > 0;
}

static void print_times(const char *what, double *times, long frames) {
  qsort(times, (size_t)frames, sizeof times[0], by_value);
  printf("%-17s median %6.2f ms, 95%% %6.2f, 99%% %6.2f, longest %6.2f\n", what, times[frames / 2],
         times[frames * 95 / 100], times[frames * 99 / 100], times[frames - 1]);
}

/// Draws frames, with some training in each unless `trainer` is null; returns the steps that were trained.
static long run(application *app, hs_trainer *trainer, double budget, long frames, const char *what) {
  double *times = malloc((size_t)frames * sizeof times[0]);
  if (times == NULL) stop("frames", "there is no memory for their times");
  long steps = 0;
  for (long frame = 0; frame < frames; frame++) {
    const double start = now();
    int ended = 0;
    if (trainer != NULL) expect(hs_trainer_run_for(trainer, (int64_t)(1e6 * budget), &ended));
    draw(app, (float)frame / (float)frames);
    times[frame] = now() - start;
    steps += ended;
  }
  print_times(what, times, frames);
  free(times);
  return steps;
}

static double number(const char *text, double least, double most) {
  char *end = NULL;
  const double value = strtod(text, &end);
  if (*text == 0 || *end != 0 || !(value >= least && value <= most)) {
    fprintf(stderr, "embed_in_c: expected a number from %g to %g, got '%s'\n", least, most, text);
    exit(2);
  }
  return value;
}

int main(int argc, char **argv) {
  long frames = 500;
  double budget = 2;
  const struct option flags[] = {
      {"frames", required_argument, NULL, 'f'}, {"budget", required_argument, NULL, 'b'}, {"help", no_argument, NULL, 'h'},
      {NULL, 0, NULL, 0}};
  for (int flag; (flag = getopt_long(argc, argv, "f:b:h", flags, NULL)) != -1;) {
    if (flag == 'f') frames = (long)number(optarg, 1, 1e7);
    if (flag == 'b') budget = number(optarg, 0.01, 1e4);
    if (flag == 'h' || flag == '?') {
      fprintf(flag == 'h' ? stdout : stderr, "embed_in_c [--frames N] [--budget MILLISECONDS]\n");
      return flag == 'h' ? 0 : 2;
    }
  }
  if (optind < argc) {
    fprintf(stderr, "embed_in_c: expected flags only, got '%s'\n", argv[optind]);
    return 2;
  }
  application app = {0};
  create_device(&app);
  create_image(&app);
  create_commands(&app);
  hs_dataset *picture = make_picture();
  hs_trainer *trainer = make_trainer(&app, picture);
  expect(hs_trainer_step(trainer, NULL, 0));
  expect(hs_trainer_finish(trainer));
  hs_report first = {.size = sizeof first}, last = {.size = sizeof last};
  expect(hs_trainer_report(trainer, &first));

  printf("%ld frames of %dx%d\n", frames, width, height);
  run(&app, NULL, 0, frames, "without training");
  const long steps = run(&app, trainer, budget, frames, "with training");
  expect(hs_trainer_finish(trainer));
  expect(hs_trainer_report(trainer, &last));
  printf("%ld steps within %g ms of each frame; loss %.4f, then %.4f\n", steps, budget, (double)first.loss,
         (double)last.loss);
  hs_trainer_free(trainer);
  hs_dataset_free(picture);
  draw(&app, 0);  // the application's objects are as they were
  destroy(&app);
  return 0;
}

// An application in C that lends its Vulkan device, and shares buffers, semaphores, a command buffer and its allocator.
#include "expect.h"
#include <vulkan/vulkan.h>

static VkInstance instance;
static VkPhysicalDevice physical;
static VkDevice device;
static VkQueue queue;
static VkBuffer buffer;
static VkDeviceMemory memory;
static float *numbers;
static VkCommandPool pool;
static VkCommandBuffer commands;

/// The application's allocator counts what it was asked for.
static int asked;
static VKAPI_ATTR void *VKAPI_CALL allocate(void *user, size_t size, size_t alignment, VkSystemAllocationScope scope) {
  (void)user;
  (void)scope;
  asked++;
  return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}
static VKAPI_ATTR void *VKAPI_CALL reallocate(void *user, void *old, size_t size, size_t alignment,
                                              VkSystemAllocationScope scope) {
  (void)user;
  (void)alignment;
  (void)scope;
  asked++;
  return realloc(old, size);  // malloc's alignment is enough for the drivers that are tested
}
static VKAPI_ATTR void VKAPI_CALL release(void *user, void *old) {
  (void)user;
  free(old);
}

static void make_device(void) {
  const char *validation = getenv("HALFSTEP_VALIDATION"), *layer = "VK_LAYER_KHRONOS_validation";
  const VkApplicationInfo about = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_1};
  const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                     .pApplicationInfo = &about,
                                     .enabledLayerCount = validation != NULL && strcmp(validation, "1") == 0,
                                     .ppEnabledLayerNames = &layer};
  EXPECT(vkCreateInstance(&info, NULL, &instance) == VK_SUCCESS);
  uint32_t count = 1;
  EXPECT(vkEnumeratePhysicalDevices(instance, &count, &physical) >= 0 && count == 1);
  const float priority = 1;
  const char *timelines = VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME;
  const VkPhysicalDeviceTimelineSemaphoreFeatures enabled = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES, .timelineSemaphore = VK_TRUE};
  const VkDeviceQueueCreateInfo queues = {
      .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1, .pQueuePriorities = &priority};
  const VkDeviceCreateInfo wanted = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .pNext = &enabled,
                                     .queueCreateInfoCount = 1,
                                     .pQueueCreateInfos = &queues,
                                     .enabledExtensionCount = 1,
                                     .ppEnabledExtensionNames = &timelines};
  EXPECT(vkCreateDevice(physical, &wanted, NULL, &device) == VK_SUCCESS);
  vkGetDeviceQueue(device, 0, 0, &queue);
}

static void make_buffer(void) {
  const VkBufferCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = 4096, .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT};
  EXPECT(vkCreateBuffer(device, &info, NULL, &buffer) == VK_SUCCESS);
  VkMemoryRequirements needs;
  vkGetBufferMemoryRequirements(device, buffer, &needs);
  VkPhysicalDeviceMemoryProperties types;
  vkGetPhysicalDeviceMemoryProperties(physical, &types);
  const VkMemoryPropertyFlags wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  uint32_t type = 0;
  while (!(needs.memoryTypeBits >> type & 1) || (types.memoryTypes[type].propertyFlags & wanted) != wanted) type++;
  const VkMemoryAllocateInfo allocation = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = needs.size, .memoryTypeIndex = type};
  EXPECT(vkAllocateMemory(device, &allocation, NULL, &memory) == VK_SUCCESS);
  EXPECT(vkBindBufferMemory(device, buffer, memory, 0) == VK_SUCCESS);
  EXPECT(vkMapMemory(device, memory, 0, VK_WHOLE_SIZE, 0, (void **)&numbers) == VK_SUCCESS);
  const VkCommandPoolCreateInfo pools = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  EXPECT(vkCreateCommandPool(device, &pools, NULL, &pool) == VK_SUCCESS);
  const VkCommandBufferAllocateInfo one = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .commandPool = pool, .commandBufferCount = 1};
  EXPECT(vkAllocateCommandBuffers(device, &one, &commands) == VK_SUCCESS);
  const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  EXPECT(vkBeginCommandBuffer(commands, &begin) == VK_SUCCESS);
}

static hs_device *lend(void) {
  static VkAllocationCallbacks allocator;
  allocator = (VkAllocationCallbacks){.pfnAllocation = allocate, .pfnReallocation = reallocate, .pfnFree = release};
  const hs_adopted_device handles = {.size = sizeof handles,
                                     .instance = instance,
                                     .physical_device = physical,
                                     .device = device,
                                     .queue = queue,
                                     .get_instance_proc_addr = (void (*)(void))vkGetInstanceProcAddr,
                                     .allocator = &allocator,
                                     .timeline_semaphore = 1};
  hs_device *lent = NULL;
  OK(hs_device_adopt(&handles, NULL, &lent));
  return lent;
}

/// A handle that is no pointer on all machines, as a number.
#define NUMBER(handle) ((uint64_t)(handle))

/// y of x, one number each, learned from what is in the buffer: x from float 0, y from 64, and the estimate to 128.
static void train(hs_device *lent) {
  hs_graph *graph = NULL;
  hs_trainer *trainer = NULL;
  hs_predictor *predictor = NULL;
  OK(hs_graph_create(&graph));
  const hs_tensor x = hs_input(graph, "x", HS_F32, HS_SHAPE(4, 1)), y = hs_input(graph, "y", HS_F32, HS_SHAPE(4, 1));
  const hs_tensor estimate = hs_linear(graph, x, hs_parameter(graph, "w", HS_SHAPE(1, 1), hs_constant(0)), 0);
  const hs_device_buffer inputs[] = {
      {.name = "x", .buffer = NUMBER(buffer), .bytes = 16, .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT},
      {.name = "y", .buffer = NUMBER(buffer), .offset = 256, .bytes = 16}};
  const hs_device_buffer output = {.buffer = NUMBER(buffer), .offset = 512, .bytes = 16};
  hs_trainer_options options = {.size = sizeof options, .loss = hs_mse_loss(graph, estimate, y)};
  options.optimizer = &(hs_optimizer){.size = sizeof(hs_optimizer), .kind = HS_SGD, .rate = 0.1f};
  options.precision = &(hs_precision){.size = sizeof(hs_precision), .preset = "float32"};
  options.shared_inputs = inputs;
  options.shared_input_count = 2;
  OK(hs_trainer_create(lent, graph, &options, &trainer));
  const hs_shared_buffers shared = {.size = sizeof shared, .inputs = inputs, .input_count = 1, .output = &output};
  OK(hs_predictor_of_trainer_shared(trainer, graph, estimate, &shared, &predictor));
  for (int i = 0; i < 4; i++) {
    numbers[i] = (float)i;
    numbers[64 + i] = 2 * (float)i;
  }
  for (int i = 0; i < 5; i++) OK(hs_trainer_step(trainer, NULL, 0));
  OK(hs_trainer_finish(trainer));
  // The rest in the application's own command buffer: a step, then what it makes of x.
  FAILS(hs_trainer_executed(trainer), HS_BAD_ARGUMENT, "recorded");
  OK(hs_trainer_record(trainer, commands));
  OK(hs_predictor_record(predictor, commands));
  EXPECT(vkEndCommandBuffer(commands) == VK_SUCCESS);
  const VkSubmitInfo submit = {
      .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &commands};
  for (int i = 0; i < 20; i++) {
    EXPECT(vkQueueSubmit(queue, 1, &submit, VK_NULL_HANDLE) == VK_SUCCESS);
    EXPECT(vkQueueWaitIdle(queue) == VK_SUCCESS);
    OK(hs_trainer_executed(trainer));
  }
  hs_report report = {.size = sizeof report};
  OK(hs_trainer_report(trainer, &report));
  EXPECT(report.step == 25 && report.loss < 1e-6f);
  EXPECT(numbers[128] == 0 && numbers[131] > 5.99f && numbers[131] < 6.01f);
  numbers[3] = 30;
  OK(hs_predictor_submit(predictor, NULL, 0));
  OK(hs_predictor_run(predictor, NULL, 0, NULL, 0));
  EXPECT(numbers[131] > 59.9f);
  // Others on the same memory: with these weights, and with weights of their own, which they do not have yet.
  hs_predictor *same = NULL, *apart = NULL;
  OK(hs_predictor_of_predictor_shared(predictor, graph, estimate, &shared, &same));
  numbers[3] = 3;
  OK(hs_predictor_run(same, NULL, 0, NULL, 0));
  EXPECT(numbers[131] > 5.99f && numbers[131] < 6.01f);
  OK(hs_predictor_create_shared(lent, graph, estimate, NULL, &shared, &apart));
  FAILS(hs_predictor_submit(apart, NULL, 0), HS_BAD_ARGUMENT, "weights");
  hs_predictor_free(same);
  hs_predictor_free(apart);
  const hs_device_buffer unnamed = {.buffer = NUMBER(buffer), .bytes = 16};
  FAILS(hs_trainer_reopen_shared(trainer, lent, &unnamed, 1, NULL), HS_BAD_ARGUMENT, "name");
  FAILS(hs_trainer_reopen(trainer, lent, NULL), HS_BAD_ARGUMENT, "shared inputs");
  OK(hs_trainer_reopen_shared(trainer, lent, inputs, 2, NULL));
  OK(hs_trainer_step(trainer, NULL, 0));
  hs_trainer_free(trainer);
  hs_predictor_free(predictor);
  hs_graph_free(graph);
}

static void wait_and_signal(hs_device *lent) {
  const VkSemaphoreTypeCreateInfo timeline = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                              .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
  const VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &timeline};
  VkSemaphore semaphore;
  EXPECT(vkCreateSemaphore(device, &info, NULL, &semaphore) == VK_SUCCESS);
  const hs_queue_semaphore from = {.semaphore = NUMBER(semaphore), .value = 1, .timeline = 1};
  const hs_queue_semaphore to = {.semaphore = NUMBER(semaphore), .value = 2, .timeline = 1}, none = {.timeline = 1};
  FAILS(hs_device_wait_for(lent, &none, 1), HS_BAD_ARGUMENT, "null");
  OK(hs_device_wait_for(lent, &from, 1));
  OK(hs_device_signal(lent, &to, 1));
#define OF(name) ((PFN_##name)(void (*)(void))vkGetDeviceProcAddr(device, #name))
  const uint64_t wanted = 2;
  const VkSemaphoreWaitInfo wait = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                    .semaphoreCount = 1,
                                    .pSemaphores = &semaphore,
                                    .pValues = &wanted};
  EXPECT(OF(vkWaitSemaphoresKHR)(device, &wait, 1000000) == VK_TIMEOUT);
  const VkSemaphoreSignalInfo signal = {
      .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, .semaphore = semaphore, .value = 1};
  EXPECT(OF(vkSignalSemaphoreKHR)(device, &signal) == VK_SUCCESS);
  EXPECT(OF(vkWaitSemaphoresKHR)(device, &wait, UINT64_MAX) == VK_SUCCESS);
  EXPECT(vkQueueWaitIdle(queue) == VK_SUCCESS);
  vkDestroySemaphore(device, semaphore, NULL);
}

static void ask_for_low_priority(void) {
  const hs_device_settings settings = {.size = sizeof settings, .low_priority = HS_ON};
  hs_device_info info = {.size = sizeof info};
  hs_device *low = NULL;
  OK(hs_device_open("0", &settings, &low));
  OK(hs_device_get_info(low, &info));
  EXPECT(strcmp(info.queue_priority, "low") == 0 || strncmp(info.queue_priority, "default: ", 9) == 0);
  hs_device_free(low);
}

int main(void) {
  make_device();
  make_buffer();
  hs_device *lent = lend();
  train(lent);
  wait_and_signal(lent);
  hs_device_free(lent);
  EXPECT(asked > 0);
  ask_for_low_priority();
  vkDestroyCommandPool(device, pool, NULL);
  vkDestroyBuffer(device, buffer, NULL);
  vkFreeMemory(device, memory, NULL);
  vkDestroyDevice(device, NULL);
  vkDestroyInstance(instance, NULL);
  return 0;
}

#pragma once

#include "vk/device/capabilities.h"

/// A GPU with every capability.
inline halfstep::vk::Capabilities capable() {
  halfstep::vk::Capabilities c;
  c.name = "Test GPU";
  c.type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  c.api_version = VK_API_VERSION_1_3;
  c.limits.maxComputeWorkGroupInvocations = 1024;
  c.limits.maxComputeWorkGroupSize[0] = 512;
  c.limits.maxPushConstantsSize = 256;
  c.limits.maxStorageBufferRange = 1u << 30;
  c.limits.minStorageBufferOffsetAlignment = 4;
  c.limits.maxPerStageDescriptorStorageBuffers = 16;
  c.limits.maxDescriptorSetStorageBuffers = 96;
  c.limits.maxPerStageResources = 128;
  c.storage_16bit = true;
  c.float16_arithmetic = true;
  c.mixed_dots = true;
  c.float_controls = true;
  c.denormals_independent = true;
  c.rounding_independent = true;
  c.float16 = {true, true, true};
  c.float32 = {true, true, true};
  c.subgroup_size = 32;
  c.min_subgroup_size = 8;
  c.max_subgroup_size = 32;
  c.subgroup_size_control = true;
  c.subgroup_operations = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_BALLOT_BIT;
  return c;
}

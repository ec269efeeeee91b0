#pragma once

#include <halfstep/device.h>

#include <memory>
#include <string>
#include <vector>

#include "selftest/matrix_types.h"
#include "vk/device/loader.h"
#include "vk/shader/pipelines.h"

namespace halfstep::selftest {

/// The device under test, opened as an application would with everything that matrix units need of any type: Halfstep
/// itself enables what it uses of them.
class MatrixDevice {
 public:
  /// Throws Error if it cannot be opened. `missing()` says what it does not offer.
  MatrixDevice();
  ~MatrixDevice();
  MatrixDevice(const MatrixDevice&) = delete;
  MatrixDevice& operator=(const MatrixDevice&) = delete;

  /// Why it has no matrix units; empty if it has.
  const std::string& missing() const { return missing_; }
  /// What it reports, in its order, each once.
  const std::vector<MatrixProduct>& products() const { return products_; }
  /// The feature that a kernel needs and the device lacks; empty if there is none.
  std::string lacks(const MatrixProduct& product) const;
  vk::Context& context() const { return vk::context_of(*device_); }
  vk::Pipelines& pipelines() const { return *pipelines_; }

 private:
  struct Features;
  void find_products();
  void open(const Features& wanted);

  vk::InstanceTable instance_;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkDevice handle_ = VK_NULL_HANDLE;
  std::unique_ptr<Features> features_;
  std::string missing_;
  std::vector<MatrixProduct> products_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<vk::Pipelines> pipelines_;
};

}  // namespace halfstep::selftest

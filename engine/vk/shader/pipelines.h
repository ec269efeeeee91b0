#pragma once

#include <vulkan/vulkan.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "plan/dispatch.h"
#include "vk/device/context.h"
#include "vk/shader/pipeline_pool.h"
#include "vk/shader/shaders.h"
#include "vk/shader/spirv.h"

namespace halfstep::vk {

/// Part of the keys of notes about kernels (tune/note_key.h): counts up where pipelines.cpp makes other code of the
/// same kernel, in a rewriting of SPIR-V that it calls, in their order or by other constants.
constexpr int code_revision = 4;

/// What the function of Pipelines::ask() threw. It is no Error, so that nobody takes it for a refusal of the kernel.
struct AskFailed {
  std::exception_ptr thrown;
};

/// Whether to request full subgroups of Capabilities::subgroup_size, which shaders with subgroup operations rely on.
/// Throws Error where the device has several sizes, and workgroups are not of whole subgroups, or of too many.
bool asks_for_subgroups(const plan::Dispatch& dispatch, const ShaderFacts& facts, const Capabilities& c);

/// Specialization constants of a dispatch's pipeline by their numbers: constant i of the dispatch is i, how f16 is
/// stored are those of common/storing.glsl and shaders/storage.
Constants constants_of(const plan::Dispatch& dispatch, const EmbeddedShader& shader);

/// The pipelines that somebody uses, of those that the device has for all. To be used by one thread at a time.
class Pipelines {
 public:
  /// Whether the driver keeps what it knows of the code it compiles; see executables.h. It then compiles anew what it
  /// could read from a cache, or has for others.
  enum class Capture : bool { no, yes };

  explicit Pipelines(Context& context, Capture capture = Capture::no);
  ~Pipelines();
  Pipelines(const Pipelines&) = delete;
  Pipelines& operator=(const Pipelines&) = delete;

  /// Where the workgroups of a dispatch may start: always at the first, or at any; see first_group.h.
  enum class Start : bool { first, any };

  /// The pipeline for `dispatch`; it lives as long as this object. Throws Error that names the dispatch's label, and
  /// the limit if one is exceeded.
  const Pipeline& get(const plan::Dispatch& dispatch, Start start = Start::first);

  /// Calls `cancel` before each pipeline that is compiled from now on, unless it is empty; where it returns true, get()
  /// throws Error with ErrorCode::cancelled, and where it throws, AskFailed.
  void ask(std::function<bool()> cancel) { cancel_ = std::move(cancel); }

 private:
  bool is_cancelled() const;
  std::vector<std::uint32_t> words_of(const plan::Dispatch& dispatch, const EmbeddedShader& shader,
                                      const Constants& constants);
  Pipeline make(const plan::Dispatch& dispatch, const EmbeddedShader& shader, const PipelineKey& key);
  VkPipeline compile(const plan::Dispatch& dispatch, std::span<const std::uint32_t> words, const ShaderFacts& facts,
                     const Constants& constants, const Pipeline& made);

  std::shared_ptr<Context> context_;
  std::unique_ptr<PipelinePool> own_pool_;  ///< null unless the driver keeps what it knows
  PipelinePool& pool_;
  VkPipelineCreateFlags flags_ = 0;
  std::function<bool()> cancel_{};
  std::set<std::shared_ptr<const Pipeline>> used_;
};

}  // namespace halfstep::vk

#include "train/checkpoints.h"

#include <halfstep/error.h>
#include <halfstep/version.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include "base/utf8.h"
#include "graph/dtype.h"
#include "state/gradient_scales.h"
#include "train/checkpoint_contents.h"
#include "train/checkpoint_reader.h"
#include "train/epoch_position.h"
#include "train/metadata_keys.h"
#include "train/stored_values.h"

namespace halfstep::train {
namespace {

constexpr std::string_view state_name = "halfstep.state";
constexpr std::string_view scales_name = "halfstep.gradient_scales";
constexpr std::string_view optimizers_name = "halfstep.optimizers";
constexpr std::string_view copy_prefix = "halfstep.copy.";

/// What a StepState took before it counted tensors that were left out.
constexpr std::size_t first_state_bytes = 64;

void add(Checkpoint::Contents& contents, std::string_view name, std::string_view dtype,
         std::span<const std::byte> bytes) {
  contents.raw.push_back({std::string(name), std::string(dtype), {bytes.begin(), bytes.end()}});
}

/// Throws Error where a file is of another model, by what both say of it.
void refuse_other_model(const io::Metadata& file, const io::Metadata& own, const std::string& name) {
  for (const char* key : {keys::model, keys::input}) {
    const auto theirs = file.find(key);
    const auto ours = own.find(key);
    if (theirs == file.end() || ours == own.end() || theirs->second == ours->second) continue;
    fail(ErrorCode::bad_file, name,
         fmt::format("expected a checkpoint of {} {}, got one of {}", key, ours->second, theirs->second));
  }
}

/// An optimizer's rate in the next step.
float rate_of(const Optimizer& optimizer, const state::StepState& state) {
  const std::vector<float>& rates = optimizer->rate().rates;
  const std::int64_t entry = std::int64_t{state.applied} + state.rate_offset;
  return rates[static_cast<std::size_t>(std::clamp<std::int64_t>(entry, 0, std::ssize(rates) - 1))];
}

void set_rates(state::RunState& state, const std::vector<Optimizer>& optimizers) {
  state.step.rate = rate_of(optimizers.front(), state.step);
  for (std::size_t i = 0; i < state.optimizers.size(); ++i) {
    state.optimizers[i].rate = rate_of(optimizers[i + 1], state.step);
  }
}

/// "muon, adamw".
std::string names_of(const std::vector<Optimizer>& optimizers) {
  std::vector<std::string> names;
  for (const Optimizer& optimizer : optimizers) names.push_back(optimizer->name());
  return fmt::format("{}", fmt::join(names, ", "));
}

/// Limited so that a kernel can add it to the number of updates; a schedule has fewer entries.
std::int32_t offset_within_limits(std::int64_t offset) {
  constexpr std::int64_t most = 1 << 30;
  return static_cast<std::int32_t>(std::clamp(offset, -most, most));
}

/// Sets the loss scale to go on with: a dynamic one where it was, any other as it is asked for now. A file of an older
/// version does not say whether its scale is dynamic: then it is taken for one.
void set_scale(state::StepState& state, const LossScale& scale, const io::Metadata& metadata) {
  const auto found = metadata.find(keys::loss_scale_dynamic);
  const bool was_dynamic = found == metadata.end() || found->second == "true";
  const bool goes_on = scale.kind == LossScale::Kind::dynamic && was_dynamic && is_loss_scale(state.loss_scale);
  state.loss_scale = goes_on ? std::clamp(state.loss_scale, scale.floor, scale.ceiling) : scale.initial;
  if (!was_dynamic && scale.kind == LossScale::Kind::dynamic) state.good_steps = 0;
}

std::string copy_name(const state::ParameterEntry& entry) {
  return std::string(copy_prefix) + stored_name(entry.name);
}

/// Whether a number is one of the two of its type around a weight.
bool is_copy(const graph::Narrow& narrow, float copy, float weight) {
  const std::uint16_t nearest = narrow.bits_of(weight);
  if (narrow.bits_of(copy) == nearest) return true;
  const bool on_other_side = (copy < weight) != (narrow.value_of(nearest) < weight);
  return on_other_side && std::abs(int{narrow.bits_of(copy)} - int{nearest}) == 1;
}

/// What moments are multiplied by.
float moment_scale(bool in_rate, float loss_scale) {
  return in_rate ? loss_scale : 1;
}

/// What a file's moments are multiplied by: 1 or its loss scale. A file of an older version does not say which: then
/// nothing is assumed to have changed.
float stored_moment_scale(const io::Metadata& metadata, float loss_scale, const LossScale& own,
                          const std::string& name) {
  const auto found = metadata.find(keys::loss_scale_in_rate);
  const float scale = moment_scale(found == metadata.end() ? own.in_rate : found->second == "true", loss_scale);
  if (!is_loss_scale(scale))
    fail(ErrorCode::bad_file, name, fmt::format("expected a positive loss scale, got {}", scale));
  return scale;
}

}  // namespace

Checkpoints::Checkpoints(state::ParameterStore& store, const TrainerOptions& options, const Batches& batches,
                         io::Metadata about)
    : store_(store), options_(options), batches_(batches), about_(std::move(about)) {
  std::vector<std::string> texts{names_of(store_.spec().layout.optimizers)};
  std::set<std::string> names;
  for (const state::KeptTensor& tensor : store_.tensors()) {
    texts.push_back(stored_name(tensor.name));
    if (texts.back().starts_with(reserved_prefix) || !names.insert(texts.back()).second)
      refuse_name("trainer", tensor.name);
  }
  for (const std::string& text : texts) {
    if (utf8_bytes(text) < text.size()) fail("trainer", fmt::format("expected names in UTF-8, got '{}'", text));
  }
}

io::Metadata Checkpoints::metadata(const state::StepState& state) const {
  const bool dynamic = options_.precision.loss_scale.kind == LossScale::Kind::dynamic;
  io::Metadata result{{keys::format, "halfstep 1"},
                      {keys::version, std::string(version())},
                      {keys::precision, options_.precision.name},
                      {keys::optimizer, names_of(store_.spec().layout.optimizers)},
                      {keys::seed, std::to_string(batches_.seed())},
                      {keys::step, std::to_string(batches_.steps())},
                      {keys::applied, std::to_string(state.applied)},
                      {keys::average_decay, fmt::format("{}", options_.ema_decay)},
                      {keys::loss_scale, fmt::format("{}", state.loss_scale)},
                      {keys::loss_scale_in_rate, options_.precision.loss_scale.in_rate ? "true" : "false"},
                      {keys::loss_scale_dynamic, dynamic ? "true" : "false"}};
  result.insert(about_.begin(), about_.end());
  if (batches_.has_epochs()) note_position(result, batches_.epoch_size(), batches_.drawn());
  if (batches_.is_unbounded()) note_asked(result, batches_.asked());
  return result;
}

Checkpoint::Contents Checkpoints::contents(const std::vector<state::KeptTensor>& tensors,
                                           const state::StepState& state) const {
  Checkpoint::Contents contents;
  for (const state::KeptTensor& tensor : tensors) {
    contents.values.push_back(
        {stored_name(tensor.name), tensor.dtype, tensor.entry->type.shape, tensor.entry->stored, store_.read(tensor)});
  }
  contents.metadata = metadata(state);
  return contents;
}

Checkpoint Checkpoints::take(const std::map<std::string, std::string>& notes) const {
  state::RunState state = store_.read_state();
  state.step.gradient_norm = 0;  // of a step that is over: whether it was measured leaves no trace in the file
  Checkpoint::Contents contents = this->contents(store_.tensors(), state.step);
  add(contents, state_name, "U32", std::as_bytes(std::span(&state.step, 1)));
  if (!state.optimizers.empty()) {
    add(contents, optimizers_name, "F32", std::as_bytes(std::span(state.optimizers)));
  }
  for (const state::ParameterEntry* entry : store_.copied_at_random()) {
    add(contents, copy_name(*entry), graph::info(entry->type.dtype).saved,
        encode(entry->type.dtype, entry->type.shape, {}, store_.read_weight(*entry)));
  }
  if (store_.spec().weights.scaled) {
    const std::vector<float> scales = store_.read_scales();
    add(contents, scales_name, "F32", std::as_bytes(std::span(scales)));
  }
  for (const auto& [key, text] : notes) {
    const std::size_t valid = utf8_bytes(key);
    if (valid < key.size()) {
      fail("checkpoint",
           fmt::format("expected notes under names in UTF-8, got another byte after '{}'", key.substr(0, valid)));
    }
    if (std::ranges::find(keys::all, key) != std::end(keys::all)) {
      fail("checkpoint", fmt::format("expected notes under names of their own, got '{}'", key),
           fmt::format("a trainer's are {}", fmt::join(keys::all, ", ")));
    }
    contents.metadata[key] = text;
  }
  return Checkpoint(std::make_shared<const Checkpoint::Contents>(std::move(contents)));
}

Checkpoint Checkpoints::take_weights(Weights weights) const {
  Checkpoint::Contents contents = this->contents(store_.tensors(weights), store_.read_state().step);
  contents.metadata[keys::format] = "pt";  // as Hugging Face's loaders want it of a file of PyTorch's names and axes
  return Checkpoint(std::make_shared<const Checkpoint::Contents>(std::move(contents)));
}

std::string Checkpoints::Source::preferred(std::string_view tensor) const {
  std::string own = prefix + std::string(tensor);
  return file.find(own) != nullptr ? own : std::string(tensor);
}

state::RunState Checkpoints::state_from(const Source& source) const {
  const io::StoredTensor* stored = source.file.find(source.preferred(state_name));
  state::RunState result;
  state::StepState& state = result.step;
  const std::size_t size = stored == nullptr ? 0 : stored->data.size();
  if ((size != sizeof state && size != first_state_bytes) || stored->dtype != "U32") {
    fail(ErrorCode::bad_file, source.name,
         fmt::format("expected '{}' as U32 {{{}}}, got {}", state_name, sizeof state / 4,
                     stored == nullptr ? "none" : stored->dtype + " " + to_string(stored->shape)),
         "only a file that save() wrote can be resumed; load_weights() takes others");
  }
  std::memcpy(&state, stored->data.data(), size);
  std::ranges::fill(state.padding, 0.0F);
  state.overflow = 0;
  state.clip = 1;
  result.optimizers = optimizers_from(source);
  return result;
}

/// The states of the optimizers other than the trainer's own, in the order of their names in the file.
std::vector<state::OptimizerState> Checkpoints::optimizers_from(const Source& source) const {
  std::vector<state::OptimizerState> states(store_.spec().layout.optimizers.size() - 1);
  if (states.empty()) return states;
  const io::StoredTensor* stored = source.file.find(source.preferred(optimizers_name));
  const std::span<std::byte> memory = std::as_writable_bytes(std::span(states));
  if (stored == nullptr || stored->dtype != "F32" || stored->data.size() != memory.size()) {
    fail(ErrorCode::bad_file, source.name,
         fmt::format("expected '{}' as F32 {{{}}}, got {}", optimizers_name, memory.size() / 4,
                     stored == nullptr ? "none" : stored->dtype + " " + to_string(stored->shape)));
  }
  std::ranges::copy(stored->data, memory.begin());
  return states;
}

/// The scales of gradients to go on with: from 1 on where the file has none.
std::vector<float> Checkpoints::scales_from(const Source& source) const {
  const io::StoredTensor* stored = source.file.find(source.preferred(scales_name));
  std::vector<float> scales(store_.spec().layout.parameters.entries().size(), 1.0F);
  if (stored == nullptr) return scales;
  const bool fits = stored->dtype == "F32" && stored->data.size() == 4 * scales.size();
  if (fits) std::memcpy(scales.data(), stored->data.data(), stored->data.size());
  if (!fits || !std::ranges::all_of(scales, state::gradient_scales::is_scale)) {
    fail(ErrorCode::bad_file, source.name,
         fmt::format("expected '{}' as F32 {{{}}}, powers of two from 2^-24 to 2^24, got {} {}", scales_name,
                     scales.size(), stored->dtype, fits ? "others" : to_string(stored->shape)));
  }
  return scales;
}

/// The copies to go on with. What is no copy of the weights that are taken is left out: of ranks that step by
/// themselves, a file has these as they were synchronised too.
std::vector<Checkpoints::Copy> Checkpoints::copies_from(const Source& source,
                                                        const std::vector<state::KeptTensor>& tensors,
                                                        const std::vector<std::vector<float>>& values) const {
  std::vector<Copy> copies;
  for (const state::ParameterEntry* entry : store_.copied_at_random()) {
    const io::StoredTensor* stored = source.file.find(source.preferred(copy_name(*entry)));
    const graph::TypeInfo& type = graph::info(entry->type.dtype);
    const auto bytes = static_cast<std::size_t>(elements(entry->type.shape) * type.bytes);
    if (stored == nullptr || stored->dtype != type.saved || stored->data.size() != bytes) continue;
    Copy copy{entry, decode(*stored, entry->type.shape, {})};
    const auto is_weight = [&](const state::KeptTensor& tensor) {
      return tensor.kind == state::KeptTensor::Kind::weight && tensor.entry == entry;
    };
    const std::vector<float>& weight =
        values[static_cast<std::size_t>(std::ranges::find_if(tensors, is_weight) - tensors.begin())];
    const auto fits = [&](float number, float of) { return is_copy(*type.narrow, number, of); };
    if (std::ranges::equal(copy.values, weight, fits)) copies.push_back(std::move(copy));
  }
  return copies;
}

Checkpoints::Resumed Checkpoints::load(const io::SafetensorsFile& file, const std::string& name,
                                       const std::string& prefix) {
  check_format(file.metadata(), name);
  refuse_other_model(file.metadata(), about_, name);
  const std::vector<Optimizer>& optimizers = store_.spec().layout.optimizers;
  const std::string own = names_of(optimizers);
  const auto kind = file.metadata().find(keys::optimizer);
  if (kind != file.metadata().end() && kind->second != own) {
    fail(ErrorCode::bad_file, name, fmt::format("expected a checkpoint of {}, got one of {}", own, kind->second));
  }
  const Source source{file, name, prefix};
  Resumed resumed{state_from(source)};
  const LossScale& loss_scale = options_.precision.loss_scale;
  state::StepState& step = resumed.state.step;
  const float stored_moments = stored_moment_scale(file.metadata(), step.loss_scale, loss_scale, name);
  set_scale(step, loss_scale, file.metadata());
  const float moment_factor = moment_scale(loss_scale.in_rate, step.loss_scale) / stored_moments;
  const std::vector<float> scales = scales_from(source);
  const LoadOptions options{.ignored = {"halfstep.state", "halfstep.gradient_scales", "halfstep.optimizers",
                                        "halfstep.rank*", "halfstep.outer.*", "halfstep.copy.*"}};
  CheckpointReader reader(file, options, options_.precision.overflow);
  const std::vector<state::KeptTensor> tensors = store_.tensors();
  std::vector<std::vector<float>> values;
  for (const state::KeptTensor& tensor : tensors) {
    const std::string stored = stored_name(tensor.name);
    values.push_back(reader.take(stored, *tensor.entry));
    if (const std::string preferred = source.preferred(stored); preferred != stored) {
      values.back() = take_present(file, name, preferred, *tensor.entry);
    }
    if (tensor.kind != state::KeptTensor::Kind::moment) continue;
    for (float& value : values.back()) value *= moment_factor;
  }
  reader.report(name);
  const auto steps = static_cast<std::int64_t>(attempted(resumed.state.step));
  if (batches_.has_epochs()) {
    resumed.drawn = position_from(file.metadata(), name, batches_.epoch_size(), steps);
    resumed.state.step.rate_offset = offset_within_limits(resumed.drawn - steps);
  } else {
    resumed.drawn = batches_.is_unbounded() ? drawn_from(file.metadata(), name, options_.ranks.size(), steps) : steps;
    resumed.state.step.rate_offset = 0;
  }
  set_rates(resumed.state, optimizers);
  const std::vector<Copy> copies = copies_from(source, tensors, values);
  store_.write(tensors, values);
  for (const Copy& copy : copies) store_.write_copy(*copy.of, copy.values);
  store_.write_scales(scales);
  store_.write_state(resumed.state);
  return resumed;
}

LoadReport Checkpoints::load_weights(const std::filesystem::path& path, const LoadOptions& options) {
  const io::SafetensorsFile file(path);
  check_format(file.metadata(), path.string());
  CheckpointReader reader(file, options, options_.precision.overflow);
  reader.pass_over_states();
  std::vector<state::KeptTensor> tensors;
  std::vector<std::vector<float>> values;
  for (const state::KeptTensor& tensor : store_.tensors(Weights::current)) {
    std::vector<float> found = reader.take(stored_name(tensor.name), *tensor.entry);
    if (found.empty()) continue;
    tensors.push_back(tensor);
    values.push_back(std::move(found));
  }
  LoadReport report = reader.report(path.string());
  store_.write(tensors, values);
  store_.average_weights(tensors);
  return report;
}

}  // namespace halfstep::train

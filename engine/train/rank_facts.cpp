#include "train/rank_facts.h"

#include <halfstep/graph.h>
#include <halfstep/version.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include "step/update.h"
#include "train/rank_agreement.h"
#include "train/texts.h"

namespace halfstep::train {
namespace {

std::uint64_t hash_of_text(const std::string& text) {
  return hash_of(std::as_bytes(std::span(text)));
}

RankFact fact(std::string name, std::string text) {
  const std::uint64_t hash = hash_of_text(text);
  return {std::move(name), std::move(text), hash};
}

std::string type_text(Compute compute) {
  return compute == widest ? "widest" : std::string(name(*compute));
}

std::string loss_scale_text(const LossScale& scale) {
  const auto& [kind, initial, growth, backoff, interval, least, most, in_rate] = scale;
  const bool dynamic = kind == LossScale::Kind::dynamic;
  return fmt::format("{} {}, growth {}, backoff {}, interval {}, floor {}, ceiling {}, in_rate {}",
                     dynamic                          ? "dynamic"
                     : kind == LossScale::Kind::fixed ? "fixed"
                                                      : "none",
                     initial, growth, backoff, interval, least, most, in_rate);
}

/// A Precision, member by member: one that is added must be named here before this compiles.
std::vector<RankFact> precision_facts(const Precision& precision) {
  const auto& [preset, weights, parameters, moments, lists, operators, layers, promote, partials, rounding, overflow,
               stop_on, reproducible, loss_scale, float8_linear, gradient_scales] = precision;
  std::vector<std::string> by_operator;
  for (const auto& [op, compute] : operators) by_operator.push_back(fmt::format("'{}' {}", op, type_text(compute)));
  std::vector<std::string> by_layer;
  for (const auto& [pattern, dtype] : layers) by_layer.push_back(fmt::format("'{}' {}", pattern, name(dtype)));
  std::vector<RankFact> all{fact("precision", preset)};
  const auto add = [&](std::string_view member, std::string text) {
    all.push_back(fact(fmt::format("Precision::{}", member), std::move(text)));
  };
  add("weights", std::string(name(weights)));
  add("parameters", std::string(name(parameters)));
  add("moments", std::string(name(moments)));
  add("lists", fmt::format("products {}, pairs {}, reductions {}, norms {}, others {}", type_text(lists.products),
                           type_text(lists.pairs), type_text(lists.reductions), type_text(lists.norms),
                           type_text(lists.others)));
  add("operators", by_operator.empty() ? "none" : fmt::format("{}", fmt::join(by_operator, ", ")));
  add("layers", by_layer.empty() ? "none" : fmt::format("{}", fmt::join(by_layer, ", ")));
  add("promote", fmt::format("{}", promote));
  add("partials", fmt::format("matmul {}, conv2d {}", name(partials.matmul), name(partials.conv2d)));
  add("rounding", fmt::format("weights {}, optimizer {}, activations {}, gradients {}", rounding_name(rounding.weights),
                              rounding_name(rounding.optimizer), rounding_name(rounding.activations),
                              rounding_name(rounding.gradients)));
  add("overflow", overflow == Overflow::saturate ? "saturate" : "infinity");
  add("stop_on", fmt::format("overflow {}, invalid {}, divide_by_zero {}", stop_on.overflow, stop_on.invalid,
                             stop_on.divide_by_zero));
  add("reproducible", fmt::format("{}", reproducible));
  add("loss_scale", loss_scale_text(loss_scale));
  add("float8_linear", fmt::format("{}", float8_linear));
  add("gradient_scales", gradient_scales == GradientScales::per_tensor ? "per_tensor" : "none");
  return all;
}

std::string balance_text(const Balance& balance) {
  if (balance.measured) return fmt::format("one by measured times every {} steps", balance.every);
  return balance.shares.empty() ? "equal parts" : fmt::format("{}", fmt::join(balance.shares, ":"));
}

/// Ranks, member by member, likewise.
std::vector<RankFact> exchange_facts(const Ranks& ranks) {
  const auto& [exchange, wire, rounding, compare_every, bucket_bytes, shard_state, sync_every, outer_rate,
               outer_momentum, balance, sync_batch_norm] = ranks;
  return {fact("gradient exchange",
               fmt::format("{}, rounding {}, in buckets of {}", name(wire), rounding_name(rounding), bucket_bytes)),
          fact("comparison of weights", fmt::format("every {} steps", compare_every)),
          fact("sharing of the optimizer's state", shard_state ? "shard_state" : "none"),
          fact("synchronisation of weights",
               fmt::format("every {} steps at rate {} and momentum {}", sync_every, outer_rate, outer_momentum)),
          fact("statistics of batch norm", sync_batch_norm ? "those of all ranks" : "each rank's own"),
          fact("division of micro-batches", balance_text(balance))};
}

std::string outputs_text(Tensor loss, const std::map<std::string, Tensor>& metrics) {
  std::string text = fmt::format("'{}'", loss.name());
  for (const auto& [name, metric] : metrics) text += fmt::format(", {} '{}'", name, metric.name());
  return text;
}

std::string buckets_text(const std::optional<Buckets>& buckets) {
  if (!buckets) return "none";
  std::string text = fmt::format("one by '{}' up to {}", buckets->field, buckets->longest);
  for (const Bucket& bucket : buckets->shorter) {
    text += fmt::format(", {} of checksum {:016x}", bucket.length,
                        hash_of_text(to_string(*bucket.graph) + outputs_text(bucket.loss, bucket.metrics)));
  }
  return text;
}

/// How the inputs are fed, without the augmentation.
std::string feed_text(const step::StepGraph& lowered) {
  if (!lowered.samples) return "none";
  std::vector<std::string> inputs;
  for (const step::FieldInput& input : lowered.samples->fields) {
    inputs.push_back(fmt::format("'{}' of '{}' with mean {} and std {}", lowered.ir.values[input.input].name,
                                 input.field, fmt::join(input.mean, " "), fmt::join(input.stddev, " ")));
  }
  return fmt::format("{}", fmt::join(inputs, ", "));
}

/// Of the feed's samples, member by member.
std::string augmentation_text(const TrainerOptions& options) {
  if (!options.feed) return "none";
  const auto& [crop_padding, flip, brightness, saturation, hue, contrast, cutout] = options.feed->augmentation;
  return fmt::format("crop_padding {}, flip {}, brightness {}, saturation {}, hue {}, contrast {}, cutout {}",
                     crop_padding, flip, brightness, saturation, hue, contrast, cutout);
}

/// What a set's samples are, with all that they hold.
std::string fields_text(const std::vector<Field>& fields) {
  std::string text;
  for (const Field& field : fields) {
    text += fmt::format("{} {} {} {} {} {:016x}\n", field.name, name(field.type), to_string(field.shape), field.first,
                        field.step(), hash_of(field.data));
  }
  return text;
}

std::string set_text(std::string_view what, const std::string& set, std::int64_t count, std::uint64_t checksum) {
  return fmt::format("{}'{}' of {} samples, checksum {:016x}", what, set, count, checksum);
}

/// Of a source, which makes its samples itself, only what they look like.
std::string data_text(const TrainerOptions& options) {
  const auto described = [](std::string_view what, const std::string& set, std::int64_t count,
                            const std::vector<Field>& fields) {
    return set_text(what, set, count, hash_of_text(fields_text(fields)));
  };
  if (const Source* source = options.source) return described("source ", source->name, source->count, source->fields);
  const Dataset* set = options.training_set;
  return set == nullptr ? "none" : described("", set->name, set->count, set->all_fields());
}

std::string optimizers_text(const step::StepGraph& lowered) {
  std::string text;
  for (const Optimizer& optimizer : lowered.optimizers) {
    const std::vector<float>& rates = optimizer->rate().rates;
    text += fmt::format("{}{} at rate {}, schedule {:08x}", text.empty() ? "" : ", ", optimizer->name(), rates.front(),
                        static_cast<std::uint32_t>(hash_of(std::as_bytes(std::span(rates)))));
  }
  return text;
}

/// What a kernel of updates computes, its SPIR-V included where it is an application's own.
std::string kernel_text(const UpdateKernel& kernel) {
  std::string text =
      fmt::format("{} {}; {}", kernel.shader, fmt::join(kernel.constants, " "), fmt::join(kernel.numbers, " "));
  for (const auto& [storage, words] : kernel.spirv) {
    text += fmt::format(" {} {:016x}", storage, hash_of(std::as_bytes(std::span(words))));
  }
  return text;
}

/// What one of the optimizers makes of gradients: its kernel, or its operators for each of its parameters.
std::string update_text(const step::StepGraph& lowered, std::size_t index) {
  const UpdateRule& rule = *lowered.optimizers[index];
  std::string text = fmt::format("\n{} ", rule.weight_decay());
  if (!rule.in_operators()) return text + kernel_text(rule.kernel({}));
  for (std::size_t i = 0; i < lowered.parameters.size(); ++i) {
    const state::Training& training = lowered.training[i];
    if (training.frozen || training.optimizer != index) continue;
    const graph::Value& parameter = lowered.ir.values[lowered.parameters[i]];
    const step::UpdateGraph update = step::update_graph(rule, parameter.name, parameter.type.shape);
    text += graph::text_of(*update.ir);
    for (const graph::ValueId result : update.results) text += update.ir->values[result].name + "\n";
  }
  return text;
}

/// The numbers that optimizers compute with, and what else the update is made of.
RankFact update_fact(const step::StepGraph& lowered, const TrainerOptions& options) {
  std::string text = fmt::format("{} {} {} {} {}", options.clip_norm, options.gradient_norm, options.ema_decay,
                                 options.weight_limit, options.decay_vectors);
  for (std::size_t i = 0; i < lowered.optimizers.size(); ++i) text += update_text(lowered, i);
  for (std::size_t i = 0; i < lowered.parameters.size(); ++i) {
    const state::Training& training = lowered.training[i];
    text += fmt::format("\n{} {} {} {} {}", lowered.ir.values[lowered.parameters[i]].name, training.optimizer,
                        training.rate, training.weight_decay, training.frozen);
  }
  const std::uint64_t hash = hash_of_text(text);
  return {"setting of optimizer, clipping and averages", fmt::format("those of checksum {:016x}", hash), hash};
}

}  // namespace

std::vector<RankFact> rank_facts(const Graph& graph, const step::StepGraph& lowered, const TrainerOptions& options) {
  std::vector<RankFact> all{
      fact("version", std::string(version())),
      fact("model", fmt::format("'{}', checksum {:016x}", options.model, hash_of_text(to_string(graph)))),
      fact("loss with its metrics", outputs_text(options.loss, options.metrics)),
      fact("division into buckets", buckets_text(options.buckets)),
      fact("recomputation", options.recompute.empty() ? "none" : fmt::format("of '{}'", options.recompute))};
  const auto append = [&](std::vector<RankFact> more) { std::ranges::move(more, std::back_inserter(all)); };
  append(precision_facts(options.precision));
  append({fact("optimizer", optimizers_text(lowered)), update_fact(lowered, options),
          fact("seed", fmt::format("{}", options.seed)),
          fact("number of micro-batches", fmt::format("{}", options.accumulate)), fact("feed", feed_text(lowered)),
          fact("augmentation", augmentation_text(options)), fact("training set", data_text(options))});
  append(exchange_facts(options.ranks));
  return all;
}

RankFact set_fact(const Dataset& set, const std::vector<Field>& fed, std::span<const std::uint32_t> buckets) {
  const std::uint64_t hash =
      hash_of_text(fmt::format("{} {} {:016x}", set.count, fields_text(fed), hash_of(std::as_bytes(buckets))));
  return {"set", set_text("", set.name, set.count, hash), hash};
}

}  // namespace halfstep::train

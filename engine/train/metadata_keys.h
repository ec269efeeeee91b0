#pragma once

#include <string_view>

/// The entries of a file's metadata that a trainer writes.
namespace halfstep::train::keys {

inline constexpr const char* format = "format";
inline constexpr const char* version = "version";
inline constexpr const char* precision = "precision";
inline constexpr const char* optimizer = "optimizer";
inline constexpr const char* seed = "seed";
inline constexpr const char* step = "step";
inline constexpr const char* applied = "applied";
inline constexpr const char* average_decay = "average_decay";
inline constexpr const char* loss_scale = "loss_scale";
inline constexpr const char* loss_scale_in_rate = "loss_scale_in_rate";
inline constexpr const char* loss_scale_dynamic = "loss_scale_dynamic";
inline constexpr const char* model = "model";
inline constexpr const char* classes = "classes";
inline constexpr const char* input = "input";
inline constexpr const char* mean = "mean";
inline constexpr const char* deviation = "deviation";
inline constexpr const char* samples = "samples";
inline constexpr const char* batch = "batch";
inline constexpr const char* epoch = "epoch";
inline constexpr const char* epoch_step = "epoch_step";
/// The batches that all ranks have asked a source for.
inline constexpr const char* source_batches = "source_batches";
/// How many ranks, which make steps by themselves, have written the file.
inline constexpr const char* ranks = "ranks";

/// All of them: an application's notes have other names, since load() would take them for a trainer's.
inline constexpr std::string_view all[] = {format,
                                           version,
                                           precision,
                                           optimizer,
                                           seed,
                                           step,
                                           applied,
                                           average_decay,
                                           loss_scale,
                                           loss_scale_in_rate,
                                           loss_scale_dynamic,
                                           model,
                                           classes,
                                           input,
                                           mean,
                                           deviation,
                                           samples,
                                           batch,
                                           epoch,
                                           epoch_step,
                                           source_batches,
                                           ranks};

}  // namespace halfstep::train::keys

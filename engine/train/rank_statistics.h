#pragma once

#include <halfstep/exchange.h>

#include <span>

#include "step/step_program.h"

namespace halfstep::train {

/// Replaces a rank's own statistics by what all ranks have together, the same bits on each. Called by every rank.
/// Blocks, also until sums that were begun before are complete.
void exchange_statistics(Exchange& exchange, const step::ExchangedStatistics& what, std::span<float> values);

}  // namespace halfstep::train

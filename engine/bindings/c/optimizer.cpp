#include <halfstep/optimizer.h>

#include "c/handles.h"

namespace halfstep::c {
namespace {

constexpr std::uint32_t bit(hs_optimizer_kind kind) {
  return 1U << static_cast<std::uint32_t>(kind);
}

/// Throws Error if a member is set that the kind does not have.
void check_members(const hs_optimizer& given) {
  struct Member {
    const char* name;
    bool set;
    std::uint32_t kinds;
  };
  const std::array members{
      Member{"momentum", given.momentum != 0, bit(HS_SGD) | bit(HS_RMSPROP) | bit(HS_MUON)},
      Member{"beta1", given.beta1 != 0, bit(HS_ADAM) | bit(HS_ADAMW) | bit(HS_LION)},
      Member{"beta2", given.beta2 != 0, bit(HS_ADAM) | bit(HS_ADAMW) | bit(HS_LION)},
      Member{"alpha", given.alpha != 0, bit(HS_RMSPROP)},
      Member{"epsilon", given.epsilon != 0, bit(HS_ADAM) | bit(HS_ADAMW) | bit(HS_RMSPROP)},
      Member{"nesterov", given.nesterov != HS_DEFAULT, bit(HS_SGD) | bit(HS_MUON)},
      Member{"centered", given.centered != HS_DEFAULT, bit(HS_RMSPROP)},
  };
  for (const Member& member : members) {
    if (member.set && (member.kinds & bit(given.kind)) == 0) {
      fail("optimizer", std::string("expected members of its kind only, got ") + member.name);
    }
  }
}

Schedule schedule_of(const hs_optimizer& given, const Schedule& otherwise) {
  const std::span<const float> table = list(given.rates, given.rate_count, "rates");
  if (table.empty()) return given.rate == 0 ? otherwise : Schedule(number_or(given.rate, 0.0F));
  if (given.rate != 0) fail("optimizer", "expected either a rate or a table of rates, got both");
  return Schedule(std::vector<float>(table.begin(), table.end()));
}

/// The members that every kind has.
template <typename Kind>
Kind begun(const hs_optimizer& given) {
  Kind kind;
  kind.rate = schedule_of(given, kind.rate);
  kind.weight_decay = number_or(given.weight_decay, kind.weight_decay);
  return kind;
}

template <typename Kind>
Kind with_betas(const hs_optimizer& given) {
  Kind kind = begun<Kind>(given);
  kind.beta1 = number_or(given.beta1, kind.beta1);
  kind.beta2 = number_or(given.beta2, kind.beta2);
  if constexpr (requires { kind.epsilon; }) kind.epsilon = number_or(given.epsilon, kind.epsilon);
  return kind;
}

template <typename Kind>
Kind with_momentum(const hs_optimizer& given) {
  Kind kind = begun<Kind>(given);
  kind.momentum = number_or(given.momentum, kind.momentum);
  kind.nesterov = chosen(given.nesterov, kind.nesterov);
  return kind;
}

RmsProp rms_prop(const hs_optimizer& given) {
  RmsProp kind = begun<RmsProp>(given);
  kind.alpha = number_or(given.alpha, kind.alpha);
  kind.epsilon = number_or(given.epsilon, kind.epsilon);
  kind.momentum = number_or(given.momentum, kind.momentum);
  kind.centered = chosen(given.centered, kind.centered);
  return kind;
}

}  // namespace

Optimizer optimizer_of(const hs_optimizer* options) {
  const hs_optimizer given = read(options, "optimizer");
  if (given.kind < HS_SGD || given.kind > HS_MUON) {
    fail("optimizer", "expected a value of hs_optimizer_kind, got " + std::to_string(static_cast<int>(given.kind)));
  }
  check_members(given);
  switch (given.kind) {
    case HS_SGD:
      return with_momentum<Sgd>(given);
    case HS_ADAM:
      return with_betas<Adam>(given);
    case HS_ADAMW:
      return with_betas<AdamW>(given);
    case HS_LION:
      return with_betas<Lion>(given);
    case HS_RMSPROP:
      return rms_prop(given);
    case HS_MUON:
      break;
  }
  return with_momentum<Muon>(given);
}

namespace {

/// Writes what `make` returns, of `steps` rates.
template <typename Make>
hs_status write_rates(std::int64_t steps, float* rates, Make&& make) noexcept {
  return guarded([&] {
    const Schedule schedule = make();
    const std::size_t count =
        std::min(schedule.rates.size(), static_cast<std::size_t>(std::max<std::int64_t>(steps, 0)));
    std::ranges::copy_n(schedule.rates.begin(), static_cast<std::ptrdiff_t>(count),
                        &given(rates, "room for the rates"));
    std::fill(rates + count, rates + steps, schedule.rates.back());
  });
}

}  // namespace
}  // namespace halfstep::c

using namespace halfstep;
using namespace halfstep::c;

hs_status hs_schedule_step(float rate, int64_t every, float factor, int64_t steps, float* rates) {
  return write_rates(steps, rates, [&] { return Schedule::step(rate, every, factor, steps); });
}

hs_status hs_schedule_linear(float from, float to, int64_t steps, float* rates) {
  return write_rates(steps, rates, [&] { return Schedule::linear(from, to, steps); });
}

hs_status hs_schedule_cosine(float peak, int64_t warmup, int64_t steps, float floor, float* rates) {
  return write_rates(steps, rates, [&] { return Schedule::cosine(peak, warmup, steps, floor); });
}

hs_status hs_schedule_polynomial(float rate, float power, float floor, int64_t steps, float* rates) {
  return write_rates(steps, rates, [&] { return Schedule::polynomial(rate, steps, power, floor); });
}

hs_status hs_schedule_one_cycle(float peak, float rise, int64_t steps, float* rates) {
  return write_rates(steps, rates, [&] { return Schedule::one_cycle(peak, steps, rise); });
}

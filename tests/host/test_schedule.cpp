#include <halfstep/error.h>
#include <halfstep/schedule.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <utility>

using namespace halfstep;

namespace {

float at(const Schedule& schedule, std::size_t step) {
  return schedule.rates.at(std::min(step, schedule.rates.size() - 1));
}

}  // namespace

TEST_CASE("a multi-step schedule drops at its milestones") {
  const Schedule schedule = Schedule::multi_step(1, {3, 5}, 0.5F, 8);
  CHECK(schedule.rates == std::vector<float>{1, 1, 1, 0.5F, 0.5F, 0.25F, 0.25F, 0.25F});
  CHECK(Schedule::multi_step(2, {}, 0.5F, 2).rates == std::vector<float>{2, 2});
  CHECK_THROWS_WITH_AS(Schedule::multi_step(1, {5, 5}, 0.5F, 8), doctest::Contains("milestones"), Error);
  CHECK_THROWS_AS(Schedule::multi_step(1, {-1, 5}, 0.5F, 8), Error);
}

TEST_CASE("a polynomial schedule ends at its floor") {
  const Schedule schedule = Schedule::polynomial(4, 4, 2, 0.5F);
  CHECK(schedule.rates == std::vector<float>{4, 2.25F, 1, 0.5F, 0.5F});
  CHECK(Schedule::polynomial(1, 4).rates == std::vector<float>{1, 0.75F, 0.5F, 0.25F, 0});
  CHECK_THROWS_AS(Schedule::polynomial(1, 4, 0), Error);
}

TEST_CASE("a cosine schedule ends at its floor, and stays there") {
  const Schedule schedule = Schedule::cosine(1, 0, 4, 0.5F);
  CHECK(at(schedule, 0) == 1);
  CHECK(at(schedule, 2) == doctest::Approx(0.75));
  for (const std::size_t step : {4U, 5U, 100U}) CHECK(at(schedule, step) == 0.5F);
  CHECK(Schedule::cosine(1, 2, 4).rates.back() == 0);
  CHECK(at(Schedule::cosine(1, 4, 4), 3) == 1);
  CHECK(at(Schedule::cosine(1, 4, 4), 4) == 1);
}

TEST_CASE("a linear schedule ends where it is to, however far below its begin") {
  CHECK(Schedule::linear(0.1F, 1e-9F, 1000).rates.back() == 1e-9F);
}

TEST_CASE("one cycle rises, peaks and falls to almost nothing, as PyTorch's does") {
  // torch.optim.lr_scheduler.OneCycleLR(max_lr=1, total_steps=10) with its defaults.
  const Schedule schedule = Schedule::one_cycle(1, 10);
  const float wanted[] = {0.04F,     0.52F,     1,           0.95048446F, 0.8117457F,
                          0.611262F, 0.388742F, 0.18825835F, 0.04951937F, 4e-6F};
  for (std::size_t i = 0; i < 10; ++i) CHECK(at(schedule, i) == doctest::Approx(wanted[i]).epsilon(1e-4));
  // pct_start=0.7, of which f32 has a little less, and 12 steps, of which 0.3 end between two.
  const Schedule late = Schedule::one_cycle(1, 10, 0.7F);
  for (const auto& [i, rate] : {std::pair{5, 0.935692194F}, {6, 1.0F}, {7, 0.750001F}}) {
    CHECK(at(late, static_cast<std::size_t>(i)) == doctest::Approx(rate).epsilon(1e-4));
  }
  const Schedule between = Schedule::one_cycle(1, 12);
  for (const auto& [i, rate] : {std::pair{1, 0.349789654F}, {2, 0.879285159F}, {3, 0.994415435F}, {11, 4e-6F}}) {
    CHECK(at(between, static_cast<std::size_t>(i)) == doctest::Approx(rate).epsilon(1e-4));
  }
  // A rise of less than a step: after its first rate it only falls. One of none: it begins to fall at its peak.
  const Schedule brief = Schedule::one_cycle(1, 5);
  const float briefly[] = {0.04F, 0.950484F, 0.611260F, 0.188255F, 4e-6F};
  for (std::size_t i = 0; i < 5; ++i) CHECK(at(brief, i) == doctest::Approx(briefly[i]).epsilon(1e-4));
  CHECK(at(Schedule::one_cycle(1, 2, 0.5F), 0) == 1);
  CHECK_THROWS_AS(Schedule::one_cycle(1, 10, 1), Error);
  CHECK_THROWS_AS(Schedule::one_cycle(1, 0), Error);
}

TEST_CASE("warmup scales the first rates of any schedule") {
  CHECK(Schedule(2).with_warmup(4).rates == std::vector<float>{0.5F, 1, 1.5F, 2, 2});
  const Schedule schedule = Schedule::step(1, 2, 0.5F, 4).with_warmup(2);
  CHECK(schedule.rates == std::vector<float>{0.5F, 1, 0.5F, 0.5F});
  CHECK(Schedule(3).with_warmup(0).rates.front() == 3);
  CHECK_THROWS_AS(Schedule(1).with_warmup(-1), Error);
  CHECK(Schedule::polynomial(4, 4).after_warmup(2).rates == std::vector<float>{2, 4, 4, 3, 2, 1, 0});
  CHECK(Schedule::polynomial(4, 4).after_warmup(0).rates == Schedule::polynomial(4, 4).rates);
  CHECK_THROWS_AS(Schedule(1).after_warmup(-1), Error);
  CHECK(Schedule(std::vector<float>{}).with_warmup(5).rates.empty());
}

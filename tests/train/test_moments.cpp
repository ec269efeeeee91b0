// How the moments of optimizers are kept: rounded, beyond their type's range, and over files.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <vector>

#include "base/philox.h"
#include "host/temporary_folder.h"
#include "io/safetensors.h"
#include "reference/narrow.h"
#include "train/small_training.h"
#include "train/stored_values.h"

namespace halfstep {

using testing::plain;
using testing::Pull;

TEST_CASE("moments rounded stochastically have the bits that seed, step, stream and place call for") {
  constexpr std::uint32_t count = 37;
  constexpr std::uint32_t stream = 3;  // STREAM_MOMENT_ROUNDING
  Precision precision = plain(Precision::mixed());
  precision.moments = DType::f16;
  precision.rounding.optimizer = Rounding::stochastic;
  const auto rounded = [](float value, std::uint32_t quad, std::uint32_t step, std::uint32_t i) {
    const auto noise = process::philox4x32({quad, stream, step, 0}, process::philox_key(42));
    return static_cast<float>(reference::half.value(reference::half.stochastic_bits(value, noise[i % 4])));
  };
  SUBCASE("momentum") {
    Pull pull(count, 0, Sgd{.rate = 1, .momentum = 0.3F}, precision, 42);
    pull.run(1, 2);  // the momentum is 1, then 1.3
    const std::vector<float> before = pull.weights();
    pull.step(0);
    const std::vector<float> after = pull.weights();
    for (std::uint32_t i = 0; i < count; ++i) {
      const float moved = 0.3F * rounded(1.3F, i / 4, 1, i);
      CHECK(after[i] == before[i] - moved);
    }
  }
  SUBCASE("both of Adam") {
    const TemporaryFolder folder;
    const std::filesystem::path path = folder.path() / "moments.safetensors";
    Pull pull(count, 0, Adam{}, precision, 42);
    pull.step(1);
    pull.trainer().save(path);
    const io::SafetensorsFile file(path);
    const auto check = [&](const char* name, float value, std::uint32_t offset) {
      CAPTURE(name);
      const auto found = std::ranges::find(file.tensors(), name, &io::StoredTensor::name);
      REQUIRE(found != file.tensors().end());
      const std::vector<float> got = train::decode(*found, {count}, {});
      for (std::uint32_t i = 0; i < count; ++i) CHECK(got[i] == rounded(value, 2 * (i / 4) + offset, 0, i));
    };
    check("w.first_moment", 1 - 0.9F, 0);
    check("w.second_moment", 1 - 0.999F, 1);
  }
}

TEST_CASE("moments kept in f16 are rounded as they are asked to be") {
  const auto moved = [](DType moments, Rounding rounding) {
    Precision precision = plain(Precision::mixed());
    precision.moments = moments;
    precision.rounding.optimizer = rounding;
    // The momentum's limit is 1 / (1 - 0.99) = 100; in f16 the last steps towards it are lost to rounding.
    Pull pull(512, 0, Sgd{.rate = 0x1p-10F, .momentum = 0.99609375F}, precision);
    pull.run(1, 200);
    double total = 0;
    for (const float w : pull.weights()) total += static_cast<double>(w);
    return -total / 512;
  };
  const double exact = moved(DType::f32, Rounding::nearest);
  const double nearest = std::abs(moved(DType::f16, Rounding::nearest) - exact);
  const double stochastic = std::abs(moved(DType::f16, Rounding::stochastic) - exact);
  CHECK(nearest > 0);
  CHECK(stochastic < nearest / 2);
}

TEST_CASE("moments beyond f16 are its largest number, as no loss scale learns of them") {
  const auto narrow = [](Overflow overflow) {
    Precision precision = plain(Precision::mixed());
    precision.moments = DType::f16;
    precision.overflow = overflow;
    return precision;
  };
  for (const Overflow overflow : {Overflow::infinity, Overflow::saturate}) {
    Pull pull(5, 0, Sgd{.rate = 0x1p-10F, .momentum = 0.5F}, narrow(overflow));
    pull.run(60000, 2);  // the momentum is 60000, then 90000
    const std::vector<float> before = pull.weights();
    pull.step(0);
    for (std::size_t i = 0; i < before.size(); ++i) CHECK(before[i] - pull.weights()[i] == 0x1p-11F * 65504);
  }
  // An infinite average of squares would hold its weight for good.
  for (const Optimizer& optimizer : {Optimizer(Adam{.rate = 0.01F}), Optimizer(RmsProp{.rate = 0.01F})}) {
    Pull pull(5, 0, optimizer, narrow(Overflow::infinity));
    pull.step(60000);
    const std::vector<float> before = pull.weights();
    pull.run(100, 20);
    for (std::size_t i = 0; i < before.size(); ++i) CHECK(pull.weights()[i] < before[i]);
  }
}

TEST_CASE("averages of squares beyond f32 are its largest number, and their weights move on") {
  const Optimizer optimizers[] = {Adam{.rate = 0.01F, .beta2 = 0.5F}, RmsProp{.rate = 0.01F, .alpha = 0.5F},
                                  RmsProp{.rate = 0.01F, .alpha = 0.5F, .centered = true}};
  for (const Precision& precision : {Precision::float32(), plain(Precision::bfloat16())}) {
    for (const Optimizer& optimizer : optimizers) {
      CAPTURE(precision.name);
      CAPTURE(optimizer->name());
      Pull pull(5, 0, optimizer, precision);
      pull.step(3e19F);
      CHECK(pull.trainer().report().applied == 1);
      pull.run(1, 200);  // 2^-200 of it is left
      for (const float w : pull.weights()) CHECK(w < -0.1F);
    }
  }
}

TEST_CASE("infinite averages of squares from a file wear off") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "checkpoint.safetensors";
  Pull pull(4, 0, RmsProp{.rate = 0.01F, .alpha = 0.5F}, Precision::float32());
  pull.step(1);
  pull.trainer().save(path);
  const io::SafetensorsFile saved(path);
  std::vector<io::StoredTensor> tensors = saved.tensors();
  const auto found = std::ranges::find(tensors, "w.square_average", &io::StoredTensor::name);
  REQUIRE(found != tensors.end());
  const std::vector<float> infinite(4, std::numeric_limits<float>::infinity());
  found->data = std::as_bytes(std::span(infinite));
  io::write_safetensors(folder.path() / "infinite", tensors, saved.metadata());
  pull.trainer().load(folder.path() / "infinite");
  pull.run(1, 200);
  for (const float w : pull.weights()) CHECK(w < -0.1F);
}

TEST_CASE("with the scale in the rate, momentum keeps the scale, and the weights move as far") {
  const auto moved = [](bool in_rate, const Sgd& sgd, float start, float pull_by, float limit = 0) {
    Precision precision = plain(Precision::mixed());
    precision.loss_scale = LossScale{.kind = LossScale::Kind::fixed, .initial = 64, .in_rate = in_rate};
    precision.moments = DType::f16;
    Pull pull(4, start, sgd, precision, 5, [=](TrainerOptions& options) { options.clip_norm = limit; });
    pull.run(pull_by, 3);
    return static_cast<double>(pull.weights()[0]);
  };
  // Momenta of 1, 1.75 and 2.3125 times 2^-23, which is twice f16's smallest number; and 64 times as large.
  const Sgd momentum{.rate = 0.5F, .momentum = 0.75F};
  const double exact = -0.5 * (1 + 1.75 + 2.3125) * 0x1p-23;
  const auto error = [&](bool in_rate) { return std::abs(moved(in_rate, momentum, 0, 0x1p-23F) / exact - 1); };
  CHECK(error(true) < 1e-6);
  CHECK(error(false) > 0.01);
  const Sgd decay{.rate = 0.5F, .weight_decay = 0.5F};
  CHECK(moved(true, decay, 1, 0.25F) == moved(false, decay, 1, 0.25F));
  CHECK(moved(true, decay, 1, 0.25F, 0.125F) == moved(false, decay, 1, 0.25F, 0.125F));
  CHECK(moved(true, decay, 1, 0.25F, 0.125F) != moved(true, decay, 1, 0.25F));
}

TEST_CASE("momentum goes on from a file under another loss scale, in the rate or not") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "checkpoint.safetensors";
  const auto pull = [](LossScale scale) {
    Precision precision = plain(Precision::mixed());
    precision.loss_scale = scale;
    return Pull(4, 1, Sgd{.rate = 0.01F, .momentum = 0.75F}, precision);
  };
  const auto in_rate = [](float scale) {
    return LossScale{.kind = LossScale::Kind::fixed, .initial = scale, .in_rate = true};
  };
  // Of scales that are powers of two, the same bits.
  const LossScale scales[] = {LossScale::none(), LossScale::fixed(8), LossScale::dynamic(1024),
                              in_rate(8),        in_rate(64),         in_rate(1024)};
  Pull whole = pull(LossScale::none());
  whole.run(0.3F, 9);
  for (const LossScale& before : scales) {
    Pull first = pull(before);
    first.run(0.3F, 5);
    first.trainer().save(path);
    for (const LossScale& after : scales) {
      CAPTURE(before.initial);
      CAPTURE(before.in_rate);
      CAPTURE(after.initial);
      CAPTURE(after.in_rate);
      Pull resumed = pull(after);
      resumed.trainer().load(path);
      resumed.run(0.3F, 4);
      CHECK(resumed.weights() == whole.weights());
    }
  }
}

TEST_CASE("moments from a file that f16 does not reach are its largest number") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "checkpoint.safetensors";
  const Sgd momentum{.rate = 0x1p-10F, .momentum = 0.5F};
  Precision precision = plain(Precision::mixed());
  Pull wide(5, 0, momentum, precision);
  wide.run(60000, 2);
  wide.trainer().save(path);
  precision.moments = DType::f16;
  Pull narrow(5, 0, momentum, precision);
  narrow.trainer().load(path);
  const std::vector<float> before = narrow.weights();
  narrow.step(0);
  for (std::size_t i = 0; i < before.size(); ++i) CHECK(before[i] - narrow.weights()[i] == 0x1p-11F * 65504);
}

}  // namespace halfstep

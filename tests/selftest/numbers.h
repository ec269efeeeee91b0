#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "selftest/bed.h"
#include "selftest/cases.h"

namespace halfstep::selftest {

/// A format of floating numbers: f32's or f16's.
struct Format {
  int fraction_bits;
  int least_exponent;  ///< of a normal number
  bool preserves_denormals;
  bool rounds_to_nearest;
  bool preserves_nan_inf;

  double unit_in_last_place(double value) const;
  double least_normal() const;
  double largest() const;
  /// Zero if a device that flushes denormals takes it for that.
  double flushed(double value) const;
  /// The number nearest to it, ties to even.
  double nearest(double value) const;
};

/// What a device promises of f32, and of f16.
Format single_format();
Format half_format();

/// An operation on up to three numbers.
struct Operation {
  std::string name;
  std::function<double(double, double, double)> exact;
  /// Units in the last place that the result may be off; 0: the nearest number, or if the device does not promise that
  /// one of the two next to it.
  std::function<double(double a, double b)> allowed;
  double absolute = 0;  ///< error that is allowed besides
  /// Which inputs it is defined for; all if empty.
  std::function<bool(double a, double b)> domain = {};
  bool rounds_twice = false;  ///< it is a * b + c, whose product may be rounded by itself
};

/// Numbers of a format as f32 bits: special ones, ties, neighbours, and random bits.
Words test_numbers(const Format& format, std::size_t count, std::uint32_t seed);

/// The results of an operation against the exact ones, all as f32 bits; adds what is found to the report.
void compare(CaseReport& report, const Operation& operation, const Format& format, const std::vector<Words>& inputs,
             const Words& results);

float float_of(std::uint32_t bits);
std::uint32_t bits_of(float value);

/// The next of a sequence of random words.
std::uint32_t next_random(std::uint32_t& state);

}  // namespace halfstep::selftest

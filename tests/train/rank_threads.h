#pragma once

#include <halfstep/halfstep.h>

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Ranks of a training as threads of this process, or as one that is imagined.
namespace halfstep::testing {

/// Runs a function for each rank, in a thread of its own, and returns when all have ended. What a rank would wait for
/// in vain, since the function has ended on another one, is an Error.
void on_ranks(int count, const std::function<void(int rank, const Ranks& ranks)>& body);

/// What `body` returns for each rank.
template <typename Result>
std::vector<Result> results_of_ranks(int count, const std::function<Result(int rank, const Ranks& ranks)>& body) {
  std::vector<Result> results(static_cast<std::size_t>(count));
  on_ranks(count, [&](int rank, const Ranks& ranks) { results[static_cast<std::size_t>(rank)] = body(rank, ranks); });
  return results;
}

/// What Mirror::abort() throws.
struct Ended {
  std::string message;
  int exit_code;
};

/// Another rank that does as this one does: sums are twice this one's.
class Mirror : public Exchange {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  void begin_sum(std::span<float> values, const WireFormat&) override {
    for (float& value : values) value *= 2;
  }
  void progress() override {}
  void wait() override {}
  void broadcast(std::span<std::byte>, int) override {}
  void barrier() override {}
  [[noreturn]] void abort(std::string_view message, int exit_code) override {
    throw Ended{std::string(message), exit_code};
  }
  ExchangeCosts costs() const override { return {}; }
};

/// Passes on to another exchange what that must have, and composes the rest of it.
class PassingExchange : public Exchange {
 public:
  explicit PassingExchange(std::shared_ptr<Exchange> whole) : whole_(std::move(whole)) {}

  int rank() const override { return whole_->rank(); }
  int size() const override { return whole_->size(); }
  void begin_sum(std::span<float> values, const WireFormat& format) override { whole_->begin_sum(values, format); }
  void progress() override { whole_->progress(); }
  void wait() override { whole_->wait(); }
  void broadcast(std::span<std::byte> bytes, int root) override { whole_->broadcast(bytes, root); }
  void barrier() override { whole_->barrier(); }
  [[noreturn]] void abort(std::string_view message, int code) override {
    whole_->abort(message, code);
    std::terminate();
  }
  ExchangeCosts costs() const override { return whole_->costs(); }

 private:
  std::shared_ptr<Exchange> whole_;
};

}  // namespace halfstep::testing

#include "train/rank_threads.h"

#include <halfstep/error.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string_view>
#include <thread>

namespace halfstep::testing {
namespace {

/// Where the ranks of a training meet.
class Place {
 public:
  explicit Place(int ranks) : sums(static_cast<std::size_t>(ranks)) {}

  /// Blocks until every rank is here. Throws Error where one has left.
  void meet() {
    std::unique_lock lock(mutex_);
    const std::size_t meeting = meetings_;
    if (++here_ == sums.size()) {
      here_ = 0;
      ++meetings_;
      all_.notify_all();
    } else {
      all_.wait(lock, [&] { return meetings_ != meeting || left_; });
    }
    if (meetings_ == meeting) fail("test", "expected every rank to take part, got one that has ended");
  }
  /// A rank has ended.
  void leave() {
    const std::lock_guard lock(mutex_);
    left_ = true;
    all_.notify_all();
  }

  std::vector<std::vector<std::span<float>>> sums;  ///< that are under way, of each rank
  std::span<const std::byte> sent;

 private:
  std::mutex mutex_;
  std::condition_variable all_;
  std::size_t here_ = 0;
  std::size_t meetings_ = 0;
  bool left_ = false;
};

class RankThread final : public Exchange {
 public:
  RankThread(Place& place, int rank) : place_(place), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(place_.sums.size()); }
  void begin_sum(std::span<float> values, const WireFormat&) override { own().push_back(values); }
  void progress() override {}
  void wait() override {
    place_.meet();
    if (rank_ == 0) add();
    place_.meet();
    own().clear();
    place_.meet();
  }
  void broadcast(std::span<std::byte> bytes, int root) override {
    if (rank_ == root) place_.sent = bytes;
    place_.meet();
    if (rank_ != root) std::ranges::copy(place_.sent, bytes.begin());
    place_.meet();
  }
  void barrier() override { place_.meet(); }
  [[noreturn]] void abort(std::string_view, int) override { std::terminate(); }
  ExchangeCosts costs() const override { return {}; }

 private:
  std::vector<std::span<float>>& own() { return place_.sums[static_cast<std::size_t>(rank_)]; }
  void add() {
    for (std::size_t i = 0; i < own().size(); ++i) {
      for (std::size_t j = 0; j < own()[i].size(); ++j) {
        float sum = own()[i][j];
        for (std::size_t r = 1; r < place_.sums.size(); ++r) sum += place_.sums[r][i][j];
        for (auto& of : place_.sums) of[i][j] = sum;
      }
    }
  }

  Place& place_;
  int rank_;
};

}  // namespace

void on_ranks(int count, const std::function<void(int rank, const Ranks& ranks)>& body) {
  Place place(count);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < count; ++rank) {
    threads.emplace_back([&place, &body, rank] {
      body(rank, Ranks(std::make_shared<RankThread>(place, rank)));
      place.leave();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace halfstep::testing

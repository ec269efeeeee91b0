// The exchange over MPI. A sum has two phases: each rank receives its own part of the values from every other one and
// adds them up in the order of ranks; then every rank receives the parts from their owners. A rank sends 2 (N - 1) / N
// times the values' bytes, as in a ring, and the order of addition depends neither on N's factors nor on MPI.
#include <halfstep/error.h>
#include <halfstep/mpi.h>

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <list>
#include <numeric>
#include <thread>
#include <vector>

#include "dist/wire.h"

namespace halfstep {
namespace {

using Clock = std::chrono::steady_clock;

void check(int result, const char* what) {
  if (result == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(result, text.data(), &length);
  fail(ErrorCode::system, "exchange", fmt::format("expected {} to succeed, got {}", what, text.data()));
}

/// Consecutive values, of which each rank has a part: where the ranks' parts begin, and the end.
std::vector<std::size_t> firsts_of(std::span<const std::size_t> ends) {
  std::vector<std::size_t> firsts{0};
  firsts.insert(firsts.end(), ends.begin(), ends.end());
  return firsts;
}

/// Parts of whole blocks, so that the blocks of a part are those of the whole.
std::vector<std::size_t> equal_ends(std::size_t count, std::size_t ranks) {
  const std::size_t blocks = (count + dist::block - 1) / dist::block;
  std::vector<std::size_t> ends;
  for (std::size_t r = 1; r <= ranks; ++r) ends.push_back(std::min(count, blocks * r / ranks * dist::block));
  return ends;
}

/// What lies from `first` on, in `count`, of parts that end at `ends`.
std::vector<std::size_t> within(std::span<const std::size_t> ends, std::size_t first, std::size_t count) {
  std::vector<std::size_t> result;
  for (const std::size_t end : ends) result.push_back(std::clamp(end, first, first + count) - first);
  return result;
}

/// A sum that is under way.
class Sum {
 public:
  /// `scattered`: it ends with each rank's part of the sums.
  Sum(MPI_Comm group, MPI_Comm gather_group, int rank, int size, std::span<float> values,
      std::span<const std::size_t> ends, const WireFormat& format, std::size_t place, bool scattered)
      : group_(group),
        gather_group_(gather_group),
        rank_(rank),
        size_(size),
        values_(values),
        format_(format),
        place_(place),
        firsts_(firsts_of(ends)),
        scattered_(scattered) {
    const auto ranks = static_cast<std::size_t>(size);
    const std::size_t own = part(rank_).size();
    int sent = 0;
    for (int r = 0; r < size_; ++r) {
      const int bytes = static_cast<int>(dist::wire_bytes(format_.type, part(r).size()));
      part_bytes_.push_back(bytes);
      part_places_.push_back(sent);
      sent += bytes;
    }
    own_bytes_.assign(ranks, part_bytes_[static_cast<std::size_t>(rank_)]);
    for (std::size_t r = 0; r < ranks; ++r) own_places_.push_back(static_cast<int>(r) * own_bytes_[r]);
    parts_.resize(static_cast<std::size_t>(sent));
    for (int r = 0; r < size_; ++r) encode(r, static_cast<std::uint32_t>(rank_));
    terms_.resize(ranks * dist::wire_bytes(format_.type, own));
    check(MPI_Ialltoallv(parts_.data(), part_bytes_.data(), part_places_.data(), MPI_BYTE, terms_.data(),
                         own_bytes_.data(), own_places_.data(), MPI_BYTE, group_, &request_),
          "MPI_Ialltoallv");
  }

  /// Bytes that this rank sends in both phases.
  std::uint64_t bytes_sent() const {
    const auto own = static_cast<std::uint64_t>(part_bytes_[static_cast<std::size_t>(rank_)]);
    return parts_.size() - own + (scattered_ ? 0 : own * static_cast<std::uint64_t>(size_ - 1));
  }

  /// Whether the phase that is under way has ended. Each phase has a group of its own: in a group MPI asks every rank
  /// for the same order of operations, and on one rank a sum may be in its second phase before the next sum begins.
  bool phase_ended() {
    int ended = 0;
    check(MPI_Test(&request_, &ended, MPI_STATUS_IGNORE), "MPI_Test");
    return ended != 0;
  }
  void wait_for_phase() { check(MPI_Wait(&request_, MPI_STATUS_IGNORE), "MPI_Wait"); }

  /// After the first phase: adds up, and begins the second one, if there is one.
  void begin_gather() {
    gathering_ = true;
    add_terms();
    if (scattered_) return;
    encode(rank_, static_cast<std::uint32_t>(size_));
    check(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, parts_.data(), part_bytes_.data(), part_places_.data(),
                          MPI_BYTE, gather_group_, &request_),
          "MPI_Iallgatherv");
  }
  bool is_gathering() const { return gathering_; }

  void finish() {
    if (scattered_) return;
    for (int r = 0; r < size_; ++r) dist::decode(wire(r), format_.type, part(r));
  }

 private:
  std::span<float> part(int rank) const {
    const auto r = static_cast<std::size_t>(rank);
    return values_.subspan(firsts_[r], firsts_[r + 1] - firsts_[r]);
  }
  std::span<std::byte> wire(int rank) {
    const auto r = static_cast<std::size_t>(rank);
    return std::span(parts_).subspan(static_cast<std::size_t>(part_places_[r]),
                                     static_cast<std::size_t>(part_bytes_[r]));
  }
  void encode(int rank, std::uint32_t stream) {
    dist::encode(part(rank), format_, stream, place_ + firsts_[static_cast<std::size_t>(rank)], wire(rank));
  }
  void add_terms() {
    const std::span<float> sums = part(rank_);
    std::vector<float> terms(sums.size());
    const auto each = static_cast<std::size_t>(own_bytes_.front());
    for (std::size_t r = 0; r < static_cast<std::size_t>(size_); ++r) {
      dist::decode(std::span(terms_).subspan(r * each, each), format_.type, terms);
      if (r == 0) {
        std::ranges::copy(terms, sums.begin());
      } else {
        dist::add(terms, sums);
      }
    }
  }

  MPI_Comm group_;
  MPI_Comm gather_group_;
  int rank_;
  int size_;
  std::span<float> values_;
  WireFormat format_;
  std::size_t place_;                ///< of the first value in the whole sum
  std::vector<std::size_t> firsts_;  ///< of the part that each rank owns, and the end
  bool scattered_;
  std::vector<int> part_bytes_;   ///< on the wire, of each part
  std::vector<int> part_places_;  ///< in parts_
  std::vector<int> own_bytes_;    ///< of this rank's part, once for each rank
  std::vector<int> own_places_;   ///< in terms_
  std::vector<std::byte> parts_;  ///< this rank's terms of all parts, later all sums
  std::vector<std::byte> terms_;  ///< every rank's terms of this rank's part
  MPI_Request request_ = MPI_REQUEST_NULL;
  bool gathering_ = false;
};

/// Bytes that every rank is about to have, in place. MPI reads the counts and places until they are there.
class Gathering {
 public:
  Gathering(std::span<std::byte> bytes, std::span<const std::size_t> ends, MPI_Comm group) {
    const std::vector<std::size_t> firsts = firsts_of(ends);
    for (std::size_t r = 0; r < ends.size(); ++r) {
      places_.push_back(static_cast<int>(firsts[r]));
      counts_.push_back(static_cast<int>(ends[r] - firsts[r]));
    }
    check(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, bytes.data(), counts_.data(), places_.data(), MPI_BYTE,
                          group, &request_),
          "MPI_Iallgatherv");
  }
  Gathering(const Gathering&) = delete;
  Gathering& operator=(const Gathering&) = delete;

  std::uint64_t bytes_sent(int rank) const {
    return static_cast<std::uint64_t>(counts_[static_cast<std::size_t>(rank)]) * (counts_.size() - 1);
  }
  void wait() { check(MPI_Wait(&request_, MPI_STATUS_IGNORE), "MPI_Wait"); }

 private:
  std::vector<int> counts_;
  std::vector<int> places_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

class Mpi final : public Exchange {
 public:
  Mpi() {
    int initialised = 0;
    check(MPI_Initialized(&initialised), "MPI_Initialized");
    if (initialised == 0) {
      int given = 0;
      check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &given), "MPI_Init_thread");
      finalises_ = true;
    }
    // Messages of an application, and of the broadcasts between sums, do not meet those of sums.
    check(MPI_Comm_dup(MPI_COMM_WORLD, &sums_group_), "MPI_Comm_dup");
    check(MPI_Comm_dup(MPI_COMM_WORLD, &gather_group_), "MPI_Comm_dup");
    check(MPI_Comm_dup(MPI_COMM_WORLD, &parts_group_), "MPI_Comm_dup");
    check(MPI_Comm_dup(MPI_COMM_WORLD, &others_group_), "MPI_Comm_dup");
    for (MPI_Comm group : {sums_group_, gather_group_, parts_group_, others_group_}) {
      check(MPI_Comm_set_errhandler(group, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    }
    check(MPI_Comm_rank(sums_group_, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(sums_group_, &size_), "MPI_Comm_size");
  }
  ~Mpi() override {
    for (MPI_Comm* group : {&sums_group_, &gather_group_, &parts_group_, &others_group_}) MPI_Comm_free(group);
    if (finalises_) MPI_Finalize();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void begin_sum(std::span<float> values, const WireFormat& format) override {
    for_each_piece(values, dist::most_values, [&](std::span<float> piece, std::size_t first) {
      begin(piece, equal_ends(piece.size(), static_cast<std::size_t>(size_)), format, first, false);
    });
  }

  void begin_scattered_sum(std::span<float> values, std::span<const std::size_t> ends,
                           const WireFormat& format) override {
    for_each_piece(values, dist::most_values_of(ends), [&](std::span<float> piece, std::size_t first) {
      begin(piece, within(ends, first, piece.size()), format, first, true);
    });
  }

  void begin_gather(std::span<std::byte> bytes, std::span<const std::size_t> ends) override {
    for_each_piece(bytes, dist::most_values, [&](std::span<std::byte> piece, std::size_t first) {
      gatherings_.emplace_back(piece, within(ends, first, piece.size()), parts_group_);
      costs_.bytes_sent += gatherings_.back().bytes_sent(rank_);
    });
  }

  void progress() override {
    // In the order in which they were begun, on every rank.
    for (Sum& sum : sums_) {
      if (!sum.phase_ended()) return;
      if (sum.is_gathering()) continue;
      sum.begin_gather();
    }
  }

  void wait() override {
    const auto start = Clock::now();
    for (Sum& sum : sums_) {
      if (sum.is_gathering()) continue;
      sum.wait_for_phase();
      sum.begin_gather();
    }
    for (Sum& sum : sums_) {
      sum.wait_for_phase();
      sum.finish();
    }
    sums_.clear();
    for (Gathering& gathering : gatherings_) gathering.wait();
    gatherings_.clear();
    costs_.waited += Clock::now() - start;
  }

  void broadcast(std::span<std::byte> bytes, int root) override {
    const auto start = Clock::now();
    constexpr std::size_t most = std::size_t{1} << 30;
    for (std::size_t first = 0; first < bytes.size(); first += most) {
      const std::size_t count = std::min(most, bytes.size() - first);
      check(MPI_Bcast(bytes.data() + first, static_cast<int>(count), MPI_BYTE, root, others_group_), "MPI_Bcast");
    }
    if (rank_ == root) costs_.bytes_sent += bytes.size() * static_cast<std::uint64_t>(size_ - 1);
    costs_.waited += Clock::now() - start;
  }

  void barrier() override {
    const auto start = Clock::now();
    check(MPI_Barrier(others_group_), "MPI_Barrier");
    costs_.waited += Clock::now() - start;
  }

  [[noreturn]] void abort(std::string_view message, int exit_code) override {
    // What fails on every rank is said once: the lowest rank ends the others before they say it, also where MPI takes a
    // second to.
    if (rank_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1800 + 200 * std::min(rank_, 10)));
    const std::string line = fmt::format("error: rank {}: {}\n", rank_, message);
    static_cast<void>(std::fwrite(line.data(), 1, line.size(), stderr));
    static_cast<void>(std::fflush(stderr));
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    std::_Exit(exit_code);
  }

  ExchangeCosts costs() const override { return costs_; }

 private:
  template <typename Value, typename Visit>
  static void for_each_piece(std::span<Value> values, std::size_t most, const Visit& visit) {
    for (std::size_t first = 0; first < values.size(); first += most) {
      visit(values.subspan(first, std::min(most, values.size() - first)), first);
    }
  }
  /// `first`: where the values begin in the sum.
  void begin(std::span<float> values, std::span<const std::size_t> ends, const WireFormat& format, std::size_t first,
             bool scattered) {
    sums_.emplace_back(sums_group_, gather_group_, rank_, size_, values, ends, format, first, scattered);
    costs_.bytes_sent += sums_.back().bytes_sent();
  }

  MPI_Comm sums_group_ = MPI_COMM_NULL;
  MPI_Comm gather_group_ = MPI_COMM_NULL;
  MPI_Comm parts_group_ = MPI_COMM_NULL;
  MPI_Comm others_group_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  bool finalises_ = false;
  std::list<Sum> sums_;  ///< that are under way, the oldest first
  std::list<Gathering> gatherings_;
  ExchangeCosts costs_;
};

/// What mpirun of Open MPI, MPICH and their like tells a process, and Slurm where it starts them itself.
bool started_by_mpi() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "PMI_RANK"}) {
    if (std::getenv(name) != nullptr) return true;  // NOLINT: no other thread changes the environment
  }
  return false;
}

}  // namespace

std::shared_ptr<Exchange> mpi_exchange() {
  int initialised = 0;
  check(MPI_Initialized(&initialised), "MPI_Initialized");
  if (initialised == 0 && !started_by_mpi()) return no_exchange();
  return std::make_shared<Mpi>();
}

}  // namespace halfstep

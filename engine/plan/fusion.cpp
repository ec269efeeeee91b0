#include "plan/fusion.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "plan/accesses.h"
#include "plan/conflicts.h"

namespace halfstep::plan {
namespace {

using Kernel = Expression::Kernel;

/// Whether a dispatch has to do with one narrow type at the most, which its kernel's variant is for.
bool knows_operands(const Program& program, const Dispatch& dispatch) {
  const Expression& expression = *dispatch.expression;
  DType known = expression.storage;
  for (const Operand& operand : dispatch.operands) {
    const DType dtype = program.tensors[operand.tensor].type.dtype;
    if ((expression.kernel == Kernel::none || dispatch.mixes) && !is_narrow(known)) known = dtype;
    if (is_narrow(dtype) && dtype != known) return false;
  }
  return true;
}

/// The layout in which both expressions can be worked out, where there is one.
std::optional<Layout> common_layout(const Expression& producer, const Expression& consumer) {
  if (producer.layout.quads() != consumer.layout.quads()) return std::nullopt;
  if (producer.layout.columns == consumer.layout.columns) return producer.layout;
  const bool unpadded = producer.layout.columns == producer.layout.pitch;
  if (unpadded && ignores_rows(consumer) && consumer.kernel == Kernel::none) return producer.layout;
  if (ignores_rows(producer) && producer.kernel == Kernel::none) return consumer.layout;
  return std::nullopt;
}

/// The operands of a dispatch with an expression: the kernel's own, then the reads, then the additional writes.
class Operands {
 public:
  explicit Operands(const Dispatch& dispatch)
      : reads_(dispatch.expression->first_argument), writes_(reads_ + dispatch.expression->reads.size()) {}

  std::size_t read(std::size_t i) const { return reads_ + i; }
  std::size_t written(std::size_t i) const { return writes_ + i; }

 private:
  std::size_t reads_;
  std::size_t writes_;
};

/// The register that `dispatch` stores in `tensor`, if it stores one through its expression.
std::optional<Register> stored_in(const Dispatch& dispatch, TensorId tensor) {
  if (!dispatch.expression) return std::nullopt;
  const Expression& expression = *dispatch.expression;
  if (expression.kernel != Kernel::after && dispatch.operands[expression.result].tensor == tensor) {
    return expression.value;
  }
  for (std::size_t i = 0; i < expression.writes.size(); ++i) {
    if (dispatch.operands[Operands(dispatch).written(i)].tensor == tensor) return expression.writes[i];
  }
  return std::nullopt;
}

/// Whether `dispatch` reads `tensor` only through its expression, and each quad only at its own position.
bool reads_alike(const Dispatch& dispatch, TensorId tensor) {
  if (!dispatch.expression) return false;
  const Expression& expression = *dispatch.expression;
  bool found = false;
  for (std::size_t i = 0; i < dispatch.operands.size(); ++i) {
    if (dispatch.operands[i].tensor != tensor) continue;
    const std::size_t argument = i - expression.first_argument;
    const bool is_read = i >= expression.first_argument && argument < expression.reads.size();
    if (!is_read || expression.reads[argument] != Reading{}) return false;
    found = true;
  }
  return found;
}

/// A tensor that one dispatch stores and another reads.
struct Link {
  TensorId tensor = 0;
  bool needed = false;  ///< by others too
  DType dtype = DType::f32;
};

/// Two dispatches merged into one: `consumer` reads what `producer` stores in `link`.
class Joint {
 public:
  Joint(const Dispatch& producer, const Dispatch& consumer, const Link& link, Layout layout)
      : producer_(producer), consumer_(consumer), link_(link.tensor), joined_(*producer.expression) {
    joined_.layout = layout;
    link_value_ = *stored_in(producer, link_);
    if (is_narrow(link.dtype)) {
      link_value_ = joined_.add({Op::stored, link_value_, 0, 0});
    }
    take_storage(link.dtype);
    take_arguments();
    const auto shift = static_cast<Register>(joined_.steps.size());
    for (const Step& step : consumer.expression->steps) {
      joined_.add({step.op, moved(step.a, shift), moved(step.b, shift), step.constant});
    }
    for (std::size_t i = 0; i < consumer.expression->writes.size(); ++i) {
      write(moved(consumer.expression->writes[i], shift), consumer.operands[Operands(consumer).written(i)].tensor);
    }
    place_results(link.needed, moved(consumer.expression->value, shift));
  }

  Dispatch dispatch() {
    Dispatch result = consumer_.expression->kernel == Kernel::none ? producer_ : consumer_;
    result.label = label();
    result.operands.resize(joined_.first_argument);
    result.operands[joined_.result].tensor = result_;
    for (const TensorId tensor : reads_) result.operands.push_back({tensor, Access::read});
    for (const TensorId tensor : writes_) result.operands.push_back({tensor, Access::write});
    result.flops = producer_.flops + consumer_.flops;
    result.expression = std::move(joined_);
    return result;
  }

 private:
  /// Without a kernel, or with one that mixes, any part may be what says which type the joined one rounds to.
  void take_storage(DType link) {
    if (joined_.kernel != Kernel::none && !producer_.mixes) return;
    for (const DType dtype : {link, consumer_.expression->storage}) {
      if (is_narrow(dtype)) joined_.storage = dtype;
    }
  }

  /// "conv1/conv2d + relu".
  std::string label() const {
    const std::size_t scope = consumer_.label.rfind('/');
    return producer_.label + " + " + (scope == std::string::npos ? consumer_.label : consumer_.label.substr(scope + 1));
  }

  void take_arguments() {
    const Operands own(producer_);
    for (std::size_t i = 0; i < joined_.reads.size(); ++i) reads_.push_back(producer_.operands[own.read(i)].tensor);
    for (std::size_t i = 0; i < joined_.writes.size(); ++i) {
      writes_.push_back(producer_.operands[own.written(i)].tensor);
    }
    const Operands other(consumer_);
    for (std::size_t i = 0; i < consumer_.expression->reads.size(); ++i) {
      const TensorId tensor = consumer_.operands[other.read(i)].tensor;
      moved_reads_.push_back(tensor == link_ ? link_value_ : read(consumer_.expression->reads[i], tensor));
    }
  }

  /// The register of a tensor that is read. A tensor that is read twice in the same way is loaded once.
  Register read(const Reading& reading, TensorId tensor) {
    for (std::size_t i = 0; i < reads_.size(); ++i) {
      if (reads_[i] == tensor && joined_.reads[i] == reading) return static_cast<Register>(i);
    }
    reads_.push_back(tensor);
    joined_.reads.push_back(reading);
    return static_cast<Register>(reads_.size() - 1);
  }

  void write(Register value, TensorId tensor) {
    joined_.writes.push_back(value);
    writes_.push_back(tensor);
  }

  /// The new register of a register of the consumer.
  Register moved(Register at, Register shift) const {
    if (at < moved_reads_.size()) return moved_reads_[at];
    return at < first_step ? at : static_cast<Register>(at + shift);
  }

  /// The consumer's value replaces the producer's as the result, unless the producer's is still needed. If the consumer
  /// has a kernel, it becomes the kernel of both.
  void place_results(bool link_needed, Register value) {
    const Expression& reader = *consumer_.expression;
    const TensorId first = producer_.operands[joined_.result].tensor;
    result_ = consumer_.operands[reader.result].tensor;
    const bool first_needed = link_needed || first != link_;
    if (!link_needed && first != link_) forget_link();
    if (reader.kernel != Kernel::none) {
      if (first_needed) write(joined_.value, first);
      joined_.kernel = reader.kernel;
      joined_.result = reader.result;
      joined_.first_argument = reader.first_argument;
      joined_.storage = reader.storage;
      joined_.noise = reader.noise;
      joined_.rows_known = reader.rows_known;
    } else if (first_needed) {
      write(value, std::exchange(result_, first));
      return;
    }
    joined_.value = value;
  }

  void forget_link() {
    const auto at = std::ranges::find(writes_, link_) - writes_.begin();
    writes_.erase(writes_.begin() + at);
    joined_.writes.erase(joined_.writes.begin() + at);
  }

  const Dispatch& producer_;
  const Dispatch& consumer_;
  TensorId link_;
  Expression joined_;
  Register link_value_ = 0;
  TensorId result_ = 0;
  std::vector<TensorId> reads_;
  std::vector<TensorId> writes_;
  std::vector<Register> moved_reads_;  ///< the new registers of the consumer's arguments
};

class Fusion {
 public:
  Fusion(Program& program, const Target& target) : program_(program), target_(target), accesses_(program) {}

  void run() {
    for (std::size_t i = 0; i < dispatches().size(); ++i) {
      std::set<std::size_t> untried{i};
      while (!untried.empty()) {
        const std::size_t next = *untried.begin();
        untried.erase(untried.begin());
        if (const std::optional<Merge> merge = join_producer(next)) add_changed(untried, *merge, i);
      }
    }
    accesses_.compact();
  }

 private:
  struct Merge {
    std::size_t at;       ///< the index of the merged dispatch, of one of the two
    std::size_t removed;  ///< that of the other
  };

  std::vector<Dispatch>& dispatches() { return program_.dispatches; }

  /// Adds the merged dispatch, and those after it, up to `last`, that were tried before and may be merged now: those
  /// that read what it stores, and those that had to stay in order with one that was removed before them. Trying all of
  /// them would take time with the square of their number.
  void add_changed(std::set<std::size_t>& untried, const Merge& merge, std::size_t last) {
    untried.insert(merge.at);
    for (const Operand& operand : dispatches()[merge.at].operands) {
      if (!writes(operand)) continue;
      const std::span readers = accesses_.readers(operand.tensor);
      untried.insert(std::ranges::upper_bound(readers, merge.at), std::ranges::upper_bound(readers, last));
    }
    if (merge.removed < last) {
      freed_first_ = freed_first_ < freed_end_ ? std::min(freed_first_, merge.removed + 1) : merge.removed + 1;
      freed_end_ = last + 1;
    }
    for (std::size_t i = std::max(freed_first_, merge.at + 1); i < freed_end_; ++i) untried.insert(i);
    freed_end_ = std::min(freed_end_, merge.at + 1);
  }

  /// Merges dispatch `i` with one whose result it reads, if it can be.
  std::optional<Merge> join_producer(std::size_t i) {
    const std::vector<Operand> operands = dispatches()[i].operands;
    for (const Operand& operand : operands) {
      if (!reads_alike(dispatches()[i], operand.tensor)) continue;
      if (const auto joined = join(i, operand.tensor)) return joined;
    }
    return std::nullopt;
  }

  std::optional<Merge> join(std::size_t consumer, TensorId link) {
    const std::span writers = accesses_.writers(link);
    if (writers.size() != 1 || writers[0] >= consumer) return std::nullopt;
    const std::size_t producer = writers[0];
    if (!stored_in(dispatches()[producer], link)) return std::nullopt;
    const std::optional<Layout> layout =
        common_layout(*dispatches()[producer].expression, *dispatches()[consumer].expression);
    const std::optional<Storing> storing = common_storing(program_, dispatches()[producer], dispatches()[consumer]);
    if (!layout || !storing) return std::nullopt;
    const ProgramTensor& tensor = program_.tensors[link];
    Link passed;
    passed.tensor = link;
    passed.needed = accesses_.readers(link).size() > 1 || tensor.kept || tensor.region.buffer != arena_buffer;
    passed.dtype = tensor.type.dtype;
    if (is_narrow(passed.dtype) && own_to_result(dispatches()[producer].storing))
      return std::nullopt;  // no register is stored so
    if (dispatches()[producer].recomputed != dispatches()[consumer].recomputed)
      return std::nullopt;  // each in its own pass
    Dispatch joined = Joint(dispatches()[producer], dispatches()[consumer], passed, *layout).dispatch();
    joined.storing = *storing;
    // What passes is rounded to the type that the joined kernel stores.
    if (is_narrow(passed.dtype) && joined.expression->storage != passed.dtype) return std::nullopt;
    if (!fits(joined, dispatches()[producer], dispatches()[consumer])) return std::nullopt;
    const std::optional<std::size_t> place = place_for(producer, consumer, link);
    if (!place) return std::nullopt;
    const Merge merge{*place, *place == producer ? consumer : producer};
    accesses_.remove(merge.removed);
    accesses_.replace(merge.at, std::move(joined));
    return merge;
  }

  bool fits(const Dispatch& joined, const Dispatch& producer, const Dispatch& consumer) const {
    const Expression& expression = *joined.expression;
    const bool one_kernel = producer.expression->kernel == Kernel::none || consumer.expression->kernel == Kernel::none;
    const auto rounds_alike = [&](const Dispatch& part) {
      return !part.expression->rounds() || part.expression->storage == expression.storage;
    };
    if (!rounds_alike(producer) || !rounds_alike(consumer) || !knows_operands(program_, joined)) return false;
    const bool stores = !own_to_result(joined.storing) || can_store_its_own_way(joined);
    return one_kernel && stores && expression.fits() &&
           bindings(program_, target_, joined) <= target_.max_storage_buffers;
  }

  /// Whether its kernel can draw noise, or need not, and what is stored in a narrow type is the result only.
  bool can_store_its_own_way(const Dispatch& dispatch) const {
    const bool draws = dispatch.storing.stochastic && makes_narrow(program_, dispatch);
    const auto beside = std::span(dispatch.operands).subspan(dispatch.expression->first_argument);
    return (dispatch.expression->noise || !draws) && !stores_narrow(program_, beside);
  }

  /// Where both can run: at the producer's index if no dispatch between them must come before the consumer, or at the
  /// consumer's index if none between them must come after the producer.
  std::optional<std::size_t> place_for(std::size_t producer, std::size_t consumer, TensorId link) {
    const auto in_between = [&](std::size_t moved) {
      return std::ranges::any_of(dispatches()[moved].operands, [&](const Operand& operand) {
        return accesses_.conflict_between(producer, consumer, operand);
      });
    };
    if (meet_elsewhere(dispatches()[producer], dispatches()[consumer], link)) return std::nullopt;
    if (!in_between(consumer)) return producer;
    if (!in_between(producer)) return consumer;
    return std::nullopt;
  }

  /// Whether the two depend on each other by more than the link.
  bool meet_elsewhere(const Dispatch& producer, const Dispatch& consumer, TensorId link) const {
    const auto others = [&](Dispatch dispatch) {
      std::erase_if(dispatch.operands, [&](const Operand& operand) { return operand.tensor == link; });
      return dispatch;
    };
    return conflict(program_, others(producer), others(consumer));
  }

  Program& program_;
  const Target& target_;
  Accesses accesses_;
  /// Dispatches, up to the end, that were not tried since one before them was removed.
  std::size_t freed_first_ = 0;
  std::size_t freed_end_ = 0;
};

}  // namespace

void fuse(Program& program, const Target& target) {
  Fusion(program, target).run();
}

}  // namespace halfstep::plan

#include "simulator/sequence_mix.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <queue>
#include <utility>

#include "model/plan/plan.h"
#include "model/schedule/schedule.h"
#include "model/workload/flop.h"
#include "model/workload/training.h"
#include "simulator/engine/random.h"

namespace trainyard {
namespace {

constexpr std::uint64_t kLengthStream = 0x5e90;

class Lengths {
 public:
  Lengths(const SequenceMix& mix, std::int64_t longest, std::uint64_t seed)
      : mix_(mix), longest_(longest), random_(seed, kLengthStream) {}

  std::int64_t next() { return std::clamp<std::int64_t>(drawn(), 1, longest_); }

 private:
  std::int64_t drawn() {
    if (!mix_.law) return mix_.lengths[next_++ % mix_.lengths.size()];
    if (*mix_.law == LengthLaw::uniform) {
      const auto span = static_cast<double>(longest_ - mix_.shortest + 1);
      return mix_.shortest + static_cast<std::int64_t>(std::floor(random_.uniform() * span));
    }
    const double variance = std::log1p(mix_.deviation * mix_.deviation);
    const double middle = std::log(static_cast<double>(mix_.mean)) - variance / 2;
    const double length = std::exp(middle + std::sqrt(variance) * random_.normal());
    return static_cast<std::int64_t>(std::llround(std::min(length, static_cast<double>(longest_))));
  }

  const SequenceMix& mix_;
  std::int64_t longest_ = 1;
  RandomStream random_;
  std::size_t next_ = 0;
};

// The work of a sequence, or of a row of packed documents.
struct Row {
  double tokens = 0;
  Flops attention;  // causal
  Flops work;       // causal, of all layers and the head; dealing balances this
  Flops model;      // full attention, as MFU counts it

  Row& operator+=(const Row& other) {
    tokens += other.tokens;
    attention += other.attention;
    work += other.work;
    model += other.model;
    return *this;
  }
};

class Pricing {
 public:
  Pricing(const Transformer& model, Training training)
      : model_(model), training_(std::move(training)) {}

  const Row& of(std::int64_t length) {
    const auto [found, is_new] = known_.try_emplace(length);
    if (is_new) {
      training_.sequence_length = length;
      const SequenceFlop causal = sequence_forward_flop(model_, training_, AttentionCount::causal);
      const SequenceFlop full = sequence_forward_flop(model_, training_, AttentionCount::full);
      found->second = {static_cast<double>(length), causal.attention_core,
                       causal.layers + causal.head, full.layers + full.head};
    }
    return found->second;
  }

 private:
  const Transformer& model_;
  Training training_;
  std::map<std::int64_t, Row> known_;
};

Row packed_row(Lengths& lengths, Pricing& pricing, std::int64_t size, std::int64_t& carried) {
  Row row;
  for (std::int64_t room = size; room > 0;) {
    if (carried == 0) carried = lengths.next();
    const std::int64_t piece = std::min(room, carried);
    row += pricing.of(piece);
    room -= piece;
    carried -= piece;
  }
  return row;
}

std::vector<Row> rows_of(const SequenceMix& mix, Pricing& pricing, const Training& training,
                         std::uint64_t seed) {
  Lengths lengths(mix, training.sequence_length, seed);
  std::vector<Row> rows;
  rows.reserve(static_cast<std::size_t>(training.global_batch));
  std::int64_t carried = 0;  // tokens left of a document that the row before cut
  for (std::int64_t i = 0; i < training.global_batch; ++i) {
    rows.push_back(mix.packed ? packed_row(lengths, pricing, training.sequence_length, carried)
                              : pricing.of(lengths.next()));
  }
  return rows;
}

double work_of(const Row& row) { return row.work.value(); }
double tokens_of(const Row& row) { return row.tokens; }

// Deals the rows, largest first, each to the micro-batch that has least so far (Graham 1969). If
// they are packed, all micro-batches get equally many.
std::vector<Row> balanced(std::vector<Row> rows, std::size_t cells, bool packed,
                          double (*size_of)(const Row&) = work_of) {
  std::stable_sort(rows.begin(), rows.end(),
                   [size_of](const Row& a, const Row& b) { return size_of(a) > size_of(b); });
  struct Cell {
    double size = 0;
    std::size_t index = 0;
    bool operator>(const Cell& other) const {
      return size != other.size ? size > other.size : index > other.index;
    }
  };
  std::priority_queue<Cell, std::vector<Cell>, std::greater<>> emptiest;
  for (std::size_t i = 0; i < cells; ++i) emptiest.push({0, i});
  std::vector<Row> sums(cells);
  std::vector<std::size_t> count(cells);
  for (const Row& row : rows) {
    const std::size_t cell = emptiest.top().index;
    emptiest.pop();
    sums[cell] += row;
    const bool full = packed && ++count[cell] == rows.size() / cells;
    if (!full) emptiest.push({size_of(sums[cell]), cell});
  }
  return sums;
}

std::vector<Row> in_order(const std::vector<Row>& rows, std::size_t cells) {
  std::vector<Row> sums(cells);
  for (std::size_t i = 0; i < rows.size(); ++i) sums[i * cells / rows.size()] += rows[i];
  return sums;
}

// Deals sequences to as few micro-batches as hold them: inside each replica, or (`over_all`) over
// all replicas, which balances these too.
class DynamicDeal {
 public:
  DynamicDeal(const std::vector<Row>& rows, const Training& training, const Plan& plan,
              bool over_all)
      : plan_(plan),
        replicas_(static_cast<std::size_t>(plan.data_parallel)),
        most_(rows.size() / replicas_ / static_cast<std::size_t>(plan.micro_batch)),
        limit_(static_cast<double>(most_tokens(training, plan))),
        pools_(over_all ? 1 : replicas_) {
    const auto together = static_cast<std::size_t>(plan.micro_batch);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      pools_[i / together % pools_.size()].push_back(rows[i]);
    }
  }

  // The work of micro-batch j of replica d, at index j·D + d. The largest are in the middle, so
  // that the pipeline fills and drains with small ones.
  std::vector<Row> sums() const {
    const std::size_t number = micro_batches();
    const std::size_t sharing = replicas_ / pools_.size();  // replicas that share a pool
    std::vector<Row> all(number * replicas_);
    for (std::size_t pool = 0; pool < pools_.size(); ++pool) {
      std::vector<Row> own = even(pools_[pool], number * sharing);
      std::ranges::stable_sort(own, std::greater<>(), work_of);
      for (std::size_t cell = 0; cell < own.size(); ++cell) {
        const std::size_t rank = cell / sharing;  // from the largest
        const std::size_t half = (number + 1) / 2;
        const std::size_t at = rank % 2 == 0 ? half - 1 - rank / 2 : half + rank / 2;
        all[at * replicas_ + pool + cell % sharing] = own[cell];
      }
    }
    return all;
  }

 private:
  std::size_t micro_batches() const {
    std::size_t number = 1;
    for (const std::vector<Row>& pool : pools_) number = std::max(number, needed(pool));
    while (number < most_ && !is_taken(number)) ++number;
    return number;
  }

  bool is_taken(std::size_t number) const {
    const auto shape = plan_.schedule->shape(plan_.pipeline_parallel, plan_.virtual_stages,
                                             static_cast<int>(number));
    return plan_.schedule->accepts(shape).has_value();
  }

  // The fewest micro-batches of a replica that hold the pool. Bisection works because one
  // micro-batch more makes no sum larger, and most_ always fits.
  std::size_t needed(const std::vector<Row>& pool) const {
    const std::size_t sharing = replicas_ / pools_.size();
    std::size_t fits_not = 0;
    std::size_t fits = most_;
    while (fits - fits_not > 1) {
      const std::size_t middle = fits_not + (fits - fits_not) / 2;
      const bool fit = is_within(balanced(pool, middle * sharing, false, tokens_of));
      (fit ? fits : fits_not) = middle;
    }
    return fits;
  }

  std::vector<Row> even(const std::vector<Row>& pool, std::size_t cells) const {
    std::vector<Row> by_work = balanced(pool, cells, false);
    return is_within(by_work) ? by_work : balanced(pool, cells, false, tokens_of);
  }

  bool is_within(const std::vector<Row>& sums) const {
    return std::all_of(sums.begin(), sums.end(),
                       [this](const Row& sum) { return sum.tokens <= limit_; });
  }

  const Plan& plan_;
  std::size_t replicas_ = 1;
  std::size_t most_ = 1;  // most micro-batches of a replica
  double limit_ = 0;      // most tokens of a micro-batch
  std::vector<std::vector<Row>> pools_;
};

std::vector<Row> dealt_sums(const SequenceMix& mix, const std::vector<Row>& rows,
                            const Training& training, const Plan& plan) {
  if (mix.dynamic) return DynamicDeal(rows, training, plan, mix.balanced).sums();
  const std::size_t cells = rows.size() / static_cast<std::size_t>(plan.micro_batch);
  return mix.balanced ? balanced(rows, cells, mix.packed) : in_order(rows, cells);
}

}  // namespace

std::int64_t most_tokens(const Training& training, const Plan& plan) {
  return plan.micro_batch * training.sequence_length;
}

DealtSequences deal(const SequenceMix& mix, const Transformer& model, const Training& training,
                    const Plan& plan, std::uint64_t seed) {
  Pricing pricing(model, training);
  const std::vector<Row> rows = rows_of(mix, pricing, training, seed);
  const auto replicas = static_cast<std::size_t>(plan.data_parallel);
  const std::vector<Row> sums = dealt_sums(mix, rows, training, plan);
  const Row& full = pricing.of(training.sequence_length);
  DealtSequences dealt;
  dealt.work.resize(replicas);
  Row all;
  for (std::size_t cell = 0; cell < sums.size(); ++cell) {
    const double attention = sums[cell].attention / full.attention;
    dealt.work[cell % replicas].push_back(
        {sums[cell].tokens / (plan.micro_batch * full.tokens), attention / plan.micro_batch});
    all += sums[cell];
  }
  const auto batch = static_cast<double>(rows.size());
  dealt.tokens = all.tokens / (batch * full.tokens);
  dealt.flop = all.model / (batch * full.model);
  return dealt;
}

}  // namespace trainyard

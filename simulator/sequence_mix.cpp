#include "simulator/sequence_mix.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <queue>
#include <utility>

#include "model/plan/plan.h"
#include "model/workload/flop.h"
#include "model/workload/training.h"
#include "simulator/random.h"

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

// A sequence, or a row of packed documents.
struct Row {
  double tokens = 0;
  Flops attention;  // causal
  Flops work;       // causal, of all layers and the head: what dealing evens out
  Flops model;      // attention in full

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
  std::int64_t carried = 0;  // of a document that the row before cut
  for (std::int64_t i = 0; i < training.global_batch; ++i) {
    rows.push_back(mix.packed ? packed_row(lengths, pricing, training.sequence_length, carried)
                              : pricing.of(lengths.next()));
  }
  return rows;
}

// The largest first, each to the micro-batch that has least (Graham 1969); of packed rows each gets
// as many as the others.
std::vector<Row> balanced(std::vector<Row> rows, std::size_t cells, bool packed) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.work > b.work; });
  struct Cell {
    Flops work;
    std::size_t index = 0;
    bool operator>(const Cell& other) const {
      return work != other.work ? work > other.work : index > other.index;
    }
  };
  std::priority_queue<Cell, std::vector<Cell>, std::greater<>> emptiest;
  for (std::size_t i = 0; i < cells; ++i) emptiest.push({Flops(0), i});
  std::vector<Row> sums(cells);
  std::vector<std::size_t> count(cells);
  for (const Row& row : rows) {
    const std::size_t cell = emptiest.top().index;
    emptiest.pop();
    sums[cell] += row;
    const bool full = packed && ++count[cell] == rows.size() / cells;
    if (!full) emptiest.push({sums[cell].work, cell});
  }
  return sums;
}

std::vector<Row> in_order(const std::vector<Row>& rows, std::size_t cells) {
  std::vector<Row> sums(cells);
  for (std::size_t i = 0; i < rows.size(); ++i) sums[i * cells / rows.size()] += rows[i];
  return sums;
}

}  // namespace

DealtSequences deal(const SequenceMix& mix, const Transformer& model, const Training& training,
                    const Plan& plan, std::uint64_t seed) {
  Pricing pricing(model, training);
  const std::vector<Row> rows = rows_of(mix, pricing, training, seed);
  const auto replicas = static_cast<std::size_t>(plan.data_parallel);
  const std::size_t cells = rows.size() / static_cast<std::size_t>(plan.micro_batch);
  const std::vector<Row> sums =
      mix.balanced ? balanced(rows, cells, mix.packed) : in_order(rows, cells);
  const Row& full = pricing.of(training.sequence_length);
  DealtSequences dealt;
  dealt.work.resize(replicas);
  Row all;
  for (std::size_t cell = 0; cell < cells; ++cell) {
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

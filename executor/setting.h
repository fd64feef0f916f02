// What is trained, as numbers: the initial weights, the tokens of each sequence and the elements
// that dropout keeps. Each is a function of a seed and of a place in the whole network and batch
// (executor/random.h), so every sharding starts from the same weights, sees the same data and drops
// the same elements.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "executor/random.h"
#include "model/plan/plan.h"
#include "model/program/operation.h"
#include "model/program/rank_layout.h"
#include "model/workload/training.h"
#include "model/workload/transformer.h"

namespace trainyard {

// Parameters of the optimizer. Adam: Kingma & Ba 2015; decoupled weight decay: Loshchilov & Hutter
// 2019. SGD without momentum needs no optimizer states.
struct Descent {
  double learning_rate = 1;
  double clip_norm = 1;  // largest norm of the gradient, where the update waits for it
  double momentum = 0;   // sgd
  double first_decay = 0.9, second_decay = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0;
  // Initial loss scale of an fp16 recipe (executor/loss_scale.h).
  double loss_scale = 65536;
};

struct Setting {
  Transformer model;
  Training training;
  Plan plan;
  // The plan whose ranks decide which tokens exceed an expert's capacity, if not `plan`: a network
  // on one rank then drops exactly the tokens that each of those ranks would.
  std::optional<Plan> blocks;
  std::uint64_t seed = 0;
  Descent descent;
  // Training data, read sequence by sequence and from the start again at the end; empty: tokens are
  // drawn by the seed.
  std::shared_ptr<const std::vector<std::uint32_t>> tokens;
  // Fill the parts of tensors that a rank does not know with NaN, so that an operation that reads
  // them is found out. That takes time that is not the program's, so timed runs leave it off.
  bool marks_unknown = true;
};

struct WeightPlace {
  std::string_view weight;
  int layer = -1;
  std::int64_t row = 0;
};
// Initial weights of one row, by column: uniform in ±1/√h; the scales of norms uniform in 1 ± 0.3;
// rows that pad the vocabulary are 0.
class WeightRow {
 public:
  WeightRow(const Setting& setting, const WeightPlace& place);
  double operator[](std::int64_t column) const {
    if (pads_) return 0;
    const double number = uniform_signed(seed_ + static_cast<std::uint64_t>(column));
    return scales_ ? 1 + 0.3 * number : width_ * number;
  }

 private:
  bool pads_ = false, scales_ = false;
  std::uint64_t seed_ = 0;  // hash of seed, name, layer and row
  double width_ = 0;
};
bool is_kept(const Setting& setting, const DropoutPlace& place);
// Token at a position, which may lie behind the sequence's end for labels: there the next sequence
// of a file follows, or further tokens by the seed.
int token_at(const Setting& setting, std::int64_t sequence, std::int64_t position);

// Whether the recipe needs a loss scale: fp16 has no numbers below 2^-24.
bool scales_loss(const Setting& setting);

// Whether the operation reads an fp32 weight through a cast to the recipe's 16 bits: master weights
// that no all-gather casts, because this rank has them whole.
bool reads_cast(const Setting& setting, const Operation& operation, const ProgramBuffer& buffer);

// Moments that the optimizer keeps for each element (Adam 2, SGD with momentum 1), without the
// weight; −1: the executor has no update rule for this optimizer, and a run is refused by name.
int moments_of(const Setting& setting);

}  // namespace trainyard

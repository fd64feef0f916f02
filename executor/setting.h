// What is trained, as numbers: where a weight starts, which tokens a sequence has, what dropout
// keeps. Each is a function of a seed and of a place in the whole network and batch
// (executor/random.h), so that every sharding starts from the same model, sees the same data and
// drops the same elements.
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

// How the optimizer goes down. Adam: Kingma & Ba 2015; decay: Loshchilov & Hutter 2019. Without
// momentum descent needs no states.
struct Descent {
  double learning_rate = 1;
  double clip_norm = 1;  // of the gradient, where the update waits for its norm
  double momentum = 0;   // sgd
  double first_decay = 0.9, second_decay = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0;
  // What an fp16 recipe multiplies the loss with at first (executor/loss_scale.h).
  double loss_scale = 65536;
};

struct Setting {
  Transformer model;
  Training training;
  Plan plan;
  // Whose ranks drop tokens beyond a capacity, where it is not this plan's: a network on one rank
  // then drops what each of those ranks would.
  std::optional<Plan> blocks;
  std::uint64_t seed = 0;
  Descent descent;
  // Read one sequence after the other, from the start again where they end; empty: by the seed.
  std::shared_ptr<const std::vector<std::uint32_t>> tokens;
  // Parts of tensors that a rank does not know become NaN, so that an operation that reads them is
  // found out. That takes time which is none of the program's.
  bool marks_unknown = true;
};

struct WeightPlace {
  std::string_view weight;
  int layer = -1;
  std::int64_t row = 0;
};
// What the weights of one row start as, by column: uniform in ±1/√h, scales of norms about 1; rows
// that pad the vocabulary are 0.
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
  std::uint64_t seed_ = 0;  // of the name, the layer and the row
  double width_ = 0;
};
bool is_kept(const Setting& setting, const DropoutPlace& place);
// Behind a sequence's last position come the tokens that are to be predicted there: those of the
// next sequence in a file, else some of its own.
int token_at(const Setting& setting, std::int64_t sequence, std::int64_t position);

// Whether gradients are too small for the recipe's numbers: those of fp16 end at 2^-24.
bool scales_loss(const Setting& setting);

// Whether the operation reads the buffer in the recipe's 16 bits and not as it is stored: master
// weights that no gather casts, since this rank has them whole.
bool reads_cast(const Setting& setting, const Operation& operation, const ProgramBuffer& buffer);

// Numbers that an optimizer keeps for each element beside its weight; −1: not executed.
int moments_of(const Setting& setting);

}  // namespace trainyard

// The gradient's norm and the update: descent with momentum, or Adam.
#include <algorithm>
#include <cmath>
#include <limits>

#include "executor/cpu/kernels/kernels.h"

namespace trainyard {
namespace {

template <typename S>
void sum_of_squares(const Operation& op, const Where& where, const Operands<S>& o) {
  double sum = 0;
  for (std::size_t i = 0; i < o.in.size(); ++i) {
    const FlatPart part = part_of(o.in[i]->size(), op.shards, where.shard);
    for (Eigen::Index k = part.begin; k < part.end; ++k) {
      const auto g = static_cast<double>(o.in[i]->data()[k]) / where.loss_scale;
      sum += g * g / o.in_buffers[i]->replicas;
    }
  }
  (*o.in_place[0])(0, 0) += static_cast<S>(sum);
}

// Updates one element: its weight and its states (moments, then the full-precision weight where the
// weight itself is stored in fewer bits).
template <typename S>
class Update {
 public:
  Update(const Where& where, double clip)
      : descent_(where.setting.descent),
        moments_(moments_of(where.setting)),
        decays_(where.setting.training.optimizer.name == "adamw"),
        clip_(static_cast<S>(clip / where.loss_scale)),
        rate_(static_cast<S>(descent_.learning_rate)) {
    const auto steps = static_cast<double>(where.step + 1);
    first_whole_ = static_cast<S>(1 - std::pow(descent_.first_decay, steps));
    second_whole_ = static_cast<S>(1 - std::pow(descent_.second_decay, steps));
  }

  S stepped(S weight, S gradient, S* state) const {
    const S g = clip_ * gradient;
    if (moments_ == 0) return weight - rate_ * g;
    if (moments_ == 1) {
      state[0] = static_cast<S>(descent_.momentum) * state[0] + g;
      return weight - rate_ * state[0];
    }
    return adam(weight, g, state);
  }

 private:
  S adam(S weight, S g, S* state) const {
    const auto first = static_cast<S>(descent_.first_decay);
    const auto second = static_cast<S>(descent_.second_decay);
    state[0] = first * state[0] + (1 - first) * g;
    state[1] = second * state[1] + (1 - second) * g * g;
    const S along = state[0] / first_whole_ /
                    (std::sqrt(state[1] / second_whole_) + static_cast<S>(descent_.epsilon));
    const S decay = decays_ ? static_cast<S>(descent_.weight_decay) * weight : S(0);
    return weight - rate_ * (along + decay);
  }

  const Descent& descent_;
  int moments_;
  bool decays_;
  S clip_, rate_;                         // clip_ also takes the loss scale off
  S first_whole_ = 1, second_whole_ = 1;  // Adam's bias correction
};

// Whether the update is left out because the gradient overflowed in fp16.
template <typename S>
bool is_skipped(const Where& where, const Operands<S>& o) {
  return scales_loss(where.setting) && !o.in.empty() && !std::isfinite((*o.in[0])(0, 0));
}

template <typename S>
double clip_of(const Where& where, const Operands<S>& o) {
  if (o.in.empty()) return 1;
  const double norm = std::sqrt(static_cast<double>((*o.in[0])(0, 0)));
  return std::min(1.0, where.setting.descent.clip_norm / norm);
}

// Whether the buffer is a whole tensor of which this rank updates its part; else it is that part
// alone.
bool is_whole(const Operation& op, const ProgramBuffer& buffer) {
  return op.shards > 1 && buffer.part_of < 0;
}

// This rank's part of a weight and its gradient. `of_whole`, `into_whole`: whether the gradient,
// the weight is a whole tensor that the part lies in.
struct UpdatedPart {
  FlatPart part;
  bool of_whole, into_whole;
};
template <typename S>
UpdatedPart updated_part(const Operation& op, const Where& where, const Operands<S>& o,
                         std::size_t gradient, std::size_t weight) {
  const bool of_whole = is_whole(op, *o.in_place_buffers[gradient]);
  const bool into_whole = is_whole(op, *o.in_place_buffers[weight]);
  const Eigen::Index size = o.in_place[of_whole ? gradient : weight]->size();
  return {part_of(size, of_whole || into_whole ? op.shards : 1, where.shard), of_whole, into_whole};
}

// Weights beyond this rank's part are not known until they are gathered.
template <typename S>
void forget_beyond(const FlatPart& part, Tensor<S>& weight) {
  constexpr S kUnknown = std::numeric_limits<S>::quiet_NaN();
  std::fill_n(weight.data(), part.begin, kUnknown);
  std::fill(weight.data() + part.end, weight.data() + weight.size(), kUnknown);
}

// Number of elements of a part that are updated.
Eigen::Index moving(const FlatPart& part, bool skips) { return skips ? 0 : part.end - part.begin; }

// Operands in place: `count` gradients, the states, `count` weights.
template <typename S>
void optimizer_step(const Operation& op, const Where& where, const Operands<S>& o) {
  const Update<S> update(where, clip_of(where, o));
  const std::size_t count = o.in_place.size() / 2;
  Tensor<S>& states = *o.in_place[count];
  const bool keeps_weights = o.in_place_buffers[count]->keeps_weights;
  const bool skips = is_skipped(where, o);
  S* kept = states.data();
  const auto step = [&](S& w, S gradient) {
    S& full = keeps_weights ? kept[states.cols() - 1] : w;
    if (keeps_weights && where.step == 0) full = w;
    full = update.stepped(full, gradient, kept);
    w = full;
    kept += states.cols();
  };
  for (std::size_t i = 0; i < count; ++i) {
    Tensor<S>& gradient = *o.in_place[i];
    Tensor<S>& weight = *o.in_place[count + 1 + i];
    const auto [part, of_whole, into_whole] = updated_part(op, where, o, i, count + 1 + i);
    const Eigen::Index first_weight = into_whole ? part.begin : 0;
    const Eigen::Index first_gradient = of_whole ? part.begin : 0;
    for (Eigen::Index k = 0; k < moving(part, skips); ++k) {
      step(weight.data()[first_weight + k], gradient.data()[first_gradient + k]);
    }
    if (into_whole && where.setting.marks_unknown) forget_beyond(part, weight);
    gradient.setZero();
  }
}

}  // namespace

template <typename S>
void compute_update(const Operation& operation, const Where& where, const Operands<S>& operands) {
  if (operation.kind == OperationKind::sum_of_squares) {
    return sum_of_squares(operation, where, operands);
  }
  optimizer_step(operation, where, operands);
}

FlatPart part_of(Eigen::Index size, int shards, int shard) {
  const Eigen::Index length = (size + shards - 1) / shards;
  return {std::min(size, shard * length), std::min(size, (shard + 1) * length)};
}

template void compute_update(const Operation& operation, const Where& where,
                             const Operands<float>& operands);
template void compute_update(const Operation& operation, const Where& where,
                             const Operands<double>& operands);

}  // namespace trainyard

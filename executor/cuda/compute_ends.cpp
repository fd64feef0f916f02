#include <algorithm>

#include "executor/cuda/compute.h"

namespace trainyard {
namespace {

LocalWords words_of(const DeviceWork& w, const View& logits) {
  const std::int64_t first = w.where.at.tensor * logits.columns;
  return {first,
          std::clamp<std::int64_t>(w.where.setting.model.vocabulary - first, 0, logits.columns)};
}

// The divisor of each token's loss.
float tokens_of(const DeviceWork& w) {
  const Training& training = w.where.setting.training;
  return static_cast<float>(training.global_batch * training.sequence_length) /
         static_cast<float>(w.operation.loss_weight);
}

}  // namespace

void compute_ends(const DeviceWork& w) {
  const std::size_t last = w.operands.in.size() - 1;
  const auto first_word = [&](const View& table) { return w.where.at.tensor * table.rows; };
  switch (w.operation.kind) {
    case OperationKind::embedding:
      return embedding(w.queue, w.out(0), w.in(0), w.in(1), first_word(w.in(1)));
    case OperationKind::embedding_gradient:
      return embedding_gradient(w.queue, w.in_place(0), w.in(0), w.in(1),
                                first_word(w.in_place(0)));
    case OperationKind::positions:
      return positions(w.queue, w.out(0), w.in(0), w.in(1), row_places(w.where, w.in(0).rows));
    case OperationKind::positions_gradient:
      return positions_gradient(w.queue, w.in_place(0), w.in(0), row_places(w.where, w.in(0).rows));
    case OperationKind::cross_entropy_max:
      return cross_entropy_max(w.queue, w.out(0), w.in(0), words_of(w, w.in(0)));
    case OperationKind::cross_entropy_sum:
      return cross_entropy_sum(w.queue, w.out(0), w.out(w.operands.out.size() - 1), w.in(0),
                               w.in(1), w.in(2), words_of(w, w.in(0)));
    case OperationKind::cross_entropy_loss:
      return cross_entropy_loss(w.queue, w.in_place(0), w.in(0), w.in(1), w.in(last), tokens_of(w));
    default:
      return cross_entropy_gradient(w.queue, w.out(0), w.in(last), w.in(0), w.in(1), w.in(last - 1),
                                    words_of(w, w.in(last)),
                                    tokens_of(w) / static_cast<float>(w.where.loss_scale));
  }
}

}  // namespace trainyard

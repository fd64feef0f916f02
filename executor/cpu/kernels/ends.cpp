// Embedding and cross-entropy.
#include <algorithm>
#include <cmath>
#include <limits>

#include "executor/cpu/kernels/kernels.h"

namespace trainyard {
namespace {

template <typename S>
void embedding(const Where& where, const Operands<S>& o) {
  const Tensor<S>& table = *o.in[1];
  const Eigen::Index first = where.at.tensor * table.rows();
  o.out[0]->setZero();
  for (Eigen::Index row = 0; row < o.out[0]->rows(); ++row) {
    const auto token = static_cast<Eigen::Index>((*o.in[0])(row, 0)) - first;
    if (token >= 0 && token < table.rows()) o.out[0]->row(row) = table.row(token);
  }
}

template <typename S>
void embedding_gradient(const Where& where, const Operands<S>& o) {
  Tensor<S>& table = *o.in_place[0];
  const Eigen::Index first = where.at.tensor * table.rows();
  for (Eigen::Index row = 0; row < o.in[1]->rows(); ++row) {
    const auto token = static_cast<Eigen::Index>((*o.in[0])(row, 0)) - first;
    if (token >= 0 && token < table.rows()) table.row(token) += o.in[1]->row(row);
  }
}

template <typename S>
void positions(const Where& where, const Operands<S>& o) {
  Tensor<S> sum = *o.in[0];
  for (Eigen::Index row = 0; row < sum.rows(); ++row) {
    sum.row(row) += o.in[1]->row(token_place(where, row, sum.rows()).position);
  }
  *o.out[0] = sum;
}

template <typename S>
void positions_gradient(const Where& where, const Operands<S>& o) {
  const Tensor<S>& dy = *o.in[0];
  for (Eigen::Index row = 0; row < dy.rows(); ++row) {
    o.in_place[0]->row(token_place(where, row, dy.rows()).position) += dy.row(row);
  }
}

// Number of columns of this rank's logits that are words; the others pad the vocabulary.
template <typename S>
Eigen::Index words(const Where& where, const Tensor<S>& logits) {
  const Eigen::Index first = where.at.tensor * logits.cols();
  return std::clamp<Eigen::Index>(where.setting.model.vocabulary - first, 0, logits.cols());
}

template <typename S>
void cross_entropy_max(const Where& where, const Operands<S>& o) {
  const Tensor<S>& logits = *o.in[0];
  const Eigen::Index columns = words(where, logits);
  o.out[0]->setConstant(std::numeric_limits<S>::lowest());
  if (columns > 0) o.out[0]->col(0) = logits.leftCols(columns).rowwise().maxCoeff();
}

template <typename S>
void cross_entropy_sum(const Where& where, const Operands<S>& o) {
  const Tensor<S>& logits = *o.in[0];
  const Eigen::Index columns = words(where, logits);
  const Eigen::Index first = where.at.tensor * logits.cols();
  Vector<S> sum = Vector<S>::Zero(logits.rows());
  Vector<S> label_logit = sum;
  for (Eigen::Index row = 0; row < logits.rows(); ++row) {
    sum[row] = (logits.row(row).head(columns).array() - (*o.in[1])(row, 0)).exp().sum();
    const auto label = static_cast<Eigen::Index>((*o.in[2])(row, 0)) - first;
    if (label >= 0 && label < columns) label_logit[row] = logits(row, label);
  }
  o.out[0]->col(0) = sum;
  o.out.back()->col(o.out.back()->cols() - 1) = label_logit;
}

template <typename S>
struct Statistics {
  Vector<S> largest, sum, label_logit;
};
template <typename S>
Statistics<S> statistics(const Operands<S>& o, std::size_t last) {
  return {o.in[0]->col(0), o.in[1]->col(0), o.in[last]->col(o.in[last]->cols() - 1)};
}

// The weight of one token's loss in the batch's.
template <typename S>
S share_of_token(const Operation& operation, const Where& where) {
  const Training& training = where.setting.training;
  return static_cast<S>(operation.loss_weight) /
         static_cast<S>(training.global_batch * training.sequence_length);
}

template <typename S>
void cross_entropy_loss(const Operation& operation, const Where& where, const Operands<S>& o) {
  const Statistics<S> s = statistics(o, o.in.size() - 1);
  const S loss = (s.sum.array().log() + s.largest.array() - s.label_logit.array()).sum();
  (*o.in_place[0])(0, 0) += loss * share_of_token<S>(operation, where);
}

template <typename S>
void cross_entropy_gradient(const Operation& operation, const Where& where, const Operands<S>& o) {
  const Statistics<S> s = statistics(o, o.in.size() - 3);
  const Tensor<S>& labels = *o.in[o.in.size() - 2];
  const Tensor<S>& logits = *o.in.back();
  Tensor<S>& gradient = *o.out[0];
  const Eigen::Index columns = words(where, logits);
  const Eigen::Index first = where.at.tensor * logits.cols();
  for (Eigen::Index row = 0; row < logits.rows(); ++row) {
    gradient.row(row) = (logits.row(row).array() - s.largest[row]).exp() / s.sum[row];
    gradient.row(row).tail(logits.cols() - columns).setZero();
    const auto label = static_cast<Eigen::Index>(labels(row, 0)) - first;
    if (label >= 0 && label < columns) gradient(row, label) -= 1;
  }
  gradient *= static_cast<S>(where.loss_scale) * share_of_token<S>(operation, where);
}

}  // namespace

template <typename S>
void compute_ends(const Operation& operation, const Where& where, const Operands<S>& operands) {
  switch (operation.kind) {
    case OperationKind::embedding:
      return embedding(where, operands);
    case OperationKind::embedding_gradient:
      return embedding_gradient(where, operands);
    case OperationKind::positions:
      return positions(where, operands);
    case OperationKind::positions_gradient:
      return positions_gradient(where, operands);
    case OperationKind::cross_entropy_max:
      return cross_entropy_max(where, operands);
    case OperationKind::cross_entropy_sum:
      return cross_entropy_sum(where, operands);
    case OperationKind::cross_entropy_loss:
      return cross_entropy_loss(operation, where, operands);
    default:
      return cross_entropy_gradient(operation, where, operands);
  }
}

template void compute_ends(const Operation& operation, const Where& where,
                           const Operands<float>& operands);
template void compute_ends(const Operation& operation, const Where& where,
                           const Operands<double>& operands);

}  // namespace trainyard

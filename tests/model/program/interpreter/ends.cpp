// Embedding, cross-entropy, gradient norm and optimizer (plain gradient descent at rate 1, clipped
// to norm 1 where the update waits for the norm).
#include <algorithm>
#include <cmath>

#include "tests/model/program/interpreter/kernels.h"

namespace trainyard::interpreter {
namespace {

void embedding(const Where& where, const Operands& o) {
  const Matrix& table = *o.in[1];
  const Eigen::Index first = where.at.tensor * table.rows();
  o.out[0]->setZero();
  for (Eigen::Index row = 0; row < o.out[0]->rows(); ++row) {
    const auto token = static_cast<Eigen::Index>((*o.in[0])(row, 0)) - first;
    if (token >= 0 && token < table.rows()) o.out[0]->row(row) = table.row(token);
  }
}

void embedding_gradient(const Where& where, const Operands& o) {
  Matrix& table = *o.in_place[0];
  const Eigen::Index first = where.at.tensor * table.rows();
  for (Eigen::Index row = 0; row < o.in[1]->rows(); ++row) {
    const auto token = static_cast<Eigen::Index>((*o.in[0])(row, 0)) - first;
    if (token >= 0 && token < table.rows()) table.row(token) += o.in[1]->row(row);
  }
}

void positions(const Where& where, const Operands& o) {
  Matrix sum = *o.in[0];
  for (Eigen::Index row = 0; row < sum.rows(); ++row) {
    sum.row(row) += o.in[1]->row(token_place(where, row, sum.rows()).position);
  }
  *o.out[0] = sum;
}

void positions_gradient(const Where& where, const Operands& o) {
  const Matrix& dy = *o.in[0];
  for (Eigen::Index row = 0; row < dy.rows(); ++row) {
    o.in_place[0]->row(token_place(where, row, dy.rows()).position) += dy.row(row);
  }
}

// Columns of this rank's logits that are words; the rest pads the vocabulary.
Eigen::Index words(const Where& where, const Matrix& logits) {
  const Eigen::Index first = where.at.tensor * logits.cols();
  return std::clamp<Eigen::Index>(where.setting.model.vocabulary - first, 0, logits.cols());
}

void cross_entropy_max(const Where& where, const Operands& o) {
  const Matrix& logits = *o.in[0];
  const Eigen::Index columns = words(where, logits);
  o.out[0]->setConstant(-1e300);
  if (columns > 0) o.out[0]->col(0) = logits.leftCols(columns).rowwise().maxCoeff();
}

void cross_entropy_sum(const Where& where, const Operands& o) {
  const Matrix& logits = *o.in[0];
  const Eigen::Index columns = words(where, logits);
  const Eigen::Index first = where.at.tensor * logits.cols();
  Eigen::VectorXd sum = Eigen::VectorXd::Zero(logits.rows());
  Eigen::VectorXd label_logit = sum;
  for (Eigen::Index row = 0; row < logits.rows(); ++row) {
    sum[row] = (logits.row(row).head(columns).array() - (*o.in[1])(row, 0)).exp().sum();
    const auto label = static_cast<Eigen::Index>((*o.in[2])(row, 0)) - first;
    if (label >= 0 && label < columns) label_logit[row] = logits(row, label);
  }
  o.out[0]->col(0) = sum;
  o.out.back()->col(o.out.back()->cols() - 1) = label_logit;
}

struct Statistics {
  Eigen::VectorXd largest, sum, label_logit;
};
Statistics statistics(const Operands& o, std::size_t last) {
  return {o.in[0]->col(0), o.in[1]->col(0), o.in[last]->col(o.in[last]->cols() - 1)};
}

double global_tokens(const Where& where) {
  const Training& training = where.setting.training;
  return static_cast<double>(training.global_batch) * static_cast<double>(training.sequence_length);
}

void cross_entropy_loss(const Where& where, const Operands& o) {
  const Statistics s = statistics(o, o.in.size() - 1);
  const double loss = (s.sum.array().log() + s.largest.array() - s.label_logit.array()).sum();
  (*o.in_place[0])(0, 0) += loss / global_tokens(where);
}

void cross_entropy_gradient(const Where& where, const Operands& o) {
  const Statistics s = statistics(o, o.in.size() - 2);
  const Matrix& labels = *o.in.back();
  Matrix& logits = *o.in_place[0];
  const Eigen::Index columns = words(where, logits);
  const Eigen::Index first = where.at.tensor * logits.cols();
  for (Eigen::Index row = 0; row < logits.rows(); ++row) {
    logits.row(row) = (logits.row(row).array() - s.largest[row]).exp() / s.sum[row];
    logits.row(row).tail(logits.cols() - columns).setZero();
    const auto label = static_cast<Eigen::Index>(labels(row, 0)) - first;
    if (label >= 0 && label < columns) logits(row, label) -= 1;
  }
  logits /= global_tokens(where);
}

void sum_of_squares(const Operation& op, const Where& where, const Operands& o) {
  for (std::size_t i = 0; i < o.in.size(); ++i) {
    const FlatPart part = part_of(o.in[i]->size(), op.shards, where.shard);
    for (Eigen::Index k = part.begin; k < part.end; ++k) {
      const double g = o.in[i]->data()[k];
      (*o.in_place[0])(0, 0) += g * g / o.in_buffers[i]->replicas;
    }
  }
}

// In place: gradients, the states (not used by plain descent), weights. Weights beyond this rank's
// part are not known until they are gathered.
void optimizer_step(const Operation& op, const Where& where, const Operands& o) {
  const double clip = o.in.empty() ? 1 : std::min(1.0, 1 / std::sqrt((*o.in[0])(0, 0)));
  const std::size_t count = o.in_place.size() / 2;
  for (std::size_t i = 0; i < count; ++i) {
    Matrix& gradient = *o.in_place[i];
    Matrix& weight = *o.in_place[count + 1 + i];
    const FlatPart part = part_of(weight.size(), op.shards, where.shard);
    const bool is_part = op.shards > 1 && o.in_place_buffers[i]->part_of >= 0;
    const Eigen::Index first = is_part ? part.begin : 0;
    for (Eigen::Index k = 0; k < weight.size(); ++k) {
      double& w = weight.data()[k];
      w = part.has(k) ? w - clip * gradient.data()[k - first] : std::nan("");
    }
    gradient.setZero();
  }
}

}  // namespace

void compute_ends(const Operation& operation, const Where& where, const Operands& operands) {
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
      return cross_entropy_loss(where, operands);
    default:
      return cross_entropy_gradient(where, operands);
  }
}

void compute_finish(const Operation& operation, const Where& where, const Operands& operands) {
  if (operation.kind == OperationKind::sum_of_squares) {
    return sum_of_squares(operation, where, operands);
  }
  optimizer_step(operation, where, operands);
}

FlatPart part_of(Eigen::Index size, int shards, int shard) {
  const Eigen::Index length = (size + shards - 1) / shards;
  return {std::min(size, shard * length), std::min(size, (shard + 1) * length)};
}

}  // namespace trainyard::interpreter

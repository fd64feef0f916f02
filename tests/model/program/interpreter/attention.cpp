#include <cmath>
#include <limits>

#include "tests/model/program/interpreter/kernels.h"

namespace trainyard::interpreter {
namespace {

// Turns each head's pairs (i, i + d/2) by position · 10000^(−2i/d) (Su et al. 2021).
void rotate(const Where& where, Matrix& x, Eigen::Index d, double direction) {
  for (Eigen::Index row = 0; row < x.rows(); ++row) {
    const auto position = static_cast<double>(token_place(where, row, x.rows()).position);
    for (Eigen::Index column = 0; column < x.cols(); ++column) {
      const Eigen::Index i = column % d;
      if (i >= d / 2) continue;
      const double angle = direction * position *
                           std::pow(1e4, -2.0 * static_cast<double>(i) / static_cast<double>(d));
      const double a = x(row, column);
      const double b = x(row, column + d / 2);
      x(row, column) = a * std::cos(angle) - b * std::sin(angle);
      x(row, column + d / 2) = a * std::sin(angle) + b * std::cos(angle);
    }
  }
}

// One head of one sequence.
struct HeadPlace {
  Eigen::Index row = 0, rows = 0;  // of the sequence
  Eigen::Index head = 0, kv_head = 0;
};

bool sees(const AttentionShape& shape, Eigen::Index query, Eigen::Index key) {
  return key <= query && (!shape.sliding || static_cast<double>(query - key) < shape.keys);
}

Matrix scores(const Operation& op, const HeadPlace& at, const Matrix& queries, const Matrix& keys) {
  const auto d = static_cast<Eigen::Index>(op.attention.query_head_dim);
  Matrix s = queries.block(at.row, at.head * d, at.rows, d) *
             keys.block(at.row, at.kv_head * d, at.rows, d).transpose() /
             std::sqrt(static_cast<double>(d));
  for (Eigen::Index i = 0; i < s.rows(); ++i) {
    for (Eigen::Index j = 0; j < s.cols(); ++j) {
      if (!sees(op.attention, i, j)) s(i, j) = -std::numeric_limits<double>::infinity();
    }
  }
  return s;
}

template <typename Visit>
void for_each_head(const Operation& op, const Where& where, const Visit& visit) {
  const auto rows = static_cast<Eigen::Index>(where.setting.training.sequence_length);
  const auto heads = static_cast<Eigen::Index>(op.attention.heads);
  const auto shared = heads / static_cast<Eigen::Index>(op.attention.kv_heads);
  for (Eigen::Index sequence = 0; sequence < where.setting.plan.micro_batch; ++sequence) {
    for (Eigen::Index head = 0; head < heads; ++head) {
      visit(HeadPlace{sequence * rows, rows, head, head / shared});
    }
  }
}

void attention(const Operation& op, const Where& where, const Operands& o) {
  const auto d = static_cast<Eigen::Index>(op.attention.value_head_dim);
  const auto heads = static_cast<Eigen::Index>(op.attention.heads);
  Matrix& output = *o.out[0];
  Matrix& statistics = *o.out[1];
  for_each_head(op, where, [&](const HeadPlace& at) {
    const Matrix s = scores(op, at, *o.in[0], *o.in[1]);
    const Eigen::VectorXd largest = s.rowwise().maxCoeff();
    Matrix p = (s.colwise() - largest).array().exp();
    const Eigen::VectorXd sum = p.rowwise().sum();
    p = sum.cwiseInverse().asDiagonal() * p;
    output.block(at.row, at.head * d, at.rows, d) =
        p * o.in[2]->block(at.row, at.kv_head * d, at.rows, d);
    if (statistics.cols() == heads) {
      statistics.col(at.head).segment(at.row, at.rows) = largest.array() + sum.array().log();
    } else {
      statistics.block(at.row, at.head * at.rows, at.rows, at.rows) = p;
    }
  });
}

void attention_gradient(const Operation& op, const Where& where, const Operands& o) {
  const auto d = static_cast<Eigen::Index>(op.attention.query_head_dim);
  const auto heads = static_cast<Eigen::Index>(op.attention.heads);
  const Matrix& statistics = *o.in[4];
  for (Matrix* out : o.out) out->setZero();
  for_each_head(op, where, [&](const HeadPlace& at) {
    Matrix p;
    if (statistics.cols() == heads) {
      const Eigen::VectorXd lse = statistics.col(at.head).segment(at.row, at.rows);
      p = (scores(op, at, *o.in[0], *o.in[1]).colwise() - lse).array().exp();
    } else {
      p = statistics.block(at.row, at.head * at.rows, at.rows, at.rows);
    }
    const auto of_query = [&](const Matrix& x) { return x.block(at.row, at.head * d, at.rows, d); };
    const auto of_key = [&](const Matrix& x) {
      return x.block(at.row, at.kv_head * d, at.rows, d);
    };
    const Matrix dout = of_query(*o.in[5]);
    const Matrix dp = dout * of_key(*o.in[2]).transpose();
    const Eigen::VectorXd delta = dout.cwiseProduct(of_query(*o.in[3])).rowwise().sum();
    const Matrix ds = p.cwiseProduct(dp.colwise() - delta) / std::sqrt(static_cast<double>(d));
    o.out[0]->block(at.row, at.head * d, at.rows, d) += ds * of_key(*o.in[1]);
    o.out[1]->block(at.row, at.kv_head * d, at.rows, d) += ds.transpose() * of_query(*o.in[0]);
    o.out[2]->block(at.row, at.kv_head * d, at.rows, d) += p.transpose() * dout;
  });
}

}  // namespace

void compute_attention(const Operation& operation, const Where& where, const Operands& operands) {
  switch (operation.kind) {
    case OperationKind::attention:
      return attention(operation, where, operands);
    case OperationKind::attention_gradient:
      return attention_gradient(operation, where, operands);
    default:
      break;
  }
  const double direction = operation.kind == OperationKind::rotary ? 1 : -1;
  for (Matrix* x : operands.in_place) {
    rotate(where, *x, where.setting.model.head_dim, direction);
  }
}

}  // namespace trainyard::interpreter

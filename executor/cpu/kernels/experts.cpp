// Routing, the order of the copies of tokens, and what experts compute. Experts are chosen by logit
// plus correction bias; gates are the softmax over the logits of the chosen experts.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "executor/cpu/kernels/kernels.h"

namespace trainyard {
namespace {

// A copy beyond its expert's capacity is marked by −1 − expert, which still names the expert.
template <typename S>
bool is_dropped(S expert) {
  return expert < 0;
}
template <typename S>
S dropped(S expert) {
  return -1 - expert;
}
template <typename S>
Eigen::Index expert_of(S mark) {
  return static_cast<Eigen::Index>(is_dropped(mark) ? -1 - mark : mark);
}

// NaN scores count as −∞: sorting needs an order.
template <typename S>
std::vector<Eigen::Index> chosen(RowVector<S> scores, Eigen::Index count) {
  scores = scores.unaryExpr(
      [](S score) { return std::isnan(score) ? -std::numeric_limits<S>::infinity() : score; });
  std::vector<Eigen::Index> order(static_cast<std::size_t>(scores.size()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](Eigen::Index a, Eigen::Index b) { return scores[a] > scores[b]; });
  order.resize(static_cast<std::size_t>(count));
  return order;
}

// The rank that has a token in the plan whose ranks drop tokens, and the token's row there.
struct Block {
  std::int64_t rank = 0, row = 0;
};

Block block_of(const Where& where, Eigen::Index row, Eigen::Index rows) {
  const TokenPlace token = token_place(where, row, rows);
  const Plan& plan = where.setting.blocks ? *where.setting.blocks : where.setting.plan;
  const std::int64_t length = where.setting.training.sequence_length;
  const std::int64_t part = length / plan.context_parallel;
  const std::int64_t local = part * plan.micro_batch / plan.tensor_parallel;
  const DealtRow dealt = dealt_row(plan, length, token.position);
  const std::int64_t in_rank = token.sequence % plan.micro_batch * part + dealt.row;
  const std::int64_t microbatch = token.sequence / plan.micro_batch;
  return {
      (microbatch * plan.context_parallel + dealt.context) * plan.tensor_parallel + in_rank / local,
      in_rank % local};
}

template <typename S>
void drop_beyond(const Where& where, int capacity, Tensor<S>& experts) {
  std::vector<std::tuple<std::int64_t, std::int64_t, Eigen::Index>> order;
  order.reserve(static_cast<std::size_t>(experts.rows()));
  for (Eigen::Index row = 0; row < experts.rows(); ++row) {
    const Block block = block_of(where, row, experts.rows());
    order.emplace_back(block.rank, block.row, row);
  }
  std::sort(order.begin(), order.end());
  std::vector<int> taken;  // copies that each expert has of one rank's tokens
  std::int64_t whose = -1;
  for (const auto& [rank, place, row] : order) {
    if (std::exchange(whose, rank) != rank) {
      taken.assign(static_cast<std::size_t>(where.setting.model.experts), 0);
    }
    for (Eigen::Index j = 0; j < experts.cols(); ++j) {
      S& expert = experts(row, j);
      int& copies = taken[static_cast<std::size_t>(expert_of(expert))];
      if (++copies > capacity) expert = dropped(expert);
    }
  }
}

int capacity_of(const Operation& op, const Where& where) {
  if (op.capacity == 0 || !where.setting.blocks) return op.capacity;
  const Plan& plan = *where.setting.blocks;
  const double tokens = static_cast<double>(where.setting.training.sequence_length) *
                        plan.micro_batch / plan.context_parallel / plan.tensor_parallel;
  const Transformer& model = where.setting.model;
  return static_cast<int>(
      expert_capacity(tokens, model.experts_per_token, model.experts, plan.capacity_factor));
}

template <typename S>
RowVector<S> gates_of(const RowVector<S>& logits, const RowVector<S>& experts) {
  RowVector<S> gates(experts.size());
  for (Eigen::Index j = 0; j < gates.size(); ++j) gates[j] = logits[expert_of(experts[j])];
  gates = (gates.array() - gates.maxCoeff()).exp();
  return gates / gates.sum();
}

template <typename S>
void route(const Operation& op, const Where& where, const Operands<S>& o) {
  const Tensor<S>& logits = *o.in[0];
  Tensor<S>& gates = *o.out[0];
  Tensor<S>& experts = *o.out[1];
  for (Eigen::Index row = 0; row < logits.rows(); ++row) {
    RowVector<S> scores = logits.row(row);
    if (o.in.size() > 1) scores += o.in[1]->col(0).transpose();
    const std::vector<Eigen::Index> best = chosen<S>(scores, gates.cols());
    for (Eigen::Index j = 0; j < gates.cols(); ++j) {
      experts(row, j) = static_cast<S>(best[static_cast<std::size_t>(j)]);
    }
    gates.row(row) = gates_of<S>(logits.row(row), experts.row(row));
  }
  drop_copies(op, where, experts);
}

// A copy that was not dropped: its token, and which of the token's experts it is for. Copies are in
// the order of experts.
struct Copy {
  Eigen::Index token = 0, choice = 0;
};
template <typename S>
std::vector<Copy> copies_of(const Tensor<S>& experts) {
  std::vector<Copy> copies;
  for (Eigen::Index token = 0; token < experts.rows(); ++token) {
    for (Eigen::Index choice = 0; choice < experts.cols(); ++choice) {
      if (!is_dropped(experts(token, choice))) copies.push_back({token, choice});
    }
  }
  std::stable_sort(copies.begin(), copies.end(), [&](const Copy& a, const Copy& b) {
    return experts(a.token, a.choice) < experts(b.token, b.choice);
  });
  return copies;
}

// d logit of a chosen expert = g (dg − Σ g dg); the gate of a dropped copy has no gradient.
template <typename S>
void route_gradient(const Operands<S>& o) {
  const Tensor<S>& logits = *o.in[0];
  const Tensor<S>& experts = *o.in[1];
  Tensor<S> d = Tensor<S>::Zero(experts.rows(), experts.cols());
  const std::vector<Copy> copies = copies_of(experts);
  for (std::size_t i = 0; i < copies.size(); ++i) {
    d(copies[i].token, copies[i].choice) = (*o.in[2])(static_cast<Eigen::Index>(i), 0);
  }
  o.out[0]->setZero();
  for (Eigen::Index row = 0; row < logits.rows(); ++row) {
    const RowVector<S> g = gates_of<S>(logits.row(row), experts.row(row));
    const S mean = g.dot(d.row(row));
    for (Eigen::Index j = 0; j < g.size(); ++j) {
      (*o.out[0])(row, expert_of(experts(row, j))) = g[j] * (d(row, j) - mean);
    }
  }
}

// ---- Order ------------------------------------------------------------------------------

template <typename S>
void permute(const Where& where, const Operands<S>& o) {
  const Tensor<S>& experts = *o.in[0];
  const std::vector<Copy> copies = copies_of(experts);
  const auto count = static_cast<Eigen::Index>(copies.size());
  o.out[0]->resize(count, o.in[1]->cols());
  const bool with_gates = o.out.size() > 1;
  if (with_gates) {
    o.out[1]->resize(count, 1);
    o.out[2]->setZero(1, where.setting.model.experts);
  }
  for (Eigen::Index i = 0; i < count; ++i) {
    const Copy& copy = copies[static_cast<std::size_t>(i)];
    o.out[0]->row(i) = o.in[1]->row(copy.token);
    if (!with_gates) continue;
    (*o.out[1])(i, 0) = (*o.in[2])(copy.token, copy.choice);
    (*o.out[2])(0, expert_of(experts(copy.token, copy.choice))) += 1;
  }
}

template <typename S>
void unpermute(const Operands<S>& o) {
  const std::vector<Copy> copies = copies_of(*o.in[0]);
  Tensor<S> sum = Tensor<S>::Zero(o.out[0]->rows(), o.out[0]->cols());
  for (std::size_t i = 2; i < o.in.size(); ++i) sum += *o.in[i];
  for (std::size_t i = 0; i < copies.size(); ++i) {
    sum.row(copies[i].token) += o.in[1]->row(static_cast<Eigen::Index>(i));
  }
  *o.out[0] = sum;
}

// The rows in the order of experts, as indices into the rows in the order of sources.
template <typename S>
std::vector<Eigen::Index> sorted_rows(const Tensor<S>& counts) {
  Tensor<S> first(counts.rows(), counts.cols());
  S row = 0;
  for (Eigen::Index i = 0; i < counts.size(); ++i) {
    first.data()[i] = row;
    row += counts.data()[i];
  }
  std::vector<Eigen::Index> rows;
  for (Eigen::Index expert = 0; expert < counts.cols(); ++expert) {
    for (Eigen::Index source = 0; source < counts.rows(); ++source) {
      for (S i = 0; i < counts(source, expert); ++i) {
        rows.push_back(static_cast<Eigen::Index>(first(source, expert) + i));
      }
    }
  }
  return rows;
}

template <typename S>
void sort_rows(const Operation& op, const Operands<S>& o) {
  const std::vector<Eigen::Index> rows = sorted_rows(*o.in[0]);
  for (std::size_t i = 0; i < o.out.size(); ++i) {
    const Tensor<S>& in = *o.in[i + 1];
    Tensor<S> out(in.rows(), in.cols());
    if (op.kind == OperationKind::sort_rows) {
      out = in(rows, Eigen::all);
    } else {
      out(rows, Eigen::all) = in;
    }
    *o.out[i] = out;
  }
}

// ---- Experts ------------------------------------------------------------------------------

// Calls visit(expert, first row, rows) for each expert.
template <typename S, typename Visit>
void for_each_expert(const Tensor<S>& counts, const Visit& visit) {
  Eigen::Index row = 0;
  for (Eigen::Index expert = 0; expert < counts.cols(); ++expert) {
    const auto rows = static_cast<Eigen::Index>(counts.col(expert).sum());
    visit(expert, row, rows);
    row += rows;
  }
}

template <typename S>
void grouped_linear(const Operation& op, const Operands<S>& o) {
  const Tensor<S>& counts = *o.in[0];
  const Tensor<S>& x = *o.in[1];
  const CastWeight<S> weights(*o.in[2], op.cast);
  const Eigen::Index height = o.in[2]->rows() / counts.cols();
  const Eigen::Index width = o.out[0]->cols();  // the first columns alone
  Tensor<S> y(x.rows(), width);
  for_each_expert(counts, [&](Eigen::Index expert, Eigen::Index row, Eigen::Index rows) {
    y.middleRows(row, rows) =
        x.middleRows(row, rows) * weights->middleRows(expert * height, width).transpose();
    if (o.in.size() == 3) return;
    y.middleRows(row, rows).rowwise() +=
        o.in[3]->col(0).segment(expert * height, width).transpose();
  });
  *o.out[0] = y;
}

template <typename S>
void grouped_linear_input_gradient(const Operation& op, const Operands<S>& o) {
  const Tensor<S>& dy = *o.in[1];
  const CastWeight<S> weights(*o.in[2], op.cast);
  const Eigen::Index height = o.in[2]->rows() / o.in[0]->cols();
  Tensor<S> dx(dy.rows(), o.in[2]->cols());
  for_each_expert(*o.in[0], [&](Eigen::Index expert, Eigen::Index row, Eigen::Index rows) {
    dx.middleRows(row, rows) =
        dy.middleRows(row, rows) * weights->middleRows(expert * height, height);
  });
  *o.out[0] = dx;
}

template <typename S>
void grouped_linear_weight_gradient(const Operands<S>& o) {
  const Tensor<S>& x = *o.in[1];
  const Tensor<S>& dy = *o.in[2];
  const Eigen::Index height = dy.cols();
  for_each_expert(*o.in[0], [&](Eigen::Index expert, Eigen::Index row, Eigen::Index rows) {
    o.in_place[0]->middleRows(expert * height, height) +=
        dy.middleRows(row, rows).transpose() * x.middleRows(row, rows);
    if (o.in_place.size() == 1) return;
    o.in_place[1]->col(0).segment(expert * height, height) +=
        dy.middleRows(row, rows).colwise().sum().transpose();
  });
}

// Calls visit(row, first element of its expert's bias, width) for each row.
template <typename S, typename Visit>
void for_each_biased_row(const Operands<S>& o, const Visit& visit) {
  const Tensor<S>& counts = *o.in[0];
  const Eigen::Index height = o.in[2]->rows() / counts.cols();
  Eigen::Index row = 0;
  for (Eigen::Index i = 0; i < counts.size(); ++i) {
    const Eigen::Index first = i % counts.cols() * height;
    for (S n = 0; n < counts.data()[i]; ++n) visit(row++, first, height);
  }
}

template <typename S>
void expert_bias(const Operands<S>& o) {
  for_each_biased_row(o, [&](Eigen::Index row, Eigen::Index first, Eigen::Index height) {
    o.in_place[0]->row(row) +=
        (*o.in[1])(row, 0) * o.in[2]->col(0).segment(first, height).transpose();
  });
}

template <typename S>
void expert_bias_gradient(const Operands<S>& o) {
  const Tensor<S>& dy = *o.in[3];
  for_each_biased_row(o, [&](Eigen::Index row, Eigen::Index first, Eigen::Index height) {
    o.in_place[0]->col(0).segment(first, height) += (*o.in[1])(row, 0) * dy.row(row).transpose();
    (*o.in_place[1])(row, 0) += dy.row(row).dot(o.in[2]->col(0).segment(first, height));
  });
}

}  // namespace

template <typename S>
void compute_experts(const Operation& operation, const Where& where, const Operands<S>& operands) {
  switch (operation.kind) {
    case OperationKind::route:
      return route(operation, where, operands);
    case OperationKind::route_gradient:
      return route_gradient(operands);
    case OperationKind::permute:
      return permute(where, operands);
    case OperationKind::unpermute:
      return unpermute(operands);
    case OperationKind::sort_rows:
    case OperationKind::unsort_rows:
      return sort_rows(operation, operands);
    case OperationKind::grouped_linear:
      return grouped_linear(operation, operands);
    case OperationKind::grouped_linear_input_gradient:
      return grouped_linear_input_gradient(operation, operands);
    case OperationKind::grouped_linear_weight_gradient:
      return grouped_linear_weight_gradient(operands);
    case OperationKind::expert_bias:
      return expert_bias(operands);
    default:
      return expert_bias_gradient(operands);
  }
}

template <typename S>
void drop_copies(const Operation& operation, const Where& where, Tensor<S>& experts) {
  const int capacity = capacity_of(operation, where);
  if (capacity > 0) drop_beyond(where, capacity, experts);
}

template void drop_copies(const Operation& operation, const Where& where, Tensor<float>& experts);
template void drop_copies(const Operation& operation, const Where& where, Tensor<double>& experts);
template void compute_experts(const Operation& operation, const Where& where,
                              const Operands<float>& operands);
template void compute_experts(const Operation& operation, const Where& where,
                              const Operands<double>& operands);

}  // namespace trainyard

#include "executor/cpu/kernels/kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace trainyard {
namespace {

constexpr double kEpsilon = 1e-5;
constexpr double kKept = 1 / (1 - kDropoutRate);

// Normalised rows, and the factor that each was multiplied with.
template <typename S>
struct Normalised {
  Tensor<S> rows;
  Vector<S> inverse;
};

template <typename S>
Normalised<S> normalised(const Tensor<S>& x, bool centred) {
  Tensor<S> rows = x;
  if (centred) rows.colwise() -= x.rowwise().mean();
  const Vector<S> squares = rows.rowwise().squaredNorm() / static_cast<S>(x.cols());
  const Vector<S> inverse = (squares.array() + static_cast<S>(kEpsilon)).rsqrt();
  return {inverse.asDiagonal() * rows, inverse};
}

template <typename S>
void norm(const Where& where, const Operands<S>& o) {
  const bool centred = where.setting.model.norm == Norm::layer_norm;
  Tensor<S> y = normalised<S>(*o.in[0], centred).rows * o.in[1]->col(0).asDiagonal();
  if (o.in.size() > 2) y.rowwise() += o.in[2]->col(0).transpose();
  *o.out[0] = y;
}

// dx = (g − mean(g) − x̂·mean(g·x̂)) / σ with g = dy·scale; the first mean only where x is centred.
template <typename S>
Tensor<S> norm_input_gradient(const Normalised<S>& x, const Tensor<S>& g, bool centred) {
  const auto width = static_cast<S>(g.cols());
  const Vector<S> along = x.rows.cwiseProduct(g).rowwise().sum() / width;
  Tensor<S> dx = g - along.asDiagonal() * x.rows;
  if (centred) dx.colwise() -= g.rowwise().mean();
  return x.inverse.asDiagonal() * dx;
}

template <typename S>
void norm_gradient(const Where& where, const Operands<S>& o) {
  const bool centred = where.setting.model.norm == Norm::layer_norm;
  const Normalised<S> x = normalised<S>(*o.in[0], centred);
  const Tensor<S>& dy = *o.in[1];
  *o.out[0] = norm_input_gradient<S>(x, dy * o.in[2]->col(0).asDiagonal(), centred);
  o.in_place[0]->col(0) += x.rows.cwiseProduct(dy).colwise().sum().transpose();
  if (o.in_place.size() > 1) o.in_place[1]->col(0) += dy.colwise().sum().transpose();
}

// Heads as rows of their own.
template <typename S>
Tensor<S> by_head(const Tensor<S>& x, Eigen::Index d) {
  return Eigen::Map<const Tensor<S>>(x.data(), x.size() / d, d);
}
template <typename S>
Tensor<S> by_token(const Tensor<S>& heads, Eigen::Index rows) {
  return Eigen::Map<const Tensor<S>>(heads.data(), rows, heads.size() / rows);
}

template <typename S>
void head_norm(const Operands<S>& o) {
  const std::size_t count = o.out.size();
  for (std::size_t i = 0; i < count; ++i) {
    const Tensor<S>& scale = *o.in[count + i];
    const Tensor<S> heads = by_head<S>(*o.in[i], scale.rows());
    *o.out[i] =
        by_token<S>(normalised<S>(heads, false).rows * scale.col(0).asDiagonal(), o.in[i]->rows());
  }
}

template <typename S>
void head_norm_gradient(const Operands<S>& o) {
  const std::size_t count = o.out.size();
  for (std::size_t i = 0; i < count; ++i) {
    const Tensor<S>& scale = *o.in[2 * count + i];
    const Normalised<S> x = normalised<S>(by_head<S>(*o.in[i], scale.rows()), false);
    const Tensor<S> dy = by_head<S>(*o.in[count + i], scale.rows());
    *o.out[i] = by_token<S>(norm_input_gradient<S>(x, dy * scale.col(0).asDiagonal(), false),
                            o.in[i]->rows());
    o.in_place[i]->col(0) += x.rows.cwiseProduct(dy).colwise().sum().transpose();
  }
}

template <typename S>
Tensor<S> beside(const std::vector<const Tensor<S>*>& parts) {
  Eigen::Index columns = 0;
  for (const Tensor<S>* part : parts) columns += part->cols();
  Tensor<S> all(parts.front()->rows(), columns);
  columns = 0;
  for (const Tensor<S>* part : parts) {
    all.middleCols(columns, part->cols()) = *part;
    columns += part->cols();
  }
  return all;
}

// Several matrices side by side as one; a single matrix without a copy.
template <typename S>
class Beside {
 public:
  explicit Beside(const std::vector<const Tensor<S>*>& parts) : one_(parts.front()) {
    if (parts.size() == 1) return;
    all_ = beside<S>(parts);
    one_ = &all_;
  }
  const Tensor<S>& operator*() const { return *one_; }

 private:
  Tensor<S> all_;
  const Tensor<S>* one_;
};

// The weights of a product are stacked by rows, and its biases, a column each, come behind them:
// whether this operand is a weight, when those before it fill `filled` of all `rows`. A weight has
// one column, too, where the input has.
template <typename S>
bool is_weight_of(const Tensor<S>& input, const Tensor<S>& operand, Eigen::Index filled,
                  Eigen::Index rows) {
  return operand.cols() == input.cols() && filled < rows;
}

template <typename S>
void linear(const Operation& op, const Operands<S>& o) {
  const Tensor<S>& x = *o.in[0];
  Eigen::Index width = 0;
  for (const Tensor<S>* out : o.out) width += out->cols();
  Tensor<S> joined;
  Tensor<S>& y = o.out.size() == 1 ? *o.out[0] : joined;
  y.resize(x.rows(), width);
  Eigen::Index column = 0;
  Eigen::Index biased = 0;
  for (std::size_t i = 1; i < o.in.size(); ++i) {
    const Tensor<S>& w = *o.in[i];
    const bool is_weight = is_weight_of(x, w, column, width);
    Eigen::Index& from = is_weight ? column : biased;
    const Eigen::Index rows = std::min(w.rows(), width - from);
    if (is_weight) {
      const CastWeight<S> read(w, op.cast);
      y.middleCols(from, rows).noalias() = x * read->topRows(rows).transpose();
    } else {
      y.middleCols(from, rows).rowwise() += w.col(0).head(rows).transpose();
    }
    from += rows;
  }
  if (o.out.size() == 1) return;
  column = 0;
  for (Tensor<S>* out : o.out) {
    *out = joined.middleCols(column, out->cols());
    column += out->cols();
  }
}

template <typename S>
void linear_input_gradient(const Operation& op, const Operands<S>& o) {
  std::vector<const Tensor<S>*> gradients;
  std::vector<const Tensor<S>*> weights;
  for (std::size_t i = 0; i < o.in.size(); ++i) {
    const bool weight = o.in_buffers[i]->role == BufferRole::weight || o.in_buffers[i]->gathered;
    (weight ? weights : gradients).push_back(o.in[i]);
  }
  const Beside<S> dy(gradients);
  Tensor<S>& dx = o.out.empty() ? *o.in_place[0] : *o.out[0];
  if (!o.out.empty()) dx.setZero();
  Eigen::Index column = 0;
  for (const Tensor<S>* w : weights) {
    const CastWeight<S> read(*w, op.cast);
    dx.noalias() += (*dy).middleCols(column, w->rows()) * *read;
    column += w->rows();
  }
}

template <typename S>
void linear_weight_gradient(const Operands<S>& o) {
  const Tensor<S>& x = *o.in[0];
  const Beside<S> dy({o.in.begin() + 1, o.in.end()});
  Eigen::Index column = 0;
  Eigen::Index biased = 0;
  for (Tensor<S>* gradient : o.in_place) {
    const Eigen::Index rows = gradient->rows();
    if (is_weight_of(x, *gradient, column, (*dy).cols())) {
      gradient->noalias() += (*dy).middleCols(column, rows).transpose() * x;
      column += rows;
    } else {
      gradient->col(0) += (*dy).middleCols(biased, rows).colwise().sum().transpose();
      biased += rows;
    }
  }
}

template <typename S>
Tensor<S> dropout_mask(const Operation& op, const Where& where, const Tensor<S>& like) {
  Tensor<S> mask(like.rows(), like.cols());
  for (Eigen::Index row = 0; row < mask.rows(); ++row) {
    const TokenPlace place = token_place(where, row, mask.rows());
    for (Eigen::Index column = 0; column < mask.cols(); ++column) {
      mask(row, column) = is_kept(where.setting, {static_cast<int>(*op.part), where.tag.layer,
                                                  place.sequence, place.position, column})
                              ? S(1)
                              : S(0);
    }
  }
  return mask;
}

template <typename S>
void residual(const Operation& op, const Where& where, const Operands<S>& o) {
  Tensor<S> branch = *o.in[1];
  if (o.in.size() > 2) branch.rowwise() += o.in[2]->col(0).transpose();
  if (o.out.size() > 1) {
    *o.out[1] = dropout_mask(op, where, branch);
    branch = branch.cwiseProduct(*o.out[1]) * static_cast<S>(kKept);
  }
  *o.out[0] = *o.in[0] + branch;
}

template <typename S>
void dropout(const Operation& op, const Where& where, const Operands<S>& o) {
  *o.out[1] = dropout_mask(op, where, *o.in[0]);
  *o.out[0] = o.in[0]->cwiseProduct(*o.out[1]) * static_cast<S>(kKept);
}

template <typename S>
void dropout_gradient(const Operands<S>& o) {
  *o.out[0] = o.in[0]->cwiseProduct(*o.in[1]) * static_cast<S>(kKept);
  if (!o.in_place.empty()) o.in_place[0]->col(0) += o.out[0]->colwise().sum().transpose();
}

template <typename S>
void residual_gradient(const Operands<S>& o) {
  *o.out[0] = *o.in[0] + *o.in[1];
  if (!o.in_place.empty()) o.in_place[0]->col(0) += o.in[0]->colwise().sum().transpose();
}

// Element by element, because some sums are flat arrays.
template <typename S>
void accumulate(const Operands<S>& o) {
  for (std::size_t i = 0; i < o.in.size(); ++i) {
    for (Eigen::Index k = 0; k < o.in[i]->size(); ++k) {
      o.in_place[i]->data()[k] += o.in[i]->data()[k];
    }
  }
}

template <typename S>
void move_own_part(const Where& where, const Operands<S>& o) {
  const Tensor<S>& whole = *o.in[0];
  Tensor<S>& part = *o.out[0];
  const Eigen::Index rows = part.rows(), columns = part.cols();
  const bool by_rows = rows < whole.rows();
  part = whole.block(by_rows ? where.shard * rows : 0, by_rows ? 0 : where.shard * columns, rows,
                     columns);
}

template <typename S>
void move(const Operation& op, const Where& where, const Operands<S>& o) {
  if (op.shards > 1) return move_own_part(where, o);
  const Beside<S> all(o.in);
  Eigen::Index column = (*all).cols();
  for (const Tensor<S>* out : o.out) column -= out->cols();
  for (Tensor<S>* out : o.out) {
    const Eigen::Index width = out->cols();
    *out = (*all).middleCols(column, width);
    column += width;
  }
}

// Copies this rank's part out of a whole (`scatters`), or back into it. The rest of such a weight
// is not known until it is gathered. What pads a part on the host stays zero.
template <typename S>
void copy_part(const Operation& op, const Where& where, bool scatters, const Tensor<S>& from,
               Tensor<S>& to) {
  const FlatPart part = part_of(scatters ? from.size() : to.size(), op.shards, where.shard);
  std::copy_n(from.data() + (scatters ? part.begin : 0), part.end - part.begin,
              to.data() + (scatters ? 0 : part.begin));
}

// Copies elements as flat arrays, whatever the shapes.
template <typename S>
void copy(const Operation& op, const Where& where, const Operands<S>& o) {
  const std::vector<Tensor<S>*>& into = o.out.empty() ? o.in_place : o.out;
  for (std::size_t i = 0; i < into.size(); ++i) {
    const Tensor<S>& from = *o.in[i];
    Tensor<S>& to = *into[i];
    if (op.shards == 1) {
      if (!o.out.empty()) to.resize(from.rows(), from.cols());
      std::copy_n(from.data(), from.size(), to.data());
      continue;
    }
    const bool scatters = o.in_buffers[i]->part_of < 0;
    if (!o.out.empty()) {
      to.setZero();
    } else if (!scatters && where.setting.marks_unknown) {
      to.setConstant(std::numeric_limits<S>::quiet_NaN());
    }
    copy_part(op, where, scatters, from, to);
  }
}

template <typename S>
Tensor<S> sigmoid(const Tensor<S>& x) {
  return (1 + (-x.array()).exp()).inverse();
}
template <typename S>
S normal_density(S x) {
  return std::exp(-x * x / 2) / static_cast<S>(std::sqrt(2 * M_PI));
}
template <typename S>
S normal_distribution(S x) {
  return std::erfc(-x / static_cast<S>(std::sqrt(2.0))) / 2;
}

template <typename S>
Tensor<S> activated(const Where& where, const Tensor<S>& x) {
  if (!where.setting.model.gated_mlp) {
    return x.unaryExpr([](S v) { return v * normal_distribution(v); });
  }
  const Tensor<S> gate = x.leftCols(x.cols() / 2);
  return gate.cwiseProduct(sigmoid<S>(gate)).cwiseProduct(x.rightCols(x.cols() / 2));
}

template <typename S>
void activation(const Where& where, const Operands<S>& o) {
  *o.out[0] = activated(where, *o.in[0]);
  if (o.in.size() > 1) *o.out[0] = o.in[1]->col(0).asDiagonal() * *o.out[0];
}

template <typename S>
void activation_gradient(const Where& where, const Operands<S>& o) {
  const Tensor<S>& x = *o.in[0];
  Tensor<S> dy = *o.in[1];
  if (o.in.size() > 2) {  // the rows have gates
    o.out[1]->resize(x.rows(), 1);
    o.out[1]->col(0) = dy.cwiseProduct(activated(where, x)).rowwise().sum();
    dy = o.in[2]->col(0).asDiagonal() * dy;
  }
  if (!where.setting.model.gated_mlp) {
    *o.out[0] = dy.cwiseProduct(
        x.unaryExpr([](S v) { return normal_distribution(v) + v * normal_density(v); }));
    return;
  }
  const Eigen::Index f = x.cols() / 2;
  const Tensor<S> gate = x.leftCols(f);
  const Tensor<S> s = sigmoid<S>(gate);
  Tensor<S> dx(x.rows(), 2 * f);
  dx.leftCols(f) =
      dy.array() * x.rightCols(f).array() * s.array() * (1 + gate.array() * (1 - s.array()));
  dx.rightCols(f) = dy.cwiseProduct(gate).cwiseProduct(s);
  *o.out[0] = dx;
}

template <typename S>
void compute_tokens(const Operation& operation, const Where& where, const Operands<S>& operands) {
  switch (operation.kind) {
    case OperationKind::norm:
      return norm(where, operands);
    case OperationKind::norm_gradient:
      return norm_gradient(where, operands);
    case OperationKind::head_norm:
      return head_norm(operands);
    case OperationKind::head_norm_gradient:
      return head_norm_gradient(operands);
    case OperationKind::linear:
      return linear(operation, operands);
    case OperationKind::linear_input_gradient:
      return linear_input_gradient(operation, operands);
    case OperationKind::linear_weight_gradient:
      return linear_weight_gradient(operands);
    case OperationKind::cast:
      return cast(operation, where, operands);
    case OperationKind::residual:
      return residual(operation, where, operands);
    case OperationKind::dropout:
      return dropout(operation, where, operands);
    case OperationKind::dropout_gradient:
      return dropout_gradient(operands);
    case OperationKind::residual_gradient:
      return residual_gradient(operands);
    case OperationKind::activation:
      return activation(where, operands);
    default:
      return activation_gradient(where, operands);
  }
}

template <typename S>
void compute_states(const Operation& operation, const Where& where, const Operands<S>& operands) {
  switch (operation.kind) {
    case OperationKind::accumulate:
      return accumulate(operands);
    case OperationKind::move:
      return move(operation, where, operands);
    case OperationKind::clear:
      for (Tensor<S>* gradient : operands.out) gradient->setZero();
      for (Tensor<S>* gradient : operands.in_place) gradient->setZero();
      return;
    case OperationKind::copy:
      return copy(operation, where, operands);
    case OperationKind::await:
      return;
    default:
      return compute_update(operation, where, operands);
  }
}

// Whether a context rank has two chunks of a sequence, of which it has `part` tokens.
bool in_two_chunks(const Plan& plan, std::int64_t part) {
  const bool whole_heads = plan.context_parallel_algorithm == ContextAlgorithm::ulysses;
  return plan.context_parallel > 1 && !whole_heads && part % 2 == 0;
}

}  // namespace

std::int64_t dealt_position(const Plan& plan, std::int64_t length, int context, std::int64_t row) {
  const int ranks = plan.context_parallel;
  const std::int64_t part = length / ranks;
  if (!in_two_chunks(plan, part)) return context * part + row;
  const std::int64_t chunk = part / 2;
  return row < chunk ? context * chunk + row : (2 * ranks - 1 - context) * chunk + row - chunk;
}

DealtRow dealt_row(const Plan& plan, std::int64_t length, std::int64_t position) {
  const int ranks = plan.context_parallel;
  const std::int64_t part = length / ranks;
  if (!in_two_chunks(plan, part)) return {static_cast<int>(position / part), position % part};
  const std::int64_t chunk = part / 2;
  const auto which = static_cast<int>(position / chunk);
  if (which < ranks) return {which, position % chunk};
  return {2 * ranks - 1 - which, chunk + position % chunk};
}

TokenPlace token_place(const Where& where, Eigen::Index row, Eigen::Index rows) {
  const Setting& setting = where.setting;
  const std::int64_t part = setting.training.sequence_length / setting.plan.context_parallel;
  if (rows < part * setting.plan.micro_batch) row += where.at.tensor * rows;
  const std::int64_t first =
      where.step * setting.training.global_batch +
      (std::int64_t{where.at.data} * setting.plan.microbatches + where.tag.microbatch) *
          setting.plan.micro_batch;
  return {first + row / part, dealt_position(setting.plan, setting.training.sequence_length,
                                             where.at.context, row % part)};
}

KernelGroup group_of(OperationKind kind) {
  switch (kind) {
    case OperationKind::norm:
    case OperationKind::norm_gradient:
    case OperationKind::head_norm:
    case OperationKind::head_norm_gradient:
    case OperationKind::linear:
    case OperationKind::linear_input_gradient:
    case OperationKind::linear_weight_gradient:
    case OperationKind::cast:
    case OperationKind::residual:
    case OperationKind::residual_gradient:
    case OperationKind::dropout:
    case OperationKind::dropout_gradient:
    case OperationKind::activation:
    case OperationKind::activation_gradient:
      return KernelGroup::tokens;
    case OperationKind::rotary:
    case OperationKind::rotary_gradient:
    case OperationKind::latent_rotary:
    case OperationKind::latent_rotary_gradient:
    case OperationKind::attention:
    case OperationKind::attention_gradient:
    case OperationKind::attention_step:
    case OperationKind::attention_gradient_step:
      return KernelGroup::attention;
    case OperationKind::route:
    case OperationKind::route_gradient:
    case OperationKind::permute:
    case OperationKind::unpermute:
    case OperationKind::sort_rows:
    case OperationKind::unsort_rows:
    case OperationKind::grouped_linear:
    case OperationKind::grouped_linear_input_gradient:
    case OperationKind::grouped_linear_weight_gradient:
    case OperationKind::expert_bias:
    case OperationKind::expert_bias_gradient:
      return KernelGroup::experts;
    case OperationKind::clear:
    case OperationKind::accumulate:
    case OperationKind::move:
    case OperationKind::copy:
    case OperationKind::await:
    case OperationKind::sum_of_squares:
    case OperationKind::optimizer_step:
      return KernelGroup::states;
    default:
      return KernelGroup::ends;
  }
}

template <typename S>
void compute(const Operation& operation, const Where& where, const Operands<S>& operands) {
  switch (group_of(operation.kind)) {
    case KernelGroup::tokens:
      return compute_tokens(operation, where, operands);
    case KernelGroup::attention:
      return compute_attention(operation, where, operands);
    case KernelGroup::experts:
      return compute_experts(operation, where, operands);
    case KernelGroup::states:
      return compute_states(operation, where, operands);
    case KernelGroup::ends:
      return compute_ends(operation, where, operands);
  }
}

template void compute(const Operation& operation, const Where& where,
                      const Operands<float>& operands);
template void compute(const Operation& operation, const Where& where,
                      const Operands<double>& operands);

}  // namespace trainyard

#include <cmath>
#include <limits>
#include <vector>

#include "executor/cpu/kernels/kernels.h"

namespace trainyard {
namespace {

// Turns each head's pairs (i, i + d/2) by position · 10000^(−2i/d) (Su et al. 2021).
template <typename S>
void rotate(const Where& where, Eigen::Ref<Tensor<S>> x, Eigen::Index d, double direction) {
  for (Eigen::Index i = 0; i < d / 2; ++i) {
    const double speed =
        direction * std::pow(1e4, -2.0 * static_cast<double>(i) / static_cast<double>(d));
    for (Eigen::Index row = 0; row < x.rows(); ++row) {
      const auto position = static_cast<double>(token_place(where, row, x.rows()).position);
      const auto cosine = static_cast<S>(std::cos(speed * position));
      const auto sine = static_cast<S>(std::sin(speed * position));
      for (Eigen::Index column = i; column < x.cols(); column += d) {
        const S a = x(row, column);
        const S b = x(row, column + d / 2);
        x(row, column) = a * cosine - b * sine;
        x(row, column + d / 2) = a * sine + b * cosine;
      }
    }
  }
}

// Turns the last elements of each head of the queries, and the part of the keys that all heads
// share.
template <typename S>
void latent_rotary(const Operation& op, const Where& where, const Operands<S>& o) {
  const LatentAttention& latent = *where.setting.model.latent_attention;
  const Eigen::Index nope = latent.nope_head_dim;
  const Eigen::Index rope = latent.rope_head_dim;
  const bool forward = op.kind == OperationKind::latent_rotary;
  const double direction = forward ? 1 : -1;
  Tensor<S>& queries = *o.in_place[0];
  const Eigen::Index heads = queries.cols() / (nope + rope);
  for (Eigen::Index head = 0; head < heads; ++head) {
    rotate<S>(where, queries.middleCols(head * (nope + rope) + nope, rope), rope, direction);
  }
  if (forward) {
    Tensor<S> shared = *o.in[1];
    rotate<S>(where, shared, rope, direction);
    for (Eigen::Index head = 0; head < heads; ++head) {
      o.out[0]->middleCols(head * (nope + rope), nope) = o.in[0]->middleCols(head * nope, nope);
      o.out[0]->middleCols(head * (nope + rope) + nope, rope) = shared;
    }
    return;
  }
  Tensor<S> shared = Tensor<S>::Zero(queries.rows(), rope);
  for (Eigen::Index head = 0; head < heads; ++head) {
    o.out[0]->middleCols(head * nope, nope) = o.in[0]->middleCols(head * (nope + rope), nope);
    shared += o.in[0]->middleCols(head * (nope + rope) + nope, rope);
  }
  rotate<S>(where, shared, rope, direction);
  *o.out[1] = shared;
}

// The rows of one sequence in a matrix of tokens, and their positions in it.
struct Tokens {
  std::vector<Eigen::Index> rows;
  std::vector<std::int64_t> positions;
};

void append_part(const Where& where, int sequence, int context, Eigen::Index first, Tokens& into) {
  const Setting& setting = where.setting;
  const std::int64_t part = setting.training.sequence_length / setting.plan.context_parallel;
  for (std::int64_t i = 0; i < part; ++i) {
    into.rows.push_back(first + sequence * part + i);
    into.positions.push_back(
        dealt_position(setting.plan, setting.training.sequence_length, context, i));
  }
}

// The tokens of one sequence in a matrix of `rows` rows: those of context rank `context` alone, or
// of all ranks, either one after the other (all-gather) or in the order of the sequence (Ulysses).
Tokens tokens_in(const Where& where, Eigen::Index rows, int sequence, int context) {
  const Plan& plan = where.setting.plan;
  const std::int64_t length = where.setting.training.sequence_length;
  Tokens tokens;
  if (plan.context_parallel == 1 || rows < length * plan.micro_batch) {
    append_part(where, sequence, context, 0, tokens);
  } else if (plan.context_parallel_algorithm == ContextAlgorithm::all_gather) {
    for (int rank = 0; rank < plan.context_parallel; ++rank) {
      append_part(where, sequence, rank, rank * rows / plan.context_parallel, tokens);
    }
  } else {
    for (std::int64_t i = 0; i < length; ++i) {
      tokens.rows.push_back(sequence * length + i);
      tokens.positions.push_back(i);
    }
  }
  return tokens;
}

// One head of one sequence: its rows among the queries and the keys, and its heads there.
struct HeadPlace {
  Tokens queries, keys;
  Eigen::Index head = 0, kv_head = 0;
  int sequence = 0;  // of the micro-batch
};

template <typename S>
Tensor<S> taken(const Tensor<S>& x, const Tokens& tokens, Eigen::Index column, Eigen::Index d) {
  return x(tokens.rows, Eigen::seqN(column * d, d));
}

bool sees(const Operation& op, const Where& where, std::int64_t query, std::int64_t key) {
  return key <= query &&
         (!op.attention.sliding || query - key < where.setting.model.sliding_window);
}

template <typename S>
Tensor<S> scores(const Operation& op, const Where& where, const HeadPlace& at,
                 const Operands<S>& o) {
  const auto d = static_cast<Eigen::Index>(op.attention.query_head_dim);
  Tensor<S> s = taken(*o.in[0], at.queries, at.head, d) *
                taken(*o.in[1], at.keys, at.kv_head, d).transpose() / std::sqrt(static_cast<S>(d));
  for (Eigen::Index i = 0; i < s.rows(); ++i) {
    for (Eigen::Index j = 0; j < s.cols(); ++j) {
      const auto query = at.queries.positions[static_cast<std::size_t>(i)];
      const auto key = at.keys.positions[static_cast<std::size_t>(j)];
      if (!sees(op, where, query, key)) s(i, j) = -std::numeric_limits<S>::infinity();
    }
  }
  return s;
}

template <typename S, typename Visit>
void for_each_head(const Operation& op, const Where& where, const Operands<S>& o,
                   const Visit& visit) {
  const auto heads = static_cast<Eigen::Index>(op.attention.heads);
  const auto shared = heads / static_cast<Eigen::Index>(op.attention.kv_heads);
  const int ranks = where.setting.plan.context_parallel;
  const int source = (where.at.context + ranks - op.step) % ranks;
  for (int sequence = 0; sequence < where.setting.plan.micro_batch; ++sequence) {
    HeadPlace at{tokens_in(where, o.in[0]->rows(), sequence, where.at.context),
                 tokens_in(where, o.in[1]->rows(), sequence, source)};
    at.sequence = sequence;
    for (at.head = 0; at.head < heads; ++at.head) {
      at.kv_head = at.head / shared;
      visit(at);
    }
  }
}

// e^x, or 0 where the result is subnormal: Eigen's vectorised exponential gives 2.9e-39 for all of
// those, −∞ among them, and products with such numbers take many times as long.
template <typename Exponents>
RowVector<typename Exponents::Scalar> exponentials(const Eigen::ArrayBase<Exponents>& x) {
  using S = typename Exponents::Scalar;
  static const S least = std::log(std::numeric_limits<S>::min());
  return (x < least).select(S(0), x.exp()).matrix();
}

// Largest score and sum of exponentials of one row, over the keys seen so far.
template <typename S>
struct RowSum {
  S largest = -std::numeric_limits<S>::infinity();
  S sum = 0;
  S log_sum() const { return largest + std::log(sum); }
};

template <typename S>
RowSum<S> row_sum(const Tensor<S>& s, Eigen::Index row) {
  RowSum<S> result{s.row(row).maxCoeff(), 0};
  if (std::isinf(result.largest)) return {};
  result.sum = exponentials(s.row(row).array() - result.largest).sum();
  return result;
}

bool is_fused(const Where& where) { return where.setting.training.stack.flash_attention; }

bool keeps_log_sums(const Where& where) { return is_fused(where) || keeps_block_scores(where); }

// The first head of this rank among its tensor-parallel rank's heads, which Ulysses deals out.
Eigen::Index first_head(const Operation& op, const Where& where) {
  const Plan& plan = where.setting.plan;
  const bool dealt =
      plan.context_parallel > 1 && plan.context_parallel_algorithm == ContextAlgorithm::ulysses;
  return dealt ? where.at.context * static_cast<Eigen::Index>(op.attention.heads) : 0;
}

// The factors by which dropout multiplies the probabilities of one head; 1 where the kernel is
// fused.
template <typename S>
Tensor<S> kept_probabilities(const Operation& op, const Where& where, const HeadPlace& at,
                             const Tensor<S>& p) {
  const Training& training = where.setting.training;
  if (is_fused(where) || !training.stack.dropout) return Tensor<S>::Ones(p.rows(), p.cols());
  const std::int64_t head =
      first_head(op, where) +
      where.at.tensor * where.setting.model.attention_heads / where.setting.plan.tensor_parallel +
      at.head;
  const std::int64_t sequence =
      token_place(where, 0, where.setting.plan.micro_batch * training.sequence_length).sequence +
      at.sequence;
  Tensor<S> kept(p.rows(), p.cols());
  for (Eigen::Index i = 0; i < p.rows(); ++i) {
    for (Eigen::Index j = 0; j < p.cols(); ++j) {
      const bool keeps = is_kept(
          where.setting,
          {static_cast<int>(*op.part), where.tag.layer, sequence,
           at.queries.positions[static_cast<std::size_t>(i)],
           head * training.sequence_length + at.keys.positions[static_cast<std::size_t>(j)]});
      kept(i, j) = keeps ? static_cast<S>(1 / (1 - kDropoutRate)) : S(0);
    }
  }
  return kept;
}

// A query of one head, and where its output and statistics go.
template <typename S>
struct QueryRow {
  Eigen::Index row = 0, head = 0;
  S sink = 0;
  bool first = false, fused = false;
  Tensor<S>&output, &statistics;
};

template <typename S>
void attend(const QueryRow<S>& q, const Tensor<S>& scores, const Tensor<S>& kept, Eigen::Index i,
            const Tensor<S>& values) {
  const RowSum<S> here = row_sum(scores, i);
  auto out = q.output.row(q.row).segment(q.head * values.cols(), values.cols());
  if (here.sum == 0) {
    if (!q.first) return;
    out.setZero();
    if (q.fused) q.statistics(q.row, q.head) = q.sink;
    return;
  }
  const S before = q.first ? q.sink : q.statistics(q.row, q.head);
  const S largest = std::max(before, here.log_sum());
  const S all = largest + std::log(std::exp(before - largest) + std::exp(here.log_sum() - largest));
  const RowVector<S> p = exponentials(scores.row(i).array() - all);
  const RowVector<S> seen = p.cwiseProduct(kept.row(i)) * values;
  if (q.first) {
    out = seen;
  } else {
    out = out * std::exp(before - all) + seen;
  }
  if (q.fused) {
    q.statistics(q.row, q.head) = all;
  } else {
    q.statistics.row(q.row).segment(q.head * scores.cols(), scores.cols()) = p;
  }
}

// Adds the contribution of these keys to output and log-sum-exp; the first block of keys starts
// them.
template <typename S>
void attention(const Operation& op, const Where& where, const Operands<S>& o) {
  const auto d = static_cast<Eigen::Index>(op.attention.value_head_dim);
  const bool first = op.kind == OperationKind::attention;
  Tensor<S>& output = first ? *o.out[0] : *o.in_place[0];
  Tensor<S>& statistics = first ? *o.out[1] : *o.in_place[1];
  const bool fused = keeps_log_sums(where);
  const bool blocks = keeps_block_scores(where);
  Tensor<S>& whole = blocks ? *o.out.back() : statistics;
  if (!fused || blocks) {
    const auto heads = static_cast<Eigen::Index>(op.attention.heads);
    const std::int64_t length = where.setting.training.sequence_length;
    const int parts = blocks ? where.setting.plan.context_parallel : 1;
    whole.resize(output.rows(), heads * (length / parts));
  }
  for_each_head(op, where, o, [&](const HeadPlace& at) {
    const Tensor<S> s = scores(op, where, at, o);
    const Tensor<S> values = taken(*o.in[2], at.keys, at.kv_head, d);
    const Tensor<S> kept = kept_probabilities(op, where, at, s);
    const S sink = o.in.size() > 3 ? (*o.in[3])(first_head(op, where) + at.head, 0)
                                   : -std::numeric_limits<S>::infinity();
    for (Eigen::Index i = 0; i < s.rows(); ++i) {
      const Eigen::Index row = at.queries.rows[static_cast<std::size_t>(i)];
      if (blocks) whole.row(row).segment(at.head * s.cols(), s.cols()) = s.row(i);
      attend<S>({row, at.head, sink, first, fused, output, statistics}, s, kept, i, values);
    }
  });
}

template <typename S>
Tensor<S> probabilities(const Operation& op, const Where& where, const HeadPlace& at,
                        const Operands<S>& o) {
  const Tensor<S>& statistics = *o.in[4];
  Tensor<S> p = scores(op, where, at, o);
  const bool fused = keeps_log_sums(where);
  const bool blocks = keeps_block_scores(where);
  for (Eigen::Index i = 0; i < p.rows(); ++i) {
    const Eigen::Index row = at.queries.rows[static_cast<std::size_t>(i)];
    if (blocks) p.row(i) = o.in[6]->row(row).segment(at.head * p.cols(), p.cols());
    if (fused) {
      p.row(i) = exponentials(p.row(i).array() - statistics(row, at.head));
    } else {
      p.row(i) = statistics.row(row).segment(at.head * p.cols(), p.cols());
    }
  }
  return p;
}

template <typename S>
void add_rows(const Tensor<S>& part, const Tokens& tokens, Eigen::Index column, Tensor<S>& into) {
  for (Eigen::Index i = 0; i < part.rows(); ++i) {
    into.row(tokens.rows[static_cast<std::size_t>(i)]).segment(column * part.cols(), part.cols()) +=
        part.row(i);
  }
}

// The share of each query's attention that goes to the sink: what the keys leave.
template <typename S>
Vector<S> sink_probabilities(const Operation& op, const Where& where, const HeadPlace& at,
                             const Operands<S>& o, const Tensor<S>& p) {
  if (!keeps_log_sums(where)) return (1 - p.rowwise().sum().array()).matrix();
  const S sink = (*o.in.back())(first_head(op, where) + at.head, 0);
  Vector<S> log_sums(p.rows());
  for (Eigen::Index i = 0; i < p.rows(); ++i) {
    log_sums[i] = (*o.in[4])(at.queries.rows[static_cast<std::size_t>(i)], at.head);
  }
  return (sink - log_sums.array()).exp().matrix();
}

template <typename S>
void attention_gradient(const Operation& op, const Where& where, const Operands<S>& o) {
  const auto d = static_cast<Eigen::Index>(op.attention.query_head_dim);
  const auto width = static_cast<Eigen::Index>(op.attention.value_head_dim);
  for (Tensor<S>* out : o.out) out->setZero();
  // A block of a ring adds to the query gradients of the blocks before it.
  const bool step = op.kind == OperationKind::attention_gradient_step;
  const std::vector<Tensor<S>*> into =
      step ? std::vector<Tensor<S>*>{o.in_place[0], o.out[0], o.out[1]} : o.out;
  for_each_head(op, where, o, [&](const HeadPlace& at) {
    const Tensor<S> p = probabilities(op, where, at, o);
    const Tensor<S> dout = taken(*o.in[5], at.queries, at.head, width);
    const Tensor<S> kept = kept_probabilities(op, where, at, p);
    const Tensor<S> dp =
        (dout * taken(*o.in[2], at.keys, at.kv_head, width).transpose()).cwiseProduct(kept);
    const Vector<S> delta =
        dout.cwiseProduct(taken(*o.in[3], at.queries, at.head, width)).rowwise().sum();
    if (o.in.size() > (keeps_block_scores(where) ? 7 : 6)) {
      const Eigen::Index head = first_head(op, where) + at.head;
      (*o.in_place.back())(head, 0) -= delta.dot(sink_probabilities(op, where, at, o, p));
    }
    const Tensor<S> ds = p.cwiseProduct(dp.colwise() - delta) / std::sqrt(static_cast<S>(d));
    add_rows<S>(ds * taken(*o.in[1], at.keys, at.kv_head, d), at.queries, at.head, *into[0]);
    add_rows<S>(ds.transpose() * taken(*o.in[0], at.queries, at.head, d), at.keys, at.kv_head,
                *into[1]);
    add_rows<S>(p.cwiseProduct(kept).transpose() * dout, at.keys, at.kv_head, *into[2]);
  });
}

}  // namespace

bool keeps_block_scores(const Where& where) {
  const Plan& plan = where.setting.plan;
  return !is_fused(where) && plan.context_parallel > 1 &&
         plan.context_parallel_algorithm == ContextAlgorithm::ring;
}

template <typename S>
void compute_attention(const Operation& operation, const Where& where,
                       const Operands<S>& operands) {
  switch (operation.kind) {
    case OperationKind::attention:
    case OperationKind::attention_step:
      return attention(operation, where, operands);
    case OperationKind::attention_gradient:
    case OperationKind::attention_gradient_step:
      return attention_gradient(operation, where, operands);
    case OperationKind::latent_rotary:
    case OperationKind::latent_rotary_gradient:
      return latent_rotary(operation, where, operands);
    default:
      break;
  }
  const double direction = operation.kind == OperationKind::rotary ? 1 : -1;
  for (Tensor<S>* x : operands.in_place) {
    rotate<S>(where, *x, where.setting.model.head_dim, direction);
  }
}

template void compute_attention(const Operation& operation, const Where& where,
                                const Operands<float>& operands);
template void compute_attention(const Operation& operation, const Where& where,
                                const Operands<double>& operands);

}  // namespace trainyard

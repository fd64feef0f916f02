#include "tests/model/program/interpreter/collectives.h"

#include <algorithm>
#include <cmath>

namespace trainyard::interpreter {
namespace {

void all_reduce(const Operation& operation, const std::vector<Operands<double>>& members) {
  for (std::size_t i = 0; i < members.front().in_place.size(); ++i) {
    Tensor<double> total = *members.front().in_place[i];
    for (std::size_t m = 1; m < members.size(); ++m) {
      const Tensor<double>& part = *members[m].in_place[i];
      if (operation.reduction == Reduction::max) {
        total = total.cwiseMax(part);
      } else {
        total += part;
      }
    }
    for (const Operands<double>& member : members) *member.in_place[i] = total;
  }
}

// Member i gets the i-th part of the rows of the sum.
void reduce_scatter(const std::vector<Operands<double>>& members, std::size_t which) {
  Tensor<double> total = *members.front().in[which];
  for (std::size_t m = 1; m < members.size(); ++m) total += *members[m].in[which];
  const Eigen::Index part = total.rows() / static_cast<Eigen::Index>(members.size());
  for (std::size_t m = 0; m < members.size(); ++m) {
    *members[m].out[which] = total.middleRows(static_cast<Eigen::Index>(m) * part, part);
  }
}

void gather_columns(const std::vector<Operands<double>>& members, std::size_t which) {
  Tensor<double> whole(members.front().in[which]->rows(), 0);
  for (const Operands<double>& member : members) {
    const Tensor<double>& part = *member.in[which];
    whole.conservativeResize(Eigen::NoChange, whole.cols() + part.cols());
    whole.rightCols(part.cols()) = part;
  }
  for (const Operands<double>& member : members) *member.out[which] = whole;
}

void all_gather(const std::vector<Operands<double>>& members, std::size_t which) {
  const Operands<double>& first = members.front();
  if (first.out[which]->cols() > first.in[which]->cols()) return gather_columns(members, which);
  Tensor<double> whole(0, members.front().in[which]->cols());
  for (const Operands<double>& member : members) {
    const Tensor<double>& part = *member.in[which];
    whole.conservativeResize(whole.rows() + part.rows(), Eigen::NoChange);
    whole.bottomRows(part.rows()) = part;
  }
  for (const Operands<double>& member : members) *member.out[which] = whole;
}

void pass(const std::vector<Operands<double>>& members, std::size_t which, std::size_t distance) {
  for (std::size_t m = 0; m < members.size(); ++m) {
    *members[(m + distance) % members.size()].out[which] = *members[m].in[which];
  }
}

// Ulysses: member m's share of the heads with all tokens becomes, for member r, its tokens with all
// heads, or the reverse. With fewer heads than members, neighbours share a head.
void exchange_heads(const Operation& operation, const std::vector<Operands<double>>& members) {
  const auto d = static_cast<Eigen::Index>(operation.attention.query_head_dim);
  const auto sequences = static_cast<Eigen::Index>(operation.attention.batch);
  const auto count = static_cast<Eigen::Index>(members.size());
  const bool to_heads = members.front().out[0]->rows() > members.front().in[0]->rows();
  const auto whole = [&](std::size_t m) { return to_heads ? members[m].in[0] : members[m].out[0]; };
  const Eigen::Index heads = whole(0)->cols() / d;
  const Eigen::Index share = std::max<Eigen::Index>(1, heads / count);
  const Eigen::Index part = whole(0)->rows() / sequences;
  if (!to_heads) {
    for (const Operands<double>& member : members) member.out[0]->setZero();
  }
  for (Eigen::Index holder = 0; holder < count; ++holder) {
    const Operands<double>& h = members[static_cast<std::size_t>(holder)];
    const Eigen::Index first = holder * heads / count;
    for (Eigen::Index owner = 0; owner < count; ++owner) {
      const Operands<double>& o = members[static_cast<std::size_t>(owner)];
      for (Eigen::Index s = 0; s < sequences; ++s) {
        const Eigen::Index row = (s * count + owner) * part;
        if (to_heads) {
          h.out[0]->middleRows(row, part) = o.in[0]->block(s * part, first * d, part, share * d);
        } else {
          o.out[0]->block(s * part, first * d, part, share * d) += h.in[0]->middleRows(row, part);
        }
      }
    }
  }
}

// ---- Rows that go to the ranks of their experts, and back -------------------------------

// The number of rows for each of `ranks` ranks, from the number of rows for each expert.
std::vector<Eigen::Index> rows_by_rank(const Tensor<double>& counts, Eigen::Index ranks) {
  std::vector<Eigen::Index> rows;
  const Eigen::Index share = counts.size() / ranks;
  for (Eigen::Index rank = 0; rank < ranks; ++rank) {
    double sum = 0;
    for (Eigen::Index i = 0; i < share; ++i) sum += counts.data()[rank * share + i];
    rows.push_back(static_cast<Eigen::Index>(sum));
  }
  return rows;
}

// The rows for rank `which`, of a matrix that holds the rows for one rank after the other.
Tensor<double> rows_for(const Tensor<double>& x, const std::vector<Eigen::Index>& rows,
                        std::size_t which) {
  Eigen::Index first = 0;
  for (std::size_t i = 0; i < which; ++i) first += rows[i];
  return x.middleRows(first, rows[which]);
}

// What every member has for member m, one member after the other.
Tensor<double> collected(const std::vector<Operands<double>>& members, std::size_t operand,
                         std::size_t counts, std::size_t m) {
  Tensor<double> all(0, members.front().in[operand]->cols());
  for (const Operands<double>& from : members) {
    const auto rows = rows_by_rank(*from.in[counts], static_cast<Eigen::Index>(members.size()));
    const Tensor<double> part = rows_for(*from.in[operand], rows, m);
    all.conservativeResize(all.rows() + part.rows(), Eigen::NoChange);
    all.bottomRows(part.rows()) = part;
  }
  return all;
}

// The matrix of rows by source and expert is an output where the members do not know it yet.
void dispatch(const std::vector<Operands<double>>& members) {
  const bool knows = members.front().in.size() > members.front().out.size();
  const std::size_t first_in = knows ? 2 : 1;
  const std::size_t first_out = knows ? 0 : 1;
  for (std::size_t m = 0; m < members.size(); ++m) {
    const Operands<double>& to = members[m];
    for (std::size_t i = 0; first_out + i < to.out.size(); ++i) {
      *to.out[first_out + i] = collected(members, first_in + i, 0, m);
    }
    if (knows) continue;
    const Eigen::Index experts = to.out[0]->cols();
    for (std::size_t from = 0; from < members.size(); ++from) {
      to.out[0]->row(static_cast<Eigen::Index>(from)) =
          members[from].in[0]->row(0).segment(static_cast<Eigen::Index>(m) * experts, experts);
    }
  }
}

void combine(const std::vector<Operands<double>>& members) {
  for (std::size_t m = 0; m < members.size(); ++m) {
    for (std::size_t i = 0; i < members[m].out.size(); ++i) {
      *members[m].out[i] = collected(members, 2 + i, 1, m);
    }
  }
}

// The sum over the ranks that share experts; each rank receives the rows that it sent.
void scatter_routed(const std::vector<Operands<double>>& members) {
  const auto rows = rows_by_rank(*members.front().in[0], static_cast<Eigen::Index>(members.size()));
  for (std::size_t i = 0; i < members.front().out.size(); ++i) {
    Tensor<double> total = *members.front().in[i + 1];
    for (std::size_t m = 1; m < members.size(); ++m) total += *members[m].in[i + 1];
    for (std::size_t m = 0; m < members.size(); ++m) *members[m].out[i] = rows_for(total, rows, m);
  }
}

void by_rows(const Operation& operation, const std::vector<Operands<double>>& members) {
  for (std::size_t which = 0; which < members.front().in.size(); ++which) {
    switch (operation.kind) {
      case OperationKind::reduce_scatter:
        reduce_scatter(members, which);
        break;
      case OperationKind::pass_on:
        pass(members, which, 1);
        break;
      case OperationKind::pass_back:
        pass(members, which, members.size() - 1);
        break;
      default:
        all_gather(members, which);
    }
  }
}

// Scatters in place, each operand as a flat array: a member gets its part of the sum, and the rest
// becomes not-a-number.
void scatter_parts(const Operation& operation, const std::vector<Operands<double>>& members,
                   std::size_t which) {
  Tensor<double> total = *members.front().in_place[which];
  for (std::size_t m = 1; m < members.size(); ++m) total += *members[m].in_place[which];
  for (std::size_t m = 0; m < members.size(); ++m) {
    const FlatPart part = part_of(total.size(), operation.shards, static_cast<int>(m));
    for (Eigen::Index k = 0; k < total.size(); ++k) {
      members[m].in_place[which]->data()[k] = part.has(k) ? total.data()[k] : std::nan("");
    }
  }
}

void gather_parts(const Operation& operation, const std::vector<Operands<double>>& members,
                  std::size_t which) {
  const Eigen::Index size = members.front().in_place[which]->size();
  for (std::size_t owner = 0; owner < members.size(); ++owner) {
    const FlatPart part = part_of(size, operation.shards, static_cast<int>(owner));
    for (Eigen::Index k = part.begin; k < part.end; ++k) {
      const double value = members[owner].in_place[which]->data()[k];
      for (const Operands<double>& member : members) member.in_place[which]->data()[k] = value;
    }
  }
}

// The same into separate buffers: a padded part of each whole, or a whole from its parts.
void make_parts(const std::vector<Operands<double>>& members, std::size_t which) {
  Tensor<double> total = *members.front().in[which];
  for (std::size_t m = 1; m < members.size(); ++m) total += *members[m].in[which];
  for (std::size_t m = 0; m < members.size(); ++m) {
    const FlatPart part =
        part_of(total.size(), static_cast<int>(members.size()), static_cast<int>(m));
    members[m].out[which]->setZero();
    for (Eigen::Index k = part.begin; k < part.end; ++k) {
      members[m].out[which]->data()[k - part.begin] = total.data()[k];
    }
  }
}

void make_wholes(const std::vector<Operands<double>>& members, std::size_t which) {
  const Eigen::Index part = members.front().in[which]->size();
  for (const Operands<double>& member : members) {
    Tensor<double>& whole = *member.out[which];
    for (Eigen::Index k = 0; k < whole.size(); ++k) {
      whole.data()[k] = members[static_cast<std::size_t>(k / part)].in[which]->data()[k % part];
    }
  }
}

void by_parts(const Operation& operation, const std::vector<Operands<double>>& members) {
  for (std::size_t which = 0; which < members.front().out.size(); ++which) {
    if (operation.kind == OperationKind::reduce_scatter) {
      make_parts(members, which);
    } else {
      make_wholes(members, which);
    }
  }
  for (std::size_t which = 0; which < members.front().in_place.size(); ++which) {
    if (operation.kind == OperationKind::reduce_scatter) {
      scatter_parts(operation, members, which);
    } else {
      gather_parts(operation, members, which);
    }
  }
}

}  // namespace

void take_part(const Operation& operation, const std::vector<Operands<double>>& members) {
  switch (operation.kind) {
    case OperationKind::all_reduce:
      return all_reduce(operation, members);
    case OperationKind::all_to_all:
      return exchange_heads(operation, members);
    case OperationKind::dispatch:
      return dispatch(members);
    case OperationKind::combine:
      return combine(members);
    case OperationKind::reduce_scatter:
      if (operation.group == Group::expert_tensor) return scatter_routed(members);
      [[fallthrough]];
    case OperationKind::all_gather:
      return operation.shards > 1 ? by_parts(operation, members) : by_rows(operation, members);
    default:
      return by_rows(operation, members);
  }
}

}  // namespace trainyard::interpreter

#include "tests/model/program/interpreter/collectives.h"

#include <algorithm>
#include <cmath>

namespace trainyard::interpreter {
namespace {

void all_reduce(const Operation& operation, const std::vector<Operands>& members) {
  for (std::size_t i = 0; i < members.front().in_place.size(); ++i) {
    Matrix total = *members.front().in_place[i];
    for (std::size_t m = 1; m < members.size(); ++m) {
      const Matrix& part = *members[m].in_place[i];
      if (operation.reduction == Reduction::max) {
        total = total.cwiseMax(part);
      } else {
        total += part;
      }
    }
    for (const Operands& member : members) *member.in_place[i] = total;
  }
}

// By rows: member i gets the i-th part.
void reduce_scatter(const std::vector<Operands>& members, std::size_t which) {
  Matrix total = *members.front().in[which];
  for (std::size_t m = 1; m < members.size(); ++m) total += *members[m].in[which];
  const Eigen::Index part = total.rows() / static_cast<Eigen::Index>(members.size());
  for (std::size_t m = 0; m < members.size(); ++m) {
    *members[m].out[which] = total.middleRows(static_cast<Eigen::Index>(m) * part, part);
  }
}

void all_gather(const std::vector<Operands>& members, std::size_t which) {
  const Matrix& first = *members.front().in[which];
  const Eigen::Index part = first.rows();
  Matrix whole(part * static_cast<Eigen::Index>(members.size()), first.cols());
  for (std::size_t m = 0; m < members.size(); ++m) {
    whole.middleRows(static_cast<Eigen::Index>(m) * part, part) = *members[m].in[which];
  }
  for (const Operands& member : members) *member.out[which] = whole;
}

void pass_on(const std::vector<Operands>& members, std::size_t which) {
  for (std::size_t m = 0; m < members.size(); ++m) {
    *members[m].out[which] = *members[(m + members.size() - 1) % members.size()].in[which];
  }
}

// Member m's share of the heads, with all tokens, and the tokens of member r with all heads. Where
// there are fewer heads than members, neighbours share one.
void exchange_heads(const Operation& operation, const std::vector<Operands>& members) {
  const auto d = static_cast<Eigen::Index>(operation.attention.query_head_dim);
  const auto sequences = static_cast<Eigen::Index>(operation.attention.batch);
  const auto count = static_cast<Eigen::Index>(members.size());
  const bool to_heads = members.front().out[0]->rows() > members.front().in[0]->rows();
  const auto whole = [&](std::size_t m) { return to_heads ? members[m].in[0] : members[m].out[0]; };
  const Eigen::Index heads = whole(0)->cols() / d;
  const Eigen::Index share = std::max<Eigen::Index>(1, heads / count);
  const Eigen::Index part = whole(0)->rows() / sequences;
  if (!to_heads) {
    for (const Operands& member : members) member.out[0]->setZero();
  }
  for (Eigen::Index holder = 0; holder < count; ++holder) {
    const Operands& h = members[static_cast<std::size_t>(holder)];
    const Eigen::Index first = holder * heads / count;
    for (Eigen::Index owner = 0; owner < count; ++owner) {
      const Operands& o = members[static_cast<std::size_t>(owner)];
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

void by_rows(const Operation& operation, const std::vector<Operands>& members) {
  for (std::size_t which = 0; which < members.front().in.size(); ++which) {
    switch (operation.kind) {
      case OperationKind::reduce_scatter:
        reduce_scatter(members, which);
        break;
      case OperationKind::pass_on:
        pass_on(members, which);
        break;
      default:
        all_gather(members, which);
    }
  }
}

// In place, over the operands as one flat array: each member's part of the sum, the rest unknown.
void scatter_parts(const Operation& operation, const std::vector<Operands>& members) {
  std::vector<Matrix> totals;
  std::vector<Eigen::Index> sizes;
  for (std::size_t i = 0; i < members.front().in_place.size(); ++i) {
    totals.push_back(*members.front().in_place[i]);
    sizes.push_back(totals.back().size());
    for (std::size_t m = 1; m < members.size(); ++m) totals.back() += *members[m].in_place[i];
  }
  for (std::size_t m = 0; m < members.size(); ++m) {
    const FlatPart part = part_of(sizes, operation.shards, static_cast<int>(m));
    Eigen::Index flat = 0;
    for (std::size_t i = 0; i < totals.size(); ++i) {
      for (Eigen::Index k = 0; k < totals[i].size(); ++k, ++flat) {
        const bool mine = flat >= part.begin && flat < part.end;
        members[m].in_place[i]->data()[k] = mine ? totals[i].data()[k] : std::nan("");
      }
    }
  }
}

void gather_parts(const Operation& operation, const std::vector<Operands>& members) {
  std::vector<Eigen::Index> sizes;
  for (const Matrix* matrix : members.front().in_place) sizes.push_back(matrix->size());
  for (std::size_t owner = 0; owner < members.size(); ++owner) {
    const FlatPart part = part_of(sizes, operation.shards, static_cast<int>(owner));
    Eigen::Index flat = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      for (Eigen::Index k = 0; k < sizes[i]; ++k, ++flat) {
        if (flat < part.begin || flat >= part.end) continue;
        const double value = members[owner].in_place[i]->data()[k];
        for (const Operands& member : members) member.in_place[i]->data()[k] = value;
      }
    }
  }
}

}  // namespace

void take_part(const Operation& operation, const std::vector<Operands>& members) {
  switch (operation.kind) {
    case OperationKind::all_reduce:
      return all_reduce(operation, members);
    case OperationKind::all_to_all:
      return exchange_heads(operation, members);
    case OperationKind::reduce_scatter:
      return operation.shards > 1 ? scatter_parts(operation, members) : by_rows(operation, members);
    case OperationKind::all_gather:
      return operation.shards > 1 ? gather_parts(operation, members) : by_rows(operation, members);
    default:
      return by_rows(operation, members);
  }
}

}  // namespace trainyard::interpreter

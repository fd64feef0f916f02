#include "tests/model/program/interpreter/collectives.h"

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
void reduce_scatter(const std::vector<Operands>& members) {
  Matrix total = *members.front().in[0];
  for (std::size_t m = 1; m < members.size(); ++m) total += *members[m].in[0];
  const Eigen::Index part = total.rows() / static_cast<Eigen::Index>(members.size());
  for (std::size_t m = 0; m < members.size(); ++m) {
    *members[m].out[0] = total.middleRows(static_cast<Eigen::Index>(m) * part, part);
  }
}

void all_gather(const std::vector<Operands>& members) {
  const Eigen::Index part = members.front().in[0]->rows();
  Matrix whole(part * static_cast<Eigen::Index>(members.size()), members.front().in[0]->cols());
  for (std::size_t m = 0; m < members.size(); ++m) {
    whole.middleRows(static_cast<Eigen::Index>(m) * part, part) = *members[m].in[0];
  }
  for (const Operands& member : members) *member.out[0] = whole;
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
    case OperationKind::reduce_scatter:
      return operation.shards > 1 ? scatter_parts(operation, members) : reduce_scatter(members);
    default:
      return operation.shards > 1 ? gather_parts(operation, members) : all_gather(members);
  }
}

}  // namespace trainyard::interpreter

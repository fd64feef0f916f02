#include "tests/model/program/interpreter/collectives.h"

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

}  // namespace

void take_part(const Operation& operation, const std::vector<Operands>& members) {
  switch (operation.kind) {
    case OperationKind::all_reduce:
      return all_reduce(operation, members);
    case OperationKind::reduce_scatter:
      return reduce_scatter(members);
    default:
      return all_gather(members);
  }
}

}  // namespace trainyard::interpreter

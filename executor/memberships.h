// Which communicators a rank needs for a program: the groups that its operations name, each with
// where the rank stands in it. What MPI and NCCL split their world by: splitting is collective, so
// every rank has the same list.
#pragma once

#include <vector>

#include "model/program/program.h"
#include "model/program/rank_layout.h"

namespace trainyard {

inline constexpr std::size_t kGroupKinds = static_cast<std::size_t>(Group::all) + 1;

struct Membership {
  Group group{};
  int color = -1;  // which of the groups of its kind; −1: the rank is in none
  int place = 0;   // among its members
};
// The same groups in the same order on every rank, `all` apart: that is the world itself.
std::vector<Membership> memberships(const Program& program, const RankLayout& layout, int rank);

}  // namespace trainyard

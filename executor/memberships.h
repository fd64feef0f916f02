// Which communicators a rank needs for a program: the groups that its operations name, and the
// rank's place in each. MPI and NCCL split their world communicator by this list. Splitting is
// collective, so the list has the same groups in the same order on every rank.
#pragma once

#include <vector>

#include "model/program/program.h"
#include "model/program/rank_layout.h"

namespace trainyard {

inline constexpr std::size_t kGroupKinds = static_cast<std::size_t>(Group::all) + 1;

struct Membership {
  Group group{};
  // first rank of this rank's group, which tells it from others of its kind; −1: in none
  int color = -1;
  int place = 0;  // this rank's index among the members
};
// Without `all`, which is the world communicator itself.
std::vector<Membership> memberships(const Program& program, const RankLayout& layout, int rank);

}  // namespace trainyard

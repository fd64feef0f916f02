#include "executor/memberships.h"

#include <array>

namespace trainyard {
namespace {

// Which groups the operations of the program name.
std::array<bool, kGroupKinds> groups_in(const Program& program) {
  std::array<bool, kGroupKinds> used{};
  for (const Block& block : program.blocks) {
    for (const Operation& operation : block.operations) {
      used[static_cast<std::size_t>(operation.group)] = true;
    }
  }
  return used;
}

Membership membership(Group group, const RankLayout& layout, int rank) {
  Membership found{.group = group};
  const GroupMembers members = layout.members(group, rank);
  for (int i = 0; i < members.size(); ++i) {
    if (members[i] == rank) found = {group, members.first, i};
  }
  return found;
}

}  // namespace

std::vector<Membership> memberships(const Program& program, const RankLayout& layout, int rank) {
  std::vector<Membership> list;
  list.reserve(kGroupKinds);
  const auto used = groups_in(program);
  for (std::size_t group = 0; group < kGroupKinds; ++group) {
    const auto kind = static_cast<Group>(group);
    if (!used[group] || kind == Group::none || kind == Group::all) continue;
    list.push_back(membership(kind, layout, rank));
  }
  return list;
}

}  // namespace trainyard

#include "model/cluster/group.h"

#include <numeric>

namespace trainyard {
namespace {

// Members of {i·stride, i < count} in every aligned block of `ranks`.
int aligned_members(int stride, int count, int ranks) {
  return count > 1 && ranks % stride == 0 ? std::gcd(count, ranks / stride) : 1;
}

}  // namespace

int members_within(GroupShape group, int ranks) {
  const int run = group.run == 0 ? group.size : group.run;
  const int members = aligned_members(group.stride, run, ranks);
  if (members < run || run == group.size) return members;
  return run * aligned_members(group.jump, group.size / run, ranks);
}

}  // namespace trainyard

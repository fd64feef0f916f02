#include "model/cluster/tree_hops.h"

#include <algorithm>

namespace trainyard {

TreeHops shift_hops(int count, int far) {
  TreeHops hops;
  for (int from = 0; from < count; ++from) hops.push_back({from, (from + far) % count});
  return hops;
}

std::vector<TreeHops> binomial_hops(int count) {
  std::vector<TreeHops> rounds;
  for (int far = 1; far < count; far *= 2) {
    TreeHops& round = rounds.emplace_back();
    for (int from = 0; from < std::min(far, count - far); ++from) {
      round.push_back({from, from + far});
    }
  }
  return rounds;
}

std::vector<TreeHops> scatter_hops(int count) {
  struct Holder {
    int first = 0;
    int blocks = 1;
  };
  std::vector<Holder> holders = {{0, count}};
  std::vector<TreeHops> rounds(static_cast<std::size_t>(log2_ceil(count)));
  for (TreeHops& round : rounds) {
    const std::size_t known = holders.size();
    for (std::size_t i = 0; i < known; ++i) {
      const int given = holders[i].blocks / 2;
      if (given == 0) continue;
      holders[i].blocks -= given;
      const int next = holders[i].first + holders[i].blocks;
      round.push_back({holders[i].first, next, static_cast<double>(given) / count});
      holders.push_back({next, given});
    }
  }
  return rounds;
}

TreeHops double_tree_hops(int count) {
  TreeHops hops;
  const auto mirrored = [&](int place) { return count == 2 ? place : count - 1 - place; };
  for (int child = 1; child < count; ++child) {
    const int parent = (child - 1) / 2;
    hops.push_back({child, parent, 0.5});
    hops.push_back({mirrored(child), mirrored(parent), 0.5});
  }
  return hops;
}

}  // namespace trainyard

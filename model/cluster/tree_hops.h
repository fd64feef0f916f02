// Rounds of messages in the trees of collective algorithms: who sends which share of the message to
// whom. Numbers are those of a group's domains, or of the members of one domain.
#pragma once

#include <bit>
#include <vector>

namespace trainyard {

// ⌈log₂ n⌉. Requires: n >= 1.
constexpr int log2_ceil(int n) {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(n - 1)));
}

struct TreeHop {
  int from = 0, to = 0;
  double share = 1;  // of the message
};
using TreeHops = std::vector<TreeHop>;  // of one round

// All send to the one `far` further on, the last ones to the first.
TreeHops shift_hops(int count, int far);

// Binomial broadcast from 0: in round k, all that have the message send it 2^k further on.
std::vector<TreeHops> binomial_hops(int count);

// Binomial scatter from 0: each holder of several blocks sends the upper half of them to the first
// of their destinations (Thakur et al. 2005).
std::vector<TreeHops> scatter_hops(int count);

// Up two complementary binary trees at once, each with half of the message: the second tree is the
// first one with the numbers reversed, so that inner nodes of one are leaves of the other (Sanders,
// Speck & Träff 2009). If `count` is 2, both halves go the same way.
TreeHops double_tree_hops(int count);

}  // namespace trainyard

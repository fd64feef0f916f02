// Who passes how much on to whom down the trees of collective algorithms, in rounds: between the
// domains of a group, by their numbers, or between the members of one.
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

// Everyone to the one `far` further on, the last ones to the first.
TreeHops shift_hops(int count, int far);

// Binomial broadcast from 0: in round k, who has the message sends it 2^k further on.
std::vector<TreeHops> binomial_hops(int count);

// Binomial scatter from 0: who has several blocks gives the upper half of them to the first of
// those that they are for (Thakur et al. 2005).
std::vector<TreeHops> scatter_hops(int count);

// Up two complementary binary trees at once, half of the message each: the second is the first one
// backwards, so that who passes on in one only hands in in the other (Sanders, Speck & Träff 2009);
// of two both halves go the same way.
TreeHops double_tree_hops(int count);

}  // namespace trainyard

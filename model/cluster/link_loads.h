// How full the groups of one shape make each link between the switches of a routed fabric, and what
// groups of two shapes have in common there: two rings whose fullest links are others slow each
// other less than two on the same links, and in a torus those along different dimensions not at
// all.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "model/cluster/known_rates.h"

namespace trainyard {

// How the members of a group send to each other: in a ring, to the next one, each to all others, to
// partners at distance 1, 2, 4, …, and along trees.
enum class TrafficPattern { ring, passing, all_to_all, halving, trees };
constexpr std::size_t kTrafficPatterns = 5;

class LinkLoads {
 public:
  // By link, the share of its bandwidth that is in use, in the mean over the rounds of the pattern,
  // while all groups of the shape send at their full rate; in units of 1/255, 0 only if it is not
  // used. Not counted link by link: empty. (Large tori have 10⁵ links, and searches 10³ shapes.)
  using Loads = std::vector<std::uint8_t>;
  static constexpr double kFull = 255;
  using ByPattern = std::array<Loads, kTrafficPatterns>;
  explicit LinkLoads(ByPattern loads) : loads_(std::move(loads)) {}

  // The loads of both shapes on one link when both send at their full rates. Twice 1: it limits
  // both.
  struct Met {
    double own = 0, other = 0;
  };
  // Of the links that both use: that which is fullest with both, and those that each of the two
  // fills most. All 0: they have no link in common.
  struct Meetings {
    Met fullest, own_most, other_most;
  };
  // None: one of the patterns was not counted. Requires: both are of the same cluster. Computed
  // once for each pair, O(links); threads may ask at once.
  std::optional<Meetings> met(TrafficPattern pattern, const LinkLoads& other,
                              TrafficPattern others) const;

 private:
  struct Pair {
    TrafficPattern pattern, others;
    const LinkLoads* other = nullptr;
    friend bool operator==(const Pair&, const Pair&) = default;
  };
  const Loads& of(TrafficPattern pattern) const {
    return loads_[static_cast<std::size_t>(pattern)];
  }

  ByPattern loads_;
  mutable KnownRates<Pair, Meetings> known_;
};

}  // namespace trainyard

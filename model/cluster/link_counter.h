// Adds up the bytes that messages put on every link of a topology, until the time is asked for that
// the fullest link takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/cluster/link_loads.h"
#include "model/cluster/routes.h"
#include "model/cluster/topology.h"

namespace trainyard {

class LinkCounter {
 public:
  // `efficiency`: share of a link's bandwidth that the protocol leaves.
  LinkCounter(const TopologyGraph& graph, double efficiency);

  std::size_t links() const { return load_.size(); }
  bool are_alike(std::int32_t a, std::int32_t b) const {
    return capacities_[static_cast<std::size_t>(a)] == capacities_[static_cast<std::size_t>(b)];
  }
  // By link, the link that bears the load of all that are as it is; empty: each its own.
  void fold(std::vector<std::int32_t> folded) { folded_ = std::move(folded); }

  // `LinkUse::share` is bytes.
  void add(const LinkUse& use);
  void add(std::span<const LinkUse> uses);

  // From now on add() adds nothing, but looks which of the links it is given takes longest for what
  // was added before; until looked(), which gives these seconds.
  void look();
  double looked();

  // Seconds until the fullest link is done; what was added is forgotten.
  double finish();
  // The same; `loads`: of links between switches in that time, which are noted.
  double finish(LinkLoads::Loads& loads);
  // What finish() counts from now on is noted so many times, until it is taken.
  void note(double times) { noting_ = times; }
  // How full each link between switches was in `seconds` by what was noted.
  LinkLoads::Loads take_noted(double seconds);

 private:
  std::size_t bearer(std::int32_t link) const {
    return static_cast<std::size_t>(folded_.empty() ? link
                                                    : folded_[static_cast<std::size_t>(link)]);
  }
  void note_loads();

  std::vector<double> capacities_;    // by link, bytes a second
  std::vector<std::int32_t> folded_;  // as in fold()
  std::vector<double> load_;          // by link, bytes
  std::vector<std::size_t> loaded_;   // links with a load
  std::vector<std::int32_t> trunks_;  // links between switches
  std::vector<double> noted_;         // by trunk: seconds that its bytes take
  double noting_ = 0;
  bool looking_ = false;
  double looked_ = 0;  // seconds
};

}  // namespace trainyard

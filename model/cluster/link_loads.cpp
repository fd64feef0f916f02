#include "model/cluster/link_loads.h"

namespace trainyard {

std::optional<LinkLoads::Meetings> LinkLoads::met(TrafficPattern pattern, const LinkLoads& other,
                                                  TrafficPattern others) const {
  const Loads& own = of(pattern);
  const Loads& theirs = other.of(others);
  if (own.empty() || theirs.empty()) return std::nullopt;
  const Pair pair{pattern, others, &other};
  if (const Meetings* known = known_.find(pair)) return *known;
  Meetings most;
  for (std::size_t link = 0; link < own.size(); ++link) {
    if (own[link] == 0 || theirs[link] == 0) continue;
    const Met here{own[link] / kFull, theirs[link] / kFull};
    if (here.own + here.other > most.fullest.own + most.fullest.other) most.fullest = here;
    if (here.own > most.own_most.own) most.own_most = here;
    if (here.other > most.other_most.other) most.other_most = here;
  }
  return known_.add(pair, most);
}

}  // namespace trainyard

#include "model/cost/messages/known_collectives.h"

namespace trainyard {

CollectiveCost KnownCollectives::cost(CollectiveOperation operation, const GroupLinks& links,
                                      Bytes message, const CollectiveChoice& choice) const {
  const CollectiveAlgorithm* named =
      choice.algorithm.empty() ? nullptr : find_collective_algorithm(operation, choice.algorithm);
  const std::uint64_t hash = KeyHash()
                                 .mix(operation)
                                 .mix(links.size)
                                 .mix(links.ranks_per_domain)
                                 .mix(links.across.value())
                                 .mix(message.value())
                                 .value();
  Key key{operation, named, message, links};
  key.links.loads = nullptr;  // do not change what a collective takes alone
  key.links.hops = nullptr;
  return costs_.value(key, hash, [&] {
    CollectiveChoice without = choice;
    without.known = nullptr;
    return collective_cost(operation, links, message, without);
  });
}

}  // namespace trainyard

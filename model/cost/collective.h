// Time of a collective by the alpha–beta model, one algorithm a file in model/cost/collectives/
// (handbook §6: Thakur, Rabenseifner & Gropp 2005; Patarasuk & Yuan 2009; NCCL). The build
// generates `collective_algorithms()` from that folder.
//
// S is the tensor for all-reduce and broadcast, the whole (gathered) tensor for all-gather and
// reduce-scatter, what one rank holds to send for all-to-all, the message for send.
#pragma once

#include <span>
#include <string_view>

#include "model/cluster/cluster.h"
#include "model/cluster/device.h"
#include "model/cluster/group.h"
#include "model/cluster/link_loads.h"
#include "model/cost/messages/transfer_rounds.h"
#include "model/units.h"

namespace trainyard {

struct CollectiveAlgorithm {
  std::string_view name;  // "ring", "recursive-doubling", …: unique within an operation
  CollectiveOperation operation;
  bool (*applies)(const GroupLinks& links);
  // Requires: applies(links), links.size > 1.
  Seconds (*time)(const GroupLinks& links, Bytes message);
  // The same in transfers, for the simulator. Requires: as `time`.
  TransferRounds (*rounds)(const GroupLinks& links, Bytes message);
  // How members send to each other between domains.
  TrafficPattern pattern = TrafficPattern::ring;
  // Set where rounds inside domains and rounds between them take turns: the bytes that a member
  // sends out of its domain. Null: bytes leave all the time, as in a ring (wire_use.h).
  Bytes (*leaving)(const GroupLinks& links, Bytes message) = nullptr;
  // By how much contention between domains slows those bytes; null: not at all.
  double Crowding::*crowded = nullptr;
  // Whether on these links it runs only where the plan names it: it needs hardware that the links
  // do not tell of (reduction in the fabric), or no library has it there. Null: nowhere.
  bool (*only_by_name)(const GroupLinks& links) = nullptr;
};

std::span<const CollectiveAlgorithm* const> collective_algorithms();

// nullptr: the operation has no algorithm of that name.
const CollectiveAlgorithm* find_collective_algorithm(CollectiveOperation operation,
                                                     std::string_view name);

class KnownCollectives;

// Which algorithm, and the measured collectives of the device inside a domain.
struct CollectiveChoice {
  std::string_view algorithm;               // empty: the fastest that applies
  std::span<const CollectiveCurve> curves;  // fitted curves inside a domain; may be empty
  double stretch = 1;  // factor on a curve's time beyond its latency: measured links' B over B
  const KnownCollectives* known = nullptr;  // memo of the job's collectives; null: none
};

// The choice with the curves of the cluster's device, where these hold on the cluster's nodes: all
// of them if they were measured on links of the same kind, stretched by the ratio of bandwidths
// (links of another bandwidth are taken to attain the same share of it); none if of another kind.
// Refers to `cluster`, which outlives it.
CollectiveChoice collective_choice(std::string_view algorithm, const Cluster& cluster);

// Time of a collective; 0 for one rank. Allocates nothing.
//
// - Inside one domain: the device's fitted curve of the operation where there is one. Between two
//   fitted sizes its latency is linear in n and its bytes' part in (n−1)/n; beyond them the latency
//   grows as ⌈log₂n⌉ and the bytes' part as a ring's (that of an all-reduce in the switch hardly).
//   A stretched curve keeps its latency, and its time where that is below the latency.
// - Otherwise: the fastest algorithm that applies and is not only_by_name. Over several domains the
//   algorithms have the rate inside a domain from the curve, and where the fabric has a protocol
//   for small messages, the faster protocol is taken.
// - A named algorithm runs instead where the operation has it and it applies; but inside a domain
//   it is never faster than the curve, for that is of a library free to choose.
Seconds collective_time(CollectiveOperation operation, const GroupLinks& links, Bytes message,
                        const CollectiveChoice& choice);

// The same with its latency and algorithm.
struct CollectiveCost {
  Seconds time;
  Seconds latency;                                 // time of an empty message
  const CollectiveAlgorithm* algorithm = nullptr;  // null: one rank, or the time is a curve's
};
CollectiveCost collective_cost(CollectiveOperation operation, const GroupLinks& links,
                               Bytes message, const CollectiveChoice& choice);

// The algorithm that the simulator plays: the named one where it applies, else the fastest. Also
// where a fitted curve gives the time: then the fastest by the links' own rates. Never null for an
// operation that has an algorithm. Requires: links.size > 1.
const CollectiveAlgorithm* collective_algorithm(CollectiveOperation operation,
                                                const GroupLinks& links, Bytes message,
                                                const CollectiveChoice& choice);

// Bytes of bus bandwidth a second, as nccl-tests print it: all-reduce 2(n−1)/n·S/time; all-gather,
// reduce-scatter, all-to-all (n−1)/n·S/time; broadcast and send S/time.
BytesPerSecond bus_bandwidth(CollectiveOperation operation, int ranks, Bytes message, Seconds time);

// Share of a collective's time, 0 … 1, in which it takes multiprocessors and memory from compute
// beside it: (latency + a member's bytes / B_inside) / time. During the latency its kernels wait on
// the device; while bytes wait for a slower network, compute has the device to itself. 1 inside a
// domain, where kernels are at work throughout.
double contending_share(CollectiveOperation operation, const GroupLinks& links, Bytes message,
                        const CollectiveCost& cost);

}  // namespace trainyard

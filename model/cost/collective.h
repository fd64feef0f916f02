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
  // Where rounds inside domains and rounds between them follow each other: of a member's bytes,
  // those that leave its domain, and how many times as long they take for whom they meet on the
  // links there (null: for nobody). Null: bytes leave all the time, as a ring's do (wire_use.h).
  Bytes (*leaving)(const GroupLinks& links, Bytes message) = nullptr;
  double Crowding::*crowded = nullptr;
  // Links on which it is never chosen unnamed: it needs hardware that no link tells of (reduction
  // in the fabric), or no library has it there. Null: none.
  bool (*only_by_name)(const GroupLinks& links) = nullptr;
};

std::span<const CollectiveAlgorithm* const> collective_algorithms();

// nullptr: the operation has no algorithm of that name.
const CollectiveAlgorithm* find_collective_algorithm(CollectiveOperation operation,
                                                     std::string_view name);

class KnownCollectives;

// Which algorithm, and what is known of the device's own collectives inside a domain.
struct CollectiveChoice {
  std::string_view algorithm;               // empty: the fastest that applies
  std::span<const CollectiveCurve> curves;  // fitted curves inside a domain; may be empty
  double stretch = 1;  // of their bytes' part: bandwidth they were measured at over the link's
  const KnownCollectives* known = nullptr;  // of the job, where answers are kept
};

// With the curves of the cluster's device as far as they hold on its nodes: those measured on links
// of the same kind, stretched where these have another bandwidth (the attained share of it is taken
// to stay); of another kind none. As long as the cluster.
CollectiveChoice collective_choice(std::string_view algorithm, const Cluster& cluster);

// 0 for one rank. A group inside one domain uses the device's fitted curve of that operation where
// there is one; between fitted sizes the bytes' part is straight in (n−1)/n and the latency in n;
// beyond them the bytes' part grows as a ring's (that of an all-reduce in the switch hardly) and
// the latency as ⌈log₂n⌉. What is left takes the fastest algorithm that asks nothing of the
// switches; over several domains the algorithms have the rate inside a domain from the curve, and
// where the fabric has a protocol for small messages, the time of the faster one. The named
// algorithm runs where the operation has it and it applies; inside a domain it is no faster than
// the curve, which is that of a library free to choose. A stretched curve keeps its latency, and
// its time where that is below the latency. Allocates nothing.
Seconds collective_time(CollectiveOperation operation, const GroupLinks& links, Bytes message,
                        const CollectiveChoice& choice);

// The same with what it is made of.
struct CollectiveCost {
  Seconds time;
  Seconds latency;                                 // of an empty message
  const CollectiveAlgorithm* algorithm = nullptr;  // null: one rank, or a fitted curve's time
};
CollectiveCost collective_cost(CollectiveOperation operation, const GroupLinks& links,
                               Bytes message, const CollectiveChoice& choice);

// The algorithm that carries it, for the simulator: the named one, else the fastest; where a fitted
// curve gives the time, the fastest on the links as they are. Never null for an operation that has
// an algorithm. Requires: links.size > 1.
const CollectiveAlgorithm* collective_algorithm(CollectiveOperation operation,
                                                const GroupLinks& links, Bytes message,
                                                const CollectiveChoice& choice);

// Bytes of bus bandwidth a second, as nccl-tests print it: all-reduce 2(n−1)/n·S/time; all-gather,
// reduce-scatter, all-to-all (n−1)/n·S/time; broadcast and send S/time.
BytesPerSecond bus_bandwidth(CollectiveOperation operation, int ranks, Bytes message, Seconds time);

// Of its time alone, what takes multiprocessors and memory from compute beside it, 0 … 1: its
// latency, for which kernels wait on the device, and a member's bytes at the pace of the links
// inside a node. While bytes wait for a slower network, compute has the device. A group inside one
// domain has its kernels at work throughout.
double contending_share(CollectiveOperation operation, const GroupLinks& links, Bytes message,
                        const CollectiveCost& cost);

}  // namespace trainyard

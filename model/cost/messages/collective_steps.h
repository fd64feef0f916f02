// What the closed forms of model/cost/collectives/ have in common: the step of a ring, and the two
// halves, inside the domains and across them, of algorithms that go in rounds of pairs.
// With one domain, or one member in each, every form reduces to the row of handbook §6's table.
#pragma once

#include "model/cluster/group.h"
#include "model/cluster/tree_hops.h"
#include "model/units.h"

namespace trainyard {

// Nothing to move takes no time, also where there is no link.
inline Seconds transfer_time(Bytes bytes, BytesPerSecond bandwidth) {
  return bytes.value() > 0 ? bytes / bandwidth : Seconds(0);
}

// What follows each other in a pipelined algorithm: NCCL's Simple protocol cuts a buffer of 4 MiB
// into 8 slots.
inline constexpr Bytes kPipelineChunk(4.0 * 1024 * 1024 / 8);

// A step of a ring in rank order: B of the slowest hop, and α in the mean of the n−1 steps of a
// pass. Chunks run ahead of each other in their slots, so that one's way around is the sum of its
// hops, not their number times the longest: (n−M)α_i + (M−1)α_x (NCCL's tuner, src/graph/tuning.cc:
// (nsteps − nInterSteps)·intraLat + nInterSteps·interLat). Between two domains the ring has the
// shares of all its members there: r·across.
struct RingPace {
  Seconds latency;
  BytesPerSecond bandwidth;
};
RingPace ring_pace(const GroupLinks& links);

// α of ⌈log₂⌉ rounds: those inside the domains, then those across.
Seconds logarithmic_latency(const GroupLinks& links);

// Reduce-scatter by recursive halving, or its mirror image, all-gather by recursive doubling, of S
// in all: large messages between neighbours in a domain, what is left of them (S/r) across.
// ⌈log₂n⌉α + (n−1)/n · S/B on equal links.
Seconds recursive_time(const GroupLinks& links, Bytes message);
// Of a member's bytes those across: (n−r)/(n·r) · S.
Bytes recursive_leaving(const GroupLinks& links, Bytes message);

// B of a message that a domain's first member alone sends to another one's (trees), for
// Crowding::binomial and ::scatter: its share of the NICs; on a PCIe root it has all of the node's.
BytesPerSecond across_from_first(const GroupLinks& links);

bool applies_always(const GroupLinks& links);
bool spans_domains(const GroupLinks& links);         // several domains with several members each
bool shares_domains(const GroupLinks& links);        // several members in each
bool has_multicast_switch(const GroupLinks& links);  // one domain on an NVLink switch

// NVLS attains less than the link's rate: the rate underestimates its time 1.6-fold (handbook §6,
// from measured H100 curves).
inline constexpr double kMulticastOverhead = 1.6;
BytesPerSecond multicast_bandwidth(const GroupLinks& links);

}  // namespace trainyard

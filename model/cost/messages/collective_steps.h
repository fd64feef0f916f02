// Terms that the closed forms of model/cost/collectives/ share: the step of a ring, and the time
// inside domains and between them of algorithms whose members exchange in pairs, round by round.
// With one domain, or one member in each, every form reduces to its row of handbook §6's table.
//
// In comments: r members in each of M domains, n = r·M; α_i, B_i inside a domain; α_x, B_x across.
#pragma once

#include "model/cluster/group.h"
#include "model/cluster/tree_hops.h"
#include "model/units.h"

namespace trainyard {

// S/B; no bytes take no time, also where there is no link (B = 0).
inline Seconds transfer_time(Bytes bytes, BytesPerSecond bandwidth) {
  return bytes.value() > 0 ? bytes / bandwidth : Seconds(0);
}

// Bytes that a pipelined algorithm passes on at a time: NCCL's Simple protocol cuts a buffer of
// 4 MiB into 8 slots.
inline constexpr Bytes kPipelineChunk(4.0 * 1024 * 1024 / 8);

// One step of a ring in rank order: B of the slowest hop, and the mean α of the n−1 steps of a
// pass. Chunks run ahead of each other in their slots, so the latency of a pass is the sum of its
// hops', (n−M)α_i + (M−1)α_x, not n−1 times the longest (NCCL's tuner, src/graph/tuning.cc:
// (nsteps − nInterSteps)·intraLat + nInterSteps·interLat). Between two domains the ring has the
// bandwidth of all its members there: r·across.
struct RingPace {
  Seconds latency;
  BytesPerSecond bandwidth;
};
RingPace ring_pace(const GroupLinks& links);

// ⌈log₂r⌉α_i + ⌈log₂M⌉α_x.
Seconds logarithmic_latency(const GroupLinks& links);

// Reduce-scatter by recursive halving, or its mirror image, all-gather by recursive doubling, of a
// tensor of S: the large messages go inside domains, the rest (S/r) across.
// ⌈log₂n⌉α + (n−1)/n · S/B on equal links.
Seconds recursive_time(const GroupLinks& links, Bytes message);
// Bytes that a member sends across in it: (n−r)/(n·r) · S.
Bytes recursive_leaving(const GroupLinks& links, Bytes message);

// B of a message that the first member of a domain sends to the first one of another (broadcast
// trees; Crowding::binomial and ::scatter are relative to it): the member's share of the NICs; on a
// PCIe root without contention all NICs of the node.
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

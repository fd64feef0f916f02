// Time to gather a stage's weights and to reduce its gradients once, by data parallelism, ZeRO or
// FSDP (handbook §9), before any overlap: of the embedding, the head, the layers and their experts.
#pragma once

#include "model/cost/messages/priced_messages.h"
#include "model/cost/sharding/stage_parameters.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "model/units.h"

namespace trainyard {

// A sum of messages. The fields beside `time` are sums too: over `time` they are its means.
struct Traffic {
  Seconds time;
  Seconds
      contending;    // takes multiprocessors and memory from compute beside it: contending_share()
  Seconds free;      // leaves the links between domains to others: time × WireUse::free
  Seconds crossing;  // time × WireUse::crossing
  // Of messages inside one domain: `time`, and `free`.
  Seconds inside, inside_free;
  TrafficPattern pattern = TrafficPattern::ring;  // of the longer summand
};

inline Traffic operator+(Traffic a, Traffic b) {
  return {a.time + b.time,
          a.contending + b.contending,
          a.free + b.free,
          a.crossing + b.crossing,
          a.inside + b.inside,
          a.inside_free + b.inside_free,
          a.time < b.time ? b.pattern : a.pattern};
}
inline Traffic operator*(double share, Traffic all) {
  return {share * all.time,   share * all.contending,  share * all.free, share * all.crossing,
          share * all.inside, share * all.inside_free, all.pattern};
}

struct SyncTimes {
  Traffic gather;  // parameters, once
  Traffic reduce;  // gradients, once
};

inline SyncTimes operator+(SyncTimes a, SyncTimes b) {
  return {a.gather + b.gather, a.reduce + b.reduce};
}

inline SyncTimes operator*(double times, SyncTimes all) {
  return {times * all.gather, times * all.reduce};
}

// MoE layers of a stage, MTP layers among them; 0 where the rank holds no experts.
int layers_with_experts(const Transformer& model, const StageParameters& stage);

struct StageSync {
  SyncTimes embedding, head, layers;  // the ends' matrices, and all layers together
  SyncTimes experts;                  // the part of `layers` that is routed experts
  // What each bucket of dense parameters takes beside its share of these: its message's latency.
  SyncTimes bucket;
  int buckets = 0;
  SyncTimes all() const { return embedding + head + layers + buckets * bucket; }
};

// Where communication is overlapped (and under ZeRO-3) each unit's parameters are a message of
// their own, or each bucket's (gradient_buckets.h). Else all dense parameters are one message, in
// `layers`, and all experts another.
StageSync stage_sync(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                     const StageParameters& stage, PricedMessages& prices);

// The groups over whose links most of a stage's gathers, and of its reductions, go, and most of
// those that leave their domains, if any do. Where gradients are reduced in a sharding group and
// then across groups (HSDP), the latter take longer as soon as they leave the domain and the
// sharding group does not.
struct SyncLinks {
  const GroupLinks* most;
  const GroupLinks* leaving;
};
struct SyncGroups {
  SyncLinks gathered, reduced;
};
SyncGroups sync_groups(const Plan& plan, const PlanLinks& links, const StageSync& sync);

}  // namespace trainyard

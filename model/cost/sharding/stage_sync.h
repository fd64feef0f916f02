// Messages of one stage's parameters, once each: gathers of weights and reductions of gradients by
// data parallelism, ZeRO and FSDP (handbook §9), for each unit that sends them apart.
#pragma once

#include "model/cost/messages/priced_messages.h"
#include "model/cost/sharding/stage_parameters.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "model/units.h"

namespace trainyard {

// A communication, and the part of it that takes multiprocessors and memory from compute beside it
// (`contending_share`).
struct Traffic {
  Seconds time;
  Seconds contending;
  Seconds free;      // of the time: the links between domains are left to others
  Seconds crossing;  // the rest of the time × the share of a member's bytes that its own link out
                     // of the domain carries then (WireUse::crossing)
};

inline Traffic operator+(Traffic a, Traffic b) {
  return {a.time + b.time, a.contending + b.contending, a.free + b.free, a.crossing + b.crossing};
}
inline Traffic operator*(double share, Traffic all) {
  return {share * all.time, share * all.contending, share * all.free, share * all.crossing};
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

// Of a stage, MTP layers among them.
int layers_with_experts(const Transformer& model, const StageParameters& stage);

// Of the ends' matrices, and of all layers.
struct StageSync {
  SyncTimes embedding, head, layers;
  SyncTimes experts;  // of the layers
  SyncTimes all() const { return embedding + head + layers; }
};

// Beside passes every unit's parameters are a message of their own; else all are one.
StageSync stage_sync(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                     const StageParameters& stage, PricedMessages& prices);

}  // namespace trainyard

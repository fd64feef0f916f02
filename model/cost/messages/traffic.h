// What one rank communicates for one micro-batch in one layer, in the embedding and in the output
// head (handbook §4), and the links of every process group of a plan. Times are those of the
// collectives alone: what compute hides is taken off later, in layer_cost.h (layers) and in
// sharding/ (parameters).
//
// Assumes that all sibling groups communicate at the same time (model/cluster/group.h).
#pragma once

#include "model/cluster/topology.h"
#include "model/cost/collective.h"
#include "model/cost/messages/wire_use.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "model/units.h"
#include "model/workload/transformer.h"

namespace trainyard {

// The links of each process group of a plan (model/plan/process_groups.h).
struct PlanLinks {
  GroupLinks tensor, context, pipeline;
  GroupLinks dense_gradient, dense_shard, dense_replica;
  GroupLinks expert, expert_tensor, expert_data;
  CollectiveChoice choice;
  int first_stage = 0;  // of the stages whose groups these are
  // Between the first stage and the last, where these are on unlike nodes; null: as `pipeline`.
  const GroupLinks* ends = nullptr;
};
// Where the job's cluster has fewer devices than the plan, it holds so many of its stages, in a
// row: then `pipeline` is of these stages alone. Requires: then pp is the last in the rank order.
PlanLinks plan_links(const PreparedJob& job, const Plan& plan);

// Whether the groups of every stage lie to the NVLink domains as those of every other stage do: not
// where stages of 6 ranks follow each other on nodes of 8, of which the first lies in one node and
// the second in two.
bool stages_lie_alike(const PreparedJob& job, const Plan& plan);
// `links` of the plan, but with the groups over which this stage's gradients are reduced and its
// weights gathered as they lie to the domains. Stages do this at the ends of a step, one after the
// other: only the stage's own groups talk. (In all other groups stages talk at once, and the
// slowest one sets the pace.) Requires: stages do not lie alike.
PlanLinks stage_links(const PreparedJob& job, const Plan& plan, PlanLinks links, int stage);

// Time of a collective over one of the plan's groups.
Seconds collective_time(CollectiveOperation operation, const GroupLinks& links, Bytes message,
                        const PlanLinks& plan);

struct PassTraffic {
  Seconds forward, backward;
};

// One collective of the tensor-parallel group on the n·h activations of a micro-batch. Every layer,
// the embedding and the head use the same ones, so they are priced once a plan.
struct TensorTraffic {
  Seconds gather;  // all-gather of the activations; 0 without sequence parallelism
  Seconds again;   // second gather, of a GEMM's saved input: in its cast dtype where it has one
  Seconds reduce;  // all-reduce; under sequence parallelism reduce-scatter
  WireUse use;     // of `reduce`
};
TensorTraffic tensor_traffic(const PreparedJob& job, const Plan& plan, const PlanLinks& links);

// What one layer (or the output head) communicates on one rank for one micro-batch.
struct LayerTraffic {
  PassTraffic tensor_parallel;
  Seconds gathered;  // the part of tensor_parallel.forward that all-gathers the blocks' inputs
  // Under sequence parallelism, for one block (attention or MLP): the second gather of its saved
  // input, and how much of the reduce-scatter of its input gradient leaves the links free for that.
  Seconds gathered_again, scatter_free;
  Seconds mtp_gathered_again;    // second gather of the two inputs of an MTP layer's projection
  PassTraffic context_parallel;  // of ring attention all steps, hidden or not
  int context_steps = 1;  // blocks that ring attention computes: c, with c − 1 sends between
  PassTraffic expert_parallel;  // dispatch and combine, and the gathers inside an ETP group
  // The part of the forward pass behind the layer's last GEMM. A recomputation that stops early
  // (Stack::recompute_stops_early) does not repeat it.
  Seconds tensor_after_last_saved, expert_after_last_saved;
};
LayerTraffic layer_traffic(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                           const TensorTraffic& tensor, LayerKind kind);

// Share of the k copies of a token that is still sent when each of P places, which hold E/P experts
// each, gets the token once however many of its k experts are there. With uniform routing a place
// has none of them with probability C(E − E/P, k) / C(E, k), so the share is
// P·(1 − C(E − E/P, k) / C(E, k)) / k. E = 8, k = 2, P = 2: 0.79. Requires: P divides E.
double distinct_share(const Transformer& model, int places);
// All-to-all over the expert group of the k copies of each token, `copies` bytes in all. Under
// Stack::deduplicated_dispatch a token goes once to each domain, and there once to each rank, that
// has experts of it.
Seconds exchange_time(const PreparedJob& job, const PlanLinks& links, Bytes copies);

// How the exchanges of a plan use the links between domains, by the group that makes them.
struct ExchangeUse {
  WireUse tensor, context, expert;
};
ExchangeUse exchange_use(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                         const TensorTraffic& tensor);

// Embedding: one all-reduce (reduce-scatter under sequence parallelism).
PassTraffic embedding_traffic(const Plan& plan, const TensorTraffic& tensor);
// Output head and vocabulary-parallel cross-entropy.
LayerTraffic head_traffic(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                          const TensorTraffic& tensor);

// Tokens of one micro-batch on one rank: b·s/c.
double tokens_per_rank(const PreparedJob& job, const Plan& plan);
// Bytes of their activations that tensor parallelism moves, and a stage sends on: n·h elements.
Bytes hidden_message(const PreparedJob& job, const Plan& plan);

}  // namespace trainyard

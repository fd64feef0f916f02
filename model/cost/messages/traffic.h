// What one rank communicates for one micro-batch in one layer, in the embedding, in the output head
// and between pipeline stages (handbook §4), and the links of every process group of a plan. Times
// are those of the collectives alone: what compute hides is taken off later, in layer_cost.h
// (layers) and in sharding/ (parameters).
//
// Assumes that all sibling groups communicate at the same time (model/cluster/group.h).
#pragma once

#include <span>

#include "model/cluster/topology.h"
#include "model/cost/collective.h"
#include "model/cost/messages/wire_use.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "model/schedule/schedule.h"
#include "model/units.h"
#include "model/workload/transformer.h"

namespace trainyard {

// The links of each process group of a plan (model/plan/process_groups.h).
struct PlanLinks {
  GroupLinks tensor, context, pipeline;
  GroupLinks dense_gradient, dense_shard, dense_replica;
  GroupLinks expert, expert_tensor, expert_data;
  CollectiveChoice choice;
};
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

// Time of the message that one micro-batch sends from a stage to the next, or its gradient back.
// Neighbouring stages inside one NVLink domain use its links, all others those between domains.
// Example: 8 stages, 4 in a domain: stages 3 → 4 and 7 → 0 take `between`, the rest `within`.
struct PipelineSends {
  Seconds within;            // inside a domain; 0 unless domains hold several stages, but not all
  Seconds between;           // all other sends, that from the last stage to the first among them
  int stages_in_domain = 1;  // consecutive stages of one domain, where `within` is used
  // From `stage` to the next one; −1: from the last stage to the first.
  Seconds behind(int stage) const { return (stage + 1) % stages_in_domain == 0 ? between : within; }
  // From the first of `stages` stages to the last.
  Seconds on_the_way(int stages) const;
  // The same, and from the last stage back to the first.
  Seconds around(int stages) const { return on_the_way(stages) + between; }
};
PipelineSends pipeline_sends(const PreparedJob& job, const Plan& plan, const PlanLinks& links);

// What sends to and from other stages add to the passes of one micro-batch on a stage.
//
// Not overlapped: the full time of all messages that the stage sends, each at the pace of the
// slowest boundary, because every stage waits for its neighbours as they wait for theirs. (14.6 B
// on two nodes, one boundary of fifteen between them, interleaved stages: predicted 2 % too fast
// this way, 4 to 9 % if each boundary has its own time. Qi et al. 2023.)
//
// Overlapped: the compute that is lost beside messages sent and received, because NCCL's kernels
// hold multiprocessors while they wait (Stack::overlap_slowdown). (Without it 13 B and 70 B on 16
// and 64 H100 with one layer a chunk are predicted 7 and 4 % too fast, and those with four right:
// NeMo 24.07.)
PassTimes sends_in_passes(const Stack& stack, const Plan& plan, const PipelineSends& sends,
                          int stage);

// Gathers of weights or reductions of gradients that go on while a pipeline fills or drains: for
// how long, and how many times as long a send takes that shares links with them.
struct BesideSends {
  Seconds time;
  double stretch = 1;
};
struct BesideRamps {
  BesideSends filling, draining;
};

// What overlapped sends add to the step once, beyond sends_in_passes(). `passes`: of one
// micro-batch, stage by stage; where stages hold several chunks, those of each stage in a row.
//
// With one chunk a stage: the sends of one micro-batch's way to the last stage and back, when no
// compute is beside them, less what the passes on both sides of each send were charged already.
// With several chunks: in each further round of the first and of the last micro-batch, its sends as
// far as they exceed the time that the stages wait for the slowest one anyway; all these sends
// share links with `beside`.
Seconds fill_time(const Stack& stack, const Plan& plan, std::span<const PassTimes> passes,
                  const PipelineSends& sends, const BesideRamps& beside);
// How much overlapped sends delay 1F1B in its steady phase. Of k consecutive stages, the first has
// k micro-batches in flight, so k micro-batches take as long as one needs through all k stages and
// back: the stages' passes and 2(k − 1) sends. Where that exceeds k passes of the slowest stage,
// the difference is added for every k micro-batches (`fill_time` has the first micro-batch).
// Example: two stages of 10 ms each and sends of 1 ms: 22 ms for two micro-batches instead of 20.
// DualPipe's pairs of passes are the same: before each a stage waits for its neighbours.
Seconds waits_for_sends(const Plan& plan, std::span<const PassTimes> passes,
                        const PipelineSends& sends);

// Tokens of one micro-batch on one rank: b·s/c.
double tokens_per_rank(const PreparedJob& job, const Plan& plan);

}  // namespace trainyard

// The communication of one layer on one rank, for one micro-batch, before any overlap: handbook §4.
// And the links of every process group of a plan, derived from the fabric.
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

// The collectives of the tensor-parallel group on a micro-batch's activations: in every layer and
// at both ends the same.
struct TensorTraffic {
  Seconds gather;  // under sequence parallelism
  Seconds again;   // … of what a GEMM saved, a cast where GEMMs have one
  Seconds reduce;  // all-reduce; under sequence parallelism reduce-scatter
  WireUse use;     // of the last
};
TensorTraffic tensor_traffic(const PreparedJob& job, const Plan& plan, const PlanLinks& links);

// What one layer (or the output head) communicates on one rank for one micro-batch.
struct LayerTraffic {
  PassTraffic tensor_parallel;
  Seconds gathered;  // of its forward pass, what gathers the inputs of blocks
  // Under sequence parallelism, of a block: its saved input (a cast where GEMMs have one) once
  // more, for the weight gradient; and of the reduce-scatter of the input gradient the time in
  // which it leaves the links free.
  Seconds gathered_again, scatter_free;
  Seconds mtp_gathered_again;    // the same of the two inputs of an MTP layer
  PassTraffic context_parallel;  // ring: all steps, overlap not yet taken off
  int context_steps = 1;         // blocks of a ring, with the messages between them
  PassTraffic expert_parallel;   // dispatch and combine, and the gathers inside an ETP group
  // Of the forward pass, what comes after the last GEMM: an early stop of recomputation leaves it
  // out.
  Seconds tensor_after_last_saved, expert_after_last_saved;
};
LayerTraffic layer_traffic(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                           const TensorTraffic& tensor, LayerKind kind);

// Of the k copies of a token, what still leaves when it is sent once to each of P places that hold
// E/P of the experts each. A token's experts are k different ones, with uniform routing any k of E:
// a place has none of them by C(E − E/P, k) / C(E, k), so P·(1 − C(E − E/P, k) / C(E, k)) / k
// leave. Requires: P divides E.
double distinct_share(const Transformer& model, int places);
// All-to-all of k copies of each token over the expert group, `copies` bytes in all. A stack that
// sends a token once to each place passes it on inside the domain that it reaches.
Seconds exchange_time(const PreparedJob& job, const PlanLinks& links, Bytes copies);

// How the exchanges of a plan use their links.
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

// A message of one micro-batch from a stage to the next, or back: neighbours in one NVLink domain
// have its links, the others those between domains.
struct PipelineSends {
  Seconds within;            // of a domain that has several stages, but not all of them
  Seconds between;           // all others, that from the last stage to the first among them
  int stages_in_domain = 1;  // next to each other, where they have `within`
  // From `stage` to the next, −1 from the last to the first.
  Seconds behind(int stage) const { return (stage + 1) % stages_in_domain == 0 ? between : within; }
  // From the first of `stages` to the last.
  Seconds on_the_way(int stages) const;
  // And back to the first.
  Seconds around(int stages) const { return on_the_way(stages) + between; }
};
PipelineSends pipeline_sends(const PreparedJob& job, const Plan& plan, const PlanLinks& links);

// What messages to and from other stages add to the passes of one micro-batch on a stage. Where the
// stack does not overlap them, all that it sends, at the pace of the slowest boundary: every stage
// waits for its neighbours' exchanges as they for theirs. (14.6 B on two nodes, one boundary of
// fifteen between them, is predicted 4 to 9 % too fast with interleaved stages if each boundary has
// its own time, and 2 too fast so: Qi et al. 2023.) Else what they take from the compute beside
// them, on both sides of each: NCCL's send and receive kernels hold multiprocessors while they wait
// (Stack::overlap_slowdown). Without that, 13 B and 70 B on 16 and 64 H100 with one layer a chunk
// are predicted 7 and 4 % too fast, and those with four right (NeMo 24.07).
PassTimes sends_in_passes(const Stack& stack, const Plan& plan, const PipelineSends& sends,
                          int stage);

// Communication of a stage's parameters while a pipeline fills, or drains: how long it goes on, and
// how many times longer a send that meets it takes.
struct BesideSends {
  Seconds time;
  double stretch = 1;
};
struct BesideRamps {
  BesideSends filling, draining;
};

// What sends that the stack overlaps show beside that, of a pipeline whose stages, or all chunks of
// a loop with several a stage, take `passes` for one micro-batch. Once a step, the way there and
// back of one micro-batch: with one chunk a stage no compute stands beside them then, to which they
// are charged on both of their sides. With several chunks it goes round as often, as far as the
// slowest stage's other micro-batches do not take as long; there sends share links with `beside`.
Seconds fill_time(const Stack& stack, const Plan& plan, std::span<const PassTimes> passes,
                  const PipelineSends& sends, const BesideRamps& beside);
// 1F1B keeps one micro-batch in flight for each stage: k stages next to each other let k pass in
// the time in which one goes through all of them and back, with 2(k − 1) sends. What that is more
// than the slowest stage takes for k, for all micro-batches but the first, which `fill_time` has.
// So it is with the pairs of passes of DualPipe, whose stages wait for their neighbours before
// each.
Seconds waits_for_sends(const Plan& plan, std::span<const PassTimes> passes,
                        const PipelineSends& sends);

// Tokens of one micro-batch on one rank: b·s/c.
double tokens_per_rank(const PreparedJob& job, const Plan& plan);

}  // namespace trainyard

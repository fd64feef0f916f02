#include "model/cost/sharding/stage_copies.h"

#include <algorithm>

#include "model/cost/sharding/shard_divisors.h"

namespace trainyard {
namespace {

// The links between a rank of one stage and its counterpart on another, in another domain if the
// pipeline has several.
GroupLinks pair_of_stages(const PlanLinks& links) {
  GroupLinks pair = links.pipeline;
  pair.size = 2;
  pair.ranks_per_domain = pair.domains > 1 ? 1 : 2;
  pair.domains = std::min(pair.domains, 2);
  pair.crowding = {};
  return pair;
}

// The links between the first and the last stage. Only the ranks of one stage of a domain send, as
// when the stages of a pipeline pass messages on; so each has the bandwidth `passing`.
GroupLinks ends_of_pipeline(const PlanLinks& links) {
  GroupLinks ends = pair_of_stages(links);
  ends.across = links.pipeline.passing;
  ends.across_all_to_all = links.pipeline.passing;
  return ends;
}

// DualPipe: the mirror stage holds the other copy of a stage's layers. The gradients that ZeRO's
// reduction leaves on a rank are added up between the two.
Seconds mirror_time(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                    const StageParameters& stage) {
  if (plan.schedule->route != Route::both_ways) return Seconds(0);
  const double kept = plan.zero_stage == 0 ? stage.dense + stage.experts
                                           : stage.dense / dense_divisors(plan).optimizer +
                                                 stage.experts / expert_divisors(plan).optimizer;
  const Bytes gradients(kept * reduced_gradient_bytes(job.job.training));
  return collective_time(CollectiveOperation::all_reduce, pair_of_stages(links), gradients, links);
}

// Both ends of a pipeline hold a copy of the shared embedding, and their gradients are added up.
Seconds tied_embedding_time(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                            const StageParameters& stage) {
  if (stage.tied_embedding <= 0) return Seconds(0);
  const double held = stage.tied_embedding / dense_divisors(plan).gradients;
  const Bytes gradients(held * reduced_gradient_bytes(job.job.training));
  return collective_time(CollectiveOperation::all_reduce, ends_of_pipeline(links), gradients,
                         links);
}

}  // namespace

Seconds time_between_copies(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                            const StageParameters& stage) {
  return tied_embedding_time(job, plan, links, stage) + mirror_time(job, plan, links, stage);
}

}  // namespace trainyard

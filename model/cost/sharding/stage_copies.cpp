#include "model/cost/sharding/stage_copies.h"

#include <algorithm>

#include "model/cost/sharding/shard_divisors.h"
#include "model/schedule/schedule.h"

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

// The same while all stages send to those that are as far from the other end. Requires: their hops
// were counted.
GroupLinks mirror_stages(const PlanLinks& links) {
  GroupLinks mirrors = pair_of_stages(links);
  mirrors.across = links.pipeline.passing / links.pipeline.hops->mirrors;
  mirrors.across_all_to_all = mirrors.across;
  return mirrors;
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

// Only the ranks of one stage of a domain send, as when the stages of a pipeline pass messages on;
// so each has the bandwidth `passing`, if these are not nearer to each other than other stages.
GroupLinks ends_of_pipeline(const PlanLinks& links) {
  if (links.ends != nullptr) return *links.ends;
  GroupLinks ends = pair_of_stages(links);
  const HopTimes* hops = links.pipeline.hops;
  ends.passing = links.pipeline.passing / (hops != nullptr ? hops->ends : 1);
  ends.across = ends.across_all_to_all = ends.passing;
  return ends;
}

namespace {

// DualPipe: the mirror stage holds the other copy of a stage's layers. The gradients that ZeRO's
// reduction leaves on a rank are added up between the two: by all stages at once, those of the
// embedding and the head by the ends alone.
Seconds mirror_time(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                    const StageParameters& stage) {
  if (plan.schedule->route != Route::both_ways) return Seconds(0);
  const bool whole = plan.zero_stage == 0;
  const double dense = whole ? 1 : 1 / dense_divisors(plan).optimizer;
  const double experts = whole ? 1 : 1 / expert_divisors(plan).optimizer;
  const double matrices = stage.embedding_matrix + stage.head_matrix;
  const auto time = [&](double kept, const GroupLinks& group) {
    const Bytes gradients(kept * reduced_gradient_bytes(job.job.training));
    return collective_time(CollectiveOperation::all_reduce, group, gradients, links);
  };
  if (links.pipeline.hops == nullptr) {
    return time(dense * stage.dense + experts * stage.experts, pair_of_stages(links));
  }
  const Seconds all =
      time(dense * (stage.dense - matrices) + experts * stage.experts, mirror_stages(links));
  return matrices > 0 ? all + time(dense * matrices, ends_of_pipeline(links)) : all;
}

}  // namespace

CopySums sums_of_copies(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                        const StageParameters& stage) {
  return {tied_embedding_time(job, plan, links, stage), mirror_time(job, plan, links, stage)};
}

}  // namespace trainyard

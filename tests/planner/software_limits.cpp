#include "tests/planner/software_limits.h"

#include <algorithm>

#include "model/schedule/schedule.h"

namespace trainyard {
namespace {

bool runs_like_torchtitan(const Job& job, const Plan& p) {
  if (p.tensor_parallel > 1 && !p.sequence_parallel) return false;
  const bool context = p.context_parallel > 1;
  if (context && p.context_parallel_algorithm == ContextAlgorithm::ulysses) return false;
  if (context && p.zero_stage < 2) return false;
  if (p.zero_stage > 0 && p.sharding_group % p.context_parallel != 0) return false;
  for (const int layers : LayersOfChunks(p, job.model.layers).all()) {
    if (p.pipeline_parallel > 1 && layers == 0) return false;
  }
  if (job.model.experts == 0) return true;
  const bool cut = p.expert_tensor_parallel == p.tensor_parallel;
  if (!cut && (p.expert_parallel == 1 || p.expert_tensor_parallel > 1)) return false;
  const int shards = p.zero_stage > 0 ? p.sharding_group : p.context_parallel;
  const int least = p.context_parallel * (cut ? 1 : p.tensor_parallel);
  const int most = shards * (cut ? 1 : p.tensor_parallel);
  return p.expert_parallel == 1 ||
         (p.expert_parallel % least == 0 && most % p.expert_parallel == 0);
}

}  // namespace

StackLimits limits_like(int software) {
  StackLimits limits;
  if (software == 0) {
    limits.empty_chunks = limits.post_validation = false;
    limits.sequence_parallel = SequenceParallelism::always;
    limits.context_algorithms = {"ring", "all-gather"};
    limits.experts = ExpertSpread::over_shards;
    limits.context_zero_stages = {2, 3};
    limits.whole_context_groups = true;
  } else if (software == 1) {
    limits.pipelines = limits.selective_recompute = false;
    limits.sequence_parallel = SequenceParallelism::never;
    limits.experts = ExpertSpread::none;
    limits.tensor_zero_stages = {2, 3};
  } else if (software == 2) {
    limits.interleaved_stages = 3;
    limits.context_algorithms = std::vector<std::string>();
  } else {
    limits.ulysses_cuts_kv_heads = true;
  }
  return limits;
}

bool runs_like(int software, const Job& job, const Plan& p) {
  if (software == 0) return runs_like_torchtitan(job, p);
  if (software == 1) {
    return p.pipeline_parallel == 1 && p.recompute.mode != RecomputeMode::selective &&
           !p.sequence_parallel && p.expert_parallel * p.expert_tensor_parallel == 1 &&
           (p.tensor_parallel == 1 || p.zero_stage >= 2);
  }
  if (software == 2) {
    const bool interleaved = p.schedule->name == "interleaved-1f1b" && p.pipeline_parallel > 1;
    return p.context_parallel == 1 && !(interleaved && p.pipeline_parallel == 2);
  }
  const int heads = std::max(1, job.model.kv_heads / p.tensor_parallel);
  return p.context_parallel == 1 || p.context_parallel_algorithm != ContextAlgorithm::ulysses ||
         heads % p.context_parallel == 0;
}

}  // namespace trainyard

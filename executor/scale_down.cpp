#include "executor/scale_down.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include "model/schedule/schedule.h"

namespace trainyard {
namespace {

void shrink_cluster(Cluster& cluster, int ranks) {
  cluster.devices_per_node = std::min(cluster.devices_per_node, ranks);
  while (ranks % cluster.devices_per_node != 0) --cluster.devices_per_node;
  cluster.nodes = ranks / cluster.devices_per_node;
}

// One way to shrink a plan, still without its number of replicas.
struct Attempt {
  int stages = 1;
  bool simple_schedule = false;  // use 1F1B instead of the plan's schedule
  bool fewer_experts = false;
  bool other_layers = false;  // may change kinds of layers; noted among the changes
};

// The layers of a network that are left when only some stages are kept.
struct KeptLayers {
  std::vector<std::vector<LayerKind>> of_chunks;  // in the order of LayersOfChunks
  int all = 0;
  int dense = 0;  // leading ones with the dense MLP
  int full = 0;   // leading ones with full attention

  bool has_experts() const {
    return std::ranges::any_of(kinds(), [](LayerKind kind) { return kind.moe; });
  }
  std::vector<LayerKind> kinds() const {
    std::vector<LayerKind> list;
    for (const auto& chunk : of_chunks) list.insert(list.end(), chunk.begin(), chunk.end());
    return list;
  }
};

int layers_unlike(const std::vector<LayerKind>& kinds, const Transformer& model) {
  int count = 0, layer = 0;
  for (const LayerKind kind : kinds) count += kind == layer_kind(model, layer++) ? 0 : 1;
  return count;
}

// The network that has these layers, or comes closest. A network states the order of its kinds of
// layers by leading layers and by periods, which may not fit where layers in front are gone.
Transformer model_of(const Transformer& whole, const KeptLayers& kept) {
  Transformer model = whole;
  model.layers = kept.all;
  model.dense_layers = kept.dense;
  model.full_attention_layers = kept.full;
  const std::vector<LayerKind> kinds = kept.kinds();
  Transformer best = model;
  const int longest = kept.all + 1;  // all longer periods mean the same
  const int experts = std::min(whole.moe_every, longest);
  const int full_attention = std::min(whole.full_attention_every, longest);
  for (model.moe_every = 1; model.moe_every <= experts; ++model.moe_every) {
    for (int full = 0; full <= full_attention; ++full) {
      model.full_attention_every = full;
      if (layers_unlike(kinds, model) < layers_unlike(kinds, best)) best = model;
    }
  }
  return best;
}

class Scaling {
 public:
  Scaling(const Job& job, const PlanRequest& request, const Plan& plan, int ranks)
      : job_(job),
        request_(request),
        plan_(plan),
        ranks_(ranks),
        layers_(plan, job.model.layers),
        shape_(pipeline_shape(plan)) {}

  std::optional<ScaledDown> found() const {
    auto smaller = found(false);
    return smaller ? smaller : found(true);
  }

 private:
  std::optional<ScaledDown> found(bool other_layers) const {
    for (const bool fewer_experts : {false, true}) {
      if (fewer_experts && plan_.expert_parallel == 1) break;
      for (const bool simple : {false, true}) {
        for (int stages = plan_.pipeline_parallel; stages >= fewest_stages(simple); --stages) {
          auto smaller = with({stages, simple, fewer_experts, other_layers});
          if (smaller) return smaller;
        }
      }
    }
    return std::nullopt;
  }

  // A user's own order of passes holds for its number of stages alone. One stage has no schedule.
  int fewest_stages(bool simple) const {
    if (simple) return 1;
    return plan_.passes ? plan_.pipeline_parallel : std::min(2, plan_.pipeline_parallel);
  }
  int stage_ranks() const { return plan_.tensor_parallel * plan_.context_parallel; }

  std::optional<ScaledDown> with(const Attempt& attempt) const {
    const int most = std::min(plan_.data_parallel, ranks_ / (stage_ranks() * attempt.stages));
    for (const bool smaller_groups : {false, true}) {
      if (smaller_groups && !request_.sharding_group) break;
      for (int replicas = most; replicas > 0; --replicas) {
        auto smaller = with(attempt, replicas);
        if (!smaller) continue;
        if (is_legal(*smaller) || (smaller_groups && shrink_groups(*smaller))) {
          note_changes(*smaller);
          return smaller;
        }
      }
    }
    return std::nullopt;
  }

  static bool is_legal(const ScaledDown& smaller) {
    const Job& job = smaller.job;
    return plan_if_legal(smaller.request, job.model, job.cluster, job.training).has_value();
  }
  bool shrink_groups(ScaledDown& smaller) const {
    std::optional<int>& group = smaller.request.sharding_group;
    group = std::min(*group, *smaller.request.data_parallel * plan_.context_parallel);
    while (*group > 0 && !is_legal(smaller)) --*group;
    return *group > 0;
  }

  // The plan shrunk to `replicas` replicas; nothing: no layers or too few experts are left.
  std::optional<ScaledDown> with(const Attempt& attempt, int replicas) const {
    ScaledDown out{job_, request_, {}};
    out.request.data_parallel = replicas;
    out.request.pipeline_parallel = attempt.stages;
    if (attempt.simple_schedule) {
      out.request.schedule.clear();
      out.request.passes.reset();
      out.request.virtual_stages = 1;
    }
    const bool as_it_is = attempt.stages == plan_.pipeline_parallel && !attempt.simple_schedule;
    if (!as_it_is && !keep_stages(attempt, out)) return std::nullopt;
    if (attempt.fewer_experts && !keep_experts(replicas, out)) return std::nullopt;
    out.job.training.global_batch = std::int64_t{plan_.microbatches} * plan_.micro_batch * replicas;
    shrink_cluster(out.job.cluster, stage_ranks() * attempt.stages * replicas);
    return out;
  }

  // Sets of stages to keep, in the order in which they are tried. Several stages keep both ends,
  // which have the embedding and the head. A single one is the one with most layers, with experts
  // if the network has any.
  std::vector<std::vector<int>> stages_to_keep(const Attempt& attempt) const {
    std::vector<std::vector<int>> ways;
    const int cut = plan_.pipeline_parallel - attempt.stages;
    if (attempt.stages == 1) {
      for (int stage = 0; stage < plan_.pipeline_parallel; ++stage) ways.push_back({stage});
      std::ranges::stable_sort(ways, std::greater(), [this](const std::vector<int>& stages) {
        const KeptLayers kept = layers_of(stages, 1);
        return std::pair(job_.model.experts == 0 || kept.has_experts(), kept.all);
      });
      return ways;
    }
    for (int front = 1; front < attempt.stages; ++front) {
      ways.emplace_back();
      for (int i = 0; i < attempt.stages; ++i) ways.back().push_back(i < front ? i : i + cut);
    }
    std::swap(ways.front(), ways[static_cast<std::size_t>((attempt.stages - 1) / 2)]);
    if (cut == 0) ways.resize(1);
    return ways;
  }

  // `chunks`: chunks of a stage in the smaller plan, either the plan's number or 1.
  KeptLayers layers_of(const std::vector<int>& stages, int chunks) const {
    KeptLayers kept;
    if (chunks == 1) kept.of_chunks.resize(stages.size());
    for (int chunk = 0; chunk < layer_chunks(shape_); ++chunk) {
      const auto stage = std::find(stages.begin(), stages.end(), place_of(shape_, 0, chunk).stage);
      if (stage == stages.end()) continue;
      const int layers = layers_[chunk], before = layers_.before(chunk);
      kept.all += layers;
      kept.dense += std::clamp(job_.model.dense_layers - before, 0, layers);
      kept.full += std::clamp(job_.model.full_attention_layers - before, 0, layers);
      if (chunks > 1) kept.of_chunks.emplace_back();
      auto& kinds = chunks > 1 ? kept.of_chunks.back()
                               : kept.of_chunks[static_cast<std::size_t>(stage - stages.begin())];
      for (int i = 0; i < layers; ++i) kinds.push_back(layer_kind(job_.model, before + i));
    }
    return kept;
  }

  bool keep_stages(const Attempt& attempt, ScaledDown& out) const {
    const int chunks = attempt.simple_schedule ? 1 : plan_.virtual_stages;
    for (const std::vector<int>& stages : stages_to_keep(attempt)) {
      const KeptLayers kept = layers_of(stages, chunks);
      const Transformer model = model_of(job_.model, kept);
      const int unlike = layers_unlike(kept.kinds(), model);
      if (kept.all == 0 || (unlike > 0 && !attempt.other_layers)) continue;
      out.job.model = model;
      keep_layers(attempt, kept, stages, out);
      if (unlike == 0) return true;
      out.changes.push_back(
          fmt::format("{} of {} layers of another kind than the plan's", unlike, kept.all));
      return true;
    }
    return false;
  }

  void keep_layers(const Attempt& attempt, const KeptLayers& kept, const std::vector<int>& stages,
                   ScaledDown& out) const {
    out.request.layers_per_stage.clear();
    if (!is_default(attempt, kept)) {
      for (const auto& chunk : kept.of_chunks) {
        out.request.layers_per_stage.push_back(static_cast<int>(chunk.size()));
      }
    }
    const auto clamp = [&kept](Recompute& recompute) {
      recompute.full_layers = std::min(recompute.full_layers, kept.all);
    };
    clamp(out.request.recompute);
    out.request.recompute_per_stage.clear();
    if (request_.recompute_per_stage.empty()) return;
    for (const int stage : stages) {
      out.request.recompute_per_stage.push_back(
          request_.recompute_per_stage[static_cast<std::size_t>(stage)]);
      clamp(out.request.recompute_per_stage.back());
    }
  }
  bool is_default(const Attempt& attempt, const KeptLayers& kept) const {
    Plan smaller;
    smaller.pipeline_parallel = attempt.stages;
    smaller.virtual_stages = attempt.simple_schedule ? 1 : plan_.virtual_stages;
    const LayersOfChunks even(smaller, kept.all);
    for (std::size_t i = 0; i < kept.of_chunks.size(); ++i) {
      if (even[static_cast<int>(i)] != static_cast<int>(kept.of_chunks[i].size())) return false;
    }
    return true;
  }

  // Keeps the most expert-parallel ranks that divide the ranks left; a token still needs its
  // experts among them.
  bool keep_experts(int replicas, ScaledDown& out) const {
    const int on_rank = job_.model.experts / plan_.expert_parallel;
    for (int parallel = plan_.expert_parallel - 1; parallel > 0; --parallel) {
      const bool tiles =
          (stage_ranks() * replicas) % (parallel * plan_.expert_tensor_parallel) == 0;
      if (!tiles || plan_.expert_parallel % parallel != 0) continue;
      out.request.expert_parallel = parallel;
      out.job.model.experts = on_rank * parallel;
      return out.job.model.experts >= job_.model.experts_per_token;
    }
    return false;
  }

  void note_changes(ScaledDown& out) const {
    const auto change = [&out](const char* key, const auto& before, const auto& after) {
      if (before != after) out.changes.push_back(fmt::format("{} {} → {}", key, before, after));
    };
    const Transformer &before = job_.model, &after = out.job.model;
    const auto made = *plan_if_legal(out.request, after, out.job.cluster, out.job.training);
    change("layers", before.layers, after.layers);
    change("dense_layers", before.dense_layers, after.dense_layers);
    change("moe_every", before.moe_every, after.moe_every);
    change("full_attention_layers", before.full_attention_layers, after.full_attention_layers);
    change("full_attention_every", before.full_attention_every, after.full_attention_every);
    change("experts", before.experts, after.experts);
    change("pipeline_parallel", plan_.pipeline_parallel, made.pipeline_parallel);
    change("virtual_stages", plan_.virtual_stages, made.virtual_stages);
    if (made.pipeline_parallel > 1) change("schedule", plan_.schedule->name, made.schedule->name);
    if (!made.layers_per_stage.empty() && made.layers_per_stage != plan_.layers_per_stage) {
      out.changes.push_back(
          fmt::format("layers_per_stage {}", fmt::join(made.layers_per_stage, "-")));
    }
    change("data_parallel", plan_.data_parallel, made.data_parallel);
    change("expert_parallel", plan_.expert_parallel, made.expert_parallel);
    if (request_.sharding_group) {
      change("sharding_group", plan_.sharding_group, made.sharding_group);
    }
    change("global_batch", job_.training.global_batch, out.job.training.global_batch);
  }

  const Job& job_;
  const PlanRequest& request_;
  const Plan& plan_;
  int ranks_;
  LayersOfChunks layers_;
  PipelineShape shape_;
};

Error nothing_smaller(const Job& job, const Plan& plan, int ranks) {
  const int of_stage = plan.tensor_parallel * plan.context_parallel;
  if (ranks < of_stage) {
    return {"--ranks",
            fmt::format("found {}; one stage of one replica has {} ranks (tensor_parallel "
                        "· context_parallel), allowed is so many or more",
                        ranks, of_stage)};
  }
  return {"--ranks",
          fmt::format("found {}; the ranks of a stage share {} experts, each cut over {} "
                      "of them, and a token needs {}: more ranks are needed",
                      ranks, job.model.experts, plan.expert_tensor_parallel,
                      job.model.experts_per_token)};
}

}  // namespace

Expected<ScaledDown> scale_down(const Job& job, const PlanRequest& request, const Plan& plan,
                                int ranks) {
  if (plan.devices() <= ranks) return ScaledDown{job, request, {}};
  auto smaller = Scaling(job, request, plan, ranks).found();
  if (!smaller) return tl::unexpected(nothing_smaller(job, plan, ranks));
  return *std::move(smaller);
}

}  // namespace trainyard

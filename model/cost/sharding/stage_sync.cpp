#include "model/cost/sharding/stage_sync.h"

#include <algorithm>
#include <utility>

#include "model/cost/sharding/gradient_buckets.h"

namespace trainyard {
namespace {

using enum CollectiveOperation;

// The groups that reduce and shard one class of parameters (dense or expert).
struct ParameterClass {
  const GroupLinks* reduce = nullptr;   // all ranks that hold a copy
  const GroupLinks* shard = nullptr;    // those that share one copy of the states
  const GroupLinks* replica = nullptr;  // across sharding groups; null: one group
};

struct Classes {
  ParameterClass dense, expert;
};

Classes classes(const PlanLinks& links) {
  return {{&links.dense_gradient, &links.dense_shard, &links.dense_replica},
          {&links.expert_data, &links.expert_data, nullptr}};
}

// A message of `pieces` equal parts. `like`: a message of other bytes that uses links in the same
// proportions; null: how this one uses them is worked out.
Traffic traffic(CollectiveOperation operation, const GroupLinks& group, Bytes message, int pieces,
                PricedMessages& prices, const Traffic* like) {
  const CollectiveCost cost = prices.cost(operation, group, message);
  WireUse use;
  if (like == nullptr) {
    use = wire_use(operation, group, message, cost);
  } else if (like->time > Seconds(0)) {
    use = {.free = like->free / like->time,
           .crossing = like->crossing / like->time,
           .pattern = like->pattern};
  }
  const double contending = contending_share(operation, group, message, cost);
  const double inside = group.domains == 1 ? 1 : 0;
  const Seconds free = cost.time * use.free;
  return pieces *
         Traffic{cost.time,          cost.time * contending, free,       cost.time * use.crossing,
                 inside * cost.time, inside * free,          use.pattern};
}

// Parameters that are sent in so many messages.
struct Held {
  double parameters = 0;
  int pieces = 1;
};

// Reduction of gradients and gathering of parameters, once each.
SyncTimes sync_times(const PreparedJob& job, const Plan& plan, PricedMessages& prices,
                     const ParameterClass& group, Held held, const SyncTimes* like = nullptr) {
  const auto [parameters, pieces] = held;
  if (parameters <= 0) return {};
  const Training& training = job.job.training;
  const Bytes gradients(parameters * reduced_gradient_bytes(training) / pieces);
  const Bytes weights(parameters * training.precision.weight_bytes / pieces);
  const Traffic* gathers = like == nullptr ? nullptr : &like->gather;
  const Traffic* reductions = like == nullptr ? nullptr : &like->reduce;
  if (plan.zero_stage == 0) {
    return {{}, traffic(all_reduce, *group.reduce, gradients, pieces, prices, reductions)};
  }
  SyncTimes times{traffic(all_gather, *group.shard, weights, pieces, prices, gathers),
                  traffic(reduce_scatter, *group.shard, gradients, pieces, prices, reductions)};
  if (group.replica != nullptr) {
    const Bytes shard = gradients / group.shard->size;
    times.reduce =
        times.reduce + traffic(all_reduce, *group.replica, shard, pieces, prices, reductions);
  }
  return times;
}

// The rest of `all` once a part of it that uses links as all of it does is taken off.
Traffic without(const Traffic& all, const Traffic& part) {
  return all.time > Seconds(0) ? (1 - part.time / all.time) * all : all;
}

// The latency of one of so many messages of `all`, given the same bytes in twice as many.
Traffic latency_of(const Traffic& all, const Traffic& halves, int messages) {
  if (all.time <= Seconds(0)) return {};
  const double share = std::clamp(halves.time / all.time - 1, 0.0, 1.0);
  return share / messages * all;
}

// Of the dense and the experts' buckets of a stage; of experts, whose buckets are many, on average.
StageSync sync_in_buckets(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                          const StageParameters& stage, PricedMessages& prices) {
  const auto messages = [&](bool experts) {
    const int first = buckets_of_chunk(job, plan, stage, 0, experts).messages;
    const int chunks = chunks_with_passes(plan);
    if (chunks == 1) return first;
    const int last = buckets_of_chunk(job, plan, stage, chunks - 1, experts).messages;
    return first + last + chunks - 2;
  };
  StageSync sync;
  if (stage.dense <= 0) return sync;  // no layers, no ends
  const Classes both = classes(links);
  sync.buckets = messages(false);
  const auto dense_in = [&](int pieces) {
    return sync_times(job, plan, prices, both.dense, {stage.dense, pieces});
  };
  const SyncTimes dense = dense_in(sync.buckets);
  const SyncTimes halves = dense_in(2 * sync.buckets);
  sync.bucket = {latency_of(dense.gather, halves.gather, sync.buckets),
                 latency_of(dense.reduce, halves.reduce, sync.buckets)};
  const auto share = [&](double parameters) {
    const double part = parameters / stage.dense;
    return SyncTimes{part * without(dense.gather, sync.buckets * sync.bucket.gather),
                     part * without(dense.reduce, sync.buckets * sync.bucket.reduce)};
  };
  sync.embedding = share(stage.embedding_matrix);
  sync.head = share(stage.head_matrix);
  if (stage.experts > 0) {
    sync.experts = sync_times(job, plan, prices, both.expert, {stage.experts, messages(true)});
  }
  sync.layers = share(stage.dense - stage.embedding_matrix - stage.head_matrix) + sync.experts;
  return sync;
}

// Parameters that ZeRO-2 and 3 move more than once on the last stage of a pipeline. The embedding,
// a tied head and MTP layers share one matrix, but different passes use it, so for each use beyond
// the first it is gathered (ZeRO-3), and its gradient reduced, once more.
double moved_again(const PreparedJob& job, const Plan& plan, const StageParameters& stage) {
  const Transformer& model = job.job.model;
  if (plan.held_zero_stage() < 2 || !stage.head || plan.pipeline_parallel == 1) return 0;
  const int users =
      (stage.embedding ? 1 : 0) + (model.tied_embeddings ? 1 : 0) + (model.mtp_layers > 0 ? 1 : 0);
  const double matrix =
      stage.embedding ? stage.embedding_matrix - job.end_parameters.positions : stage.head_matrix;
  return std::max(0, users - 1) * matrix;
}

}  // namespace

int layers_with_experts(const Transformer& model, const StageParameters& stage) {
  if (stage.experts == 0) return 0;
  int layers = 0;
  for (int kind = 0; kind < kLayerKinds; ++kind) {
    if (layer_kind_at(model, kind).moe) layers += stage.kinds[static_cast<std::size_t>(kind)];
  }
  return layers;
}

StageSync stage_sync(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                     const StageParameters& stage, PricedMessages& prices) {
  if (uses_buckets(job.job.training, plan)) {
    return sync_in_buckets(job, plan, links, stage, prices);
  }
  const Classes both = classes(links);
  const auto dense = [&](double parameters, int pieces, const SyncTimes* like = nullptr) {
    return sync_times(job, plan, prices, both.dense, {parameters, pieces}, like);
  };
  const auto experts = [&](int pieces) {
    return sync_times(job, plan, prices, both.expert, {stage.experts, std::max(1, pieces)});
  };
  StageSync sync;
  if (plan.overlap.data_parallel || plan.held_zero_stage() >= 3) {
    const double layers = stage.dense - stage.embedding_matrix - stage.head_matrix;
    sync.layers = dense(layers, std::max(1, stage.layers));
    sync.embedding = dense(stage.embedding_matrix, 1, &sync.layers);
    sync.head = dense(stage.head_matrix, 1, &sync.layers);
    sync.experts = experts(layers_with_experts(job.job.model, stage));
    sync.layers = sync.layers + sync.experts;
  } else {
    sync.experts = experts(1);
    sync.layers = dense(stage.dense, 1) + sync.experts;
  }
  if (const double again = moved_again(job, plan, stage); again > 0) {
    SyncTimes more = dense(again, 1, &sync.layers);
    if (plan.held_zero_stage() == 2) more.gather = {};
    sync.head = stage.head_matrix > 0 ? sync.head + more : more;
  }
  return sync;
}

SyncGroups sync_groups(const Plan& plan, const PlanLinks& links, const StageSync& sync) {
  const SyncTimes all = sync.all();
  const Seconds experts = (sync.experts.gather + sync.experts.reduce).time;
  const bool mostly_experts = 2 * experts > (all.gather + all.reduce).time;
  const GroupLinks& shard = links.dense_shard;
  const GroupLinks& replica = links.dense_replica;
  const GroupLinks& gathered = plan.zero_stage == 0 ? links.dense_gradient : shard;
  const bool between = replica.domains > 1 && shard.domains == 1;
  const bool across = plan.zero_stage > 0 && replica.size > 1 && (shard.size == 1 || between);
  const auto of_both = [&](const GroupLinks& dense) {
    const GroupLinks* most = &dense;
    const GroupLinks* other = &links.expert_data;
    if (mostly_experts) std::swap(most, other);
    const bool other_leaves = experts > Seconds(0) && most->domains == 1 && other->domains > 1;
    return SyncLinks{most, other_leaves ? other : most};
  };
  return {of_both(gathered), of_both(across ? replica : gathered)};
}

}  // namespace trainyard

// Applies a search space to pipelines and replicas through several groups of unlike nodes.
//
// There some dimensions have only one value: schedule 1f1b, one chunk a stage, no context
// parallelism, no tensor parallelism of the experts, nothing on the hosts, states sharded over all
// ranks, the usual order of the ranks, and for replicas no expert parallelism. Degrees,
// micro-batch, recomputation, ZeRO stage and sequence parallelism are searched as for one cluster
// (planner/search/enumeration.h); collectives where the space names them, else the fastest is
// taken.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "planner/heterogeneous/groups.h"

namespace trainyard {

// A dimension of which a way to use the groups has only one value.
struct OnlyValue {
  std::string_view key, value;
};
std::vector<OnlyValue> only_values(GroupUse use);

// The first dimension whose only value in this way is not in the space; nothing: there is none.
std::optional<LeftOutWay> without_only_value(GroupUse use, const SearchSpace& space);

// Why the space excludes the way, with the key that does; nothing: the space allows some plans of
// it. `has_degrees`: whether the way has degrees under these options.
std::optional<LeftOutWay> left_out_way(
    GroupUse use, const GroupSearchOptions& options,
    const std::function<bool(const GroupSearchOptions& options)>& has_degrees);

// The micro-batches of the space that divide `sequences`, ascending.
std::vector<int> micro_batches(const SearchSpace& space, std::int64_t sequences);

// Says which micro-batches may fit, of requests that differ in nothing else and come in ascending
// order. Where one is too large, every multiple of it is: a stage of 1F1B then keeps as many
// sequences or more.
class FittingSizes {
 public:
  // Requires: asked for every request of a list in turn. A size that is no larger than the last
  // begins another run of requests.
  bool may_fit(int micro_batch);
  void last_was_too_large() { too_large_.push_back(last_); }

 private:
  int last_ = 0;
  std::vector<int> too_large_;
};

// The choices of recompute_choices() that are for so many stages; the stack's limits are ignored.
std::vector<RecomputeChoice> recomputations(const SearchSpace& space, const Stack& stack,
                                            int stages);

// `request` with every ZeRO stage of the space, each choice of sequence parallelism and each
// collective that the space names; the stack's limits are ignored.
std::vector<PlanRequest> variants_of(const GroupedJob& job, const PlanRequest& request,
                                     const SearchSpace& space);

// Whether the layers that the options name, if any, are of so many stages.
bool may_have_stages(const GroupSearchOptions& options, int stages);

// Whether the space allows the plan's sharding group.
bool may_shard(const SearchSpace& space, const Plan& plan);

}  // namespace trainyard

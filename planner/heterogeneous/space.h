// What a search space leaves of the ways to use several groups of unlike nodes together.
//
// Some dimensions have one value there (schedule 1f1b, one chunk a stage, no context parallelism,
// no tensor parallelism of the experts, nothing on the hosts, states sharded over all ranks, the
// usual order of the ranks; replicas no expert parallelism). Degrees, micro-batch, recomputation,
// ZeRO stage and sequence parallelism are searched as for one cluster
// (planner/search/enumeration.h); collectives where the space names them, else the fastest.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "planner/heterogeneous/groups.h"

namespace trainyard {

// A dimension of which a way has one value.
struct OnlyValue {
  std::string_view key, value;
};
std::vector<OnlyValue> only_values(GroupUse use);

// The first dimension of which the way has one value, and not one that the space allows.
std::optional<LeftOutWay> without_only_value(GroupUse use, const SearchSpace& space);

// The way and the key because of which nothing is left of it; nothing: something is.
// `has_degrees`: whether the way has any under these options.
std::optional<LeftOutWay> left_out_way(
    GroupUse use, const GroupSearchOptions& options,
    const std::function<bool(const GroupSearchOptions& options)>& has_degrees);

// All that divide `sequences` and that the space allows, ascending.
std::vector<int> micro_batches(const SearchSpace& space, std::int64_t sequences);

// Which micro-batches of requests that differ in nothing else, in ascending order, may fit. Of one
// that is too large every multiple is: a stage of 1F1B then keeps as many sequences or more.
class FittingSizes {
 public:
  // Asked for every request of a list in turn; a smaller size begins with other requests.
  bool may_fit(int micro_batch);
  void last_was_too_large() { too_large_.push_back(last_); }

 private:
  int last_ = 0;
  std::vector<int> too_large_;
};

// Of recompute_choices() those that all stages have, or each of so many its own.
std::vector<RecomputeChoice> recomputations(const SearchSpace& space, const Stack& stack,
                                            int stages);

// `request` with every ZeRO stage and sequence parallelism that the space allows and the stack may
// have, and the collectives that the space names.
std::vector<PlanRequest> variants_of(const GroupedJob& job, const PlanRequest& request,
                                     const SearchSpace& space);

// Whether the layers that are named, if any, are of so many stages.
bool may_have_stages(const GroupSearchOptions& options, int stages);

// Whether the plan shards as the space allows.
bool may_shard(const SearchSpace& space, const Plan& plan);

}  // namespace trainyard

// What a search space leaves of the ways to use several groups of unlike nodes together.
//
// Some dimensions have one value there (schedule 1f1b, one chunk a stage, no context parallelism,
// no tensor parallelism of the experts, nothing on the hosts, states sharded over all ranks, the
// usual order of the ranks; replicas no expert parallelism). Degrees, micro-batch and recomputation
// are searched; ZeRO stage, sequence parallelism and collective where the space names them, else
// they are as the stack has them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "planner/unlike_groups.h"

namespace trainyard {

// The first dimension of which the way has one value, and not one that the space allows.
std::optional<LeftOutWay> without_only_value(GroupUse use, const SearchSpace& space);

// The way and the key because of which nothing is left of it; nothing: something is.
// `has_degrees`: whether the way has any under these options.
std::optional<LeftOutWay> left_out_way(
    GroupUse use, const GroupSearchOptions& options,
    const std::function<bool(const GroupSearchOptions& options)>& has_degrees);

// 1, 2 and 4 where the space names none; else all that it names and that divide `sequences`.
std::vector<int> micro_batches(const SearchSpace& space, std::int64_t sequences);

// Those that all stages have, or each its own: of the space, else none, selective and full.
std::vector<RecomputeChoice> recomputations(const SearchSpace& space, int stages);

// `request` with everything else that the space names.
std::vector<PlanRequest> variants_of(const PlanRequest& request, const SearchSpace& space);

// Whether the layers that are named, if any, are of so many stages.
bool may_have_stages(const GroupSearchOptions& options, int stages);

// Whether the plan shards as the space allows.
bool may_shard(const SearchSpace& space, const Plan& plan);

}  // namespace trainyard

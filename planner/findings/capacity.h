// Capacity planning: the best plan for every size in question of network, cluster, batch and
// sequence. Each size is a search of its own, proved as far as that search is, with what layers,
// recomputation and order of a plan's own gain on it (planner/improvement.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/findings/explain.h"
#include "planner/planner.h"

namespace trainyard {

// What may vary beside the plan; an empty list: as the job has it.
struct CapacitySpace {
  std::vector<Transformer> models;
  std::vector<std::int64_t> nodes;
  std::vector<std::int64_t> global_batch;
  std::vector<std::int64_t> sequence_length;
  std::optional<Seconds> deadline;  // for training.tokens
};
// Whether any size is asked for.
bool asks_for_sizes(const CapacitySpace& sizes);
// The sizes that differ: 1 where nothing varies.
std::int64_t count_of(const CapacitySpace& sizes);

struct CapacityPoint {
  Job job;
  // Nothing: no plan fits, or none was found before the search ended.
  std::optional<Candidate> best;
  bool optimal = false;  // false: the search was stopped early
  double gap = 0;        // of the search; 0 when optimal
  // What training.tokens take, failures and checkpoints included: as long as a spare is always at
  // hand (model/cost/reliability.h); `goodput` simulates how long the job waits for one.
  std::optional<Seconds> run;
  std::optional<Dollars> run_cost;  // of that, its spares included; unknown without a price
  bool in_time = false;             // within the deadline
};

// In the order of models, then nodes, batch and sequence. Ends early when interrupted.
std::vector<CapacityPoint> plan_capacity(const Job& job, const CapacitySpace& sizes,
                                         const SearchOptions& options,
                                         const JobEvaluator& evaluate);

// Which sizes may answer: those of which a plan fits, or is in time besides.
enum class Wanted { fits, in_time };
Wanted wanted(const CapacitySpace& sizes);

// The answers among the points; nullptr where there is none. Of equals: the one on fewer devices,
// then the one with more tokens a second.
const CapacityPoint* fewest_devices(const std::vector<CapacityPoint>& points);  // in time
const CapacityPoint* largest_model(const std::vector<CapacityPoint>& points, Wanted wanted);
const CapacityPoint* longest_sequence(const std::vector<CapacityPoint>& points, Wanted wanted);

}  // namespace trainyard

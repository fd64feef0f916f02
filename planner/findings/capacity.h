// Capacity planning: the best plan for every combination of given sizes of network, cluster, batch
// and sequence. Each size has a search of its own, whose plans are improved
// (planner/improvement.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/findings/explain.h"
#include "planner/planner.h"

namespace trainyard {

// The sizes to combine; an empty list: the job's own.
struct CapacitySpace {
  std::vector<Transformer> models;
  std::vector<std::int64_t> nodes;
  std::vector<std::int64_t> global_batch;
  std::vector<std::int64_t> sequence_length;
  std::optional<Seconds> deadline;  // for training on training.tokens
};
// Whether any list or the deadline is given.
bool asks_for_sizes(const CapacitySpace& sizes);
// Number of combinations: 1 where nothing varies.
std::int64_t count_of(const CapacitySpace& sizes);

struct CapacityPoint {
  Job job;
  // Nothing: no plan fits, or none was found before the search ended.
  std::optional<Candidate> best;
  bool optimal = false;  // false: the search was stopped early
  double gap = 0;        // of the search; 0 when optimal
  // Time to train on training.tokens, failures and checkpoints included. Assumes that a spare is
  // always at hand (model/cost/reliability.h); `goodput` simulates how long the job waits for one.
  std::optional<Seconds> run;
  std::optional<Dollars> run_cost;  // of `run`, spares included; unknown without a price
  bool in_time = false;             // within the deadline
};

// The points in the order of models, then nodes, batch and sequence. Ends early when interrupted.
std::vector<CapacityPoint> plan_capacity(const Job& job, const CapacitySpace& sizes,
                                         const SearchOptions& options,
                                         const JobEvaluator& evaluate);

// Which points may answer a question: those with a plan that fits, or that is in time as well.
enum class Wanted { fits, in_time };
Wanted wanted(const CapacitySpace& sizes);

// The answer among the points; nullptr where there is none. Of equals the one on fewer devices is
// taken, then the one with more tokens a second.
const CapacityPoint* fewest_devices(const std::vector<CapacityPoint>& points);  // in time
const CapacityPoint* largest_model(const std::vector<CapacityPoint>& points, Wanted wanted);
const CapacityPoint* longest_sequence(const std::vector<CapacityPoint>& points, Wanted wanted);

}  // namespace trainyard

// The scenario document as a value: a job, perhaps a plan, perhaps what a real run measured.
// Reading resolves references (catalog names, paths relative to the document) and checks
// everything; an error is one line with file and JSON pointer (docs/scenarios.md, design §3).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/cost/reliability_settings.h"
#include "model/expected.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "planner/findings/capacity.h"
#include "planner/heterogeneous/request.h"
#include "planner/search_space.h"
#include "simulator/step/conditions.h"

namespace trainyard {

enum class MemoryKind { allocated, reserved, device };

struct Measured {
  std::optional<Seconds> step_time;
  std::optional<double> tflops_per_device;
  std::optional<double> mfu;
  std::optional<double> tokens_per_second_per_device;
  std::optional<Bytes> peak_memory;
  MemoryKind peak_memory_kind = MemoryKind::device;
  std::string source;
  std::string release;
};

// The length of a whole training run, and how many lives of it are simulated.
struct RunLength {
  std::optional<Seconds> work;      // absent: the time that training.tokens take
  std::optional<Seconds> duration;  // absent: until the work is done
  int runs = 200;
  std::int64_t seed = 0;
};

// The `planner` section: what is fixed, bounded or excluded, and the sizes to plan for.
struct PlannerKeys : SearchSpace, CapacitySpace {
  std::vector<int> layers_per_stage;  // as in `plan`; empty: evenly dealt
};

struct Scenario {
  std::string name;
  Job job;
  std::optional<UnlikeCluster> unlike;  // groups of unlike nodes; job.cluster is then the first
  std::optional<PlanRequest> plan;      // absent: the planner finds it
  std::vector<std::string> plan_keys;   // keys that the document's `plan` has
  std::optional<GroupedRequest> use_of_groups;  // how the plan uses unlike groups, if stated
  PlannerKeys space;
  std::optional<Measured> measured;
  RunLength run;
  Reliability reliability;
  Checkpointing checkpoint;
  StepConditions simulation;
  std::optional<double> carbon_intensity;  // g of CO2 a joule
  std::vector<std::string> assumptions;    // what an imported model's config did not say
  std::string job_text;  // `model`, `cluster`, `training` as written; equal for the same job
};

// Reads one document. A `-` does not mean standard input here.
Expected<Scenario> read_scenario(const std::filesystem::path& file);

// The same from text; relative paths start from the working folder, and errors call it `name`.
Expected<Scenario> parse_scenario(std::string_view text, const std::string& name);

// Fails with groups of unlike nodes: for commands that cannot handle them.
Expected<void> check_like_nodes(const Scenario& scenario);

// A validation file: a JSON array of scenarios (or one scenario), in order.
Expected<std::vector<Scenario>> read_scenarios(const std::filesystem::path& file);

// The measured step time, converted from the form in which the source gave it (tokens/s, TFLOP/s,
// MFU).
std::optional<Seconds> measured_step_time(const Scenario& scenario);

// The document `file` with a plan for its groups of unlike nodes: keys `plan` and `use_of_groups`.
// If the plan uses one group alone, that group becomes the cluster and the scenario has like nodes.
Expected<std::string> scenario_with_plan(const std::filesystem::path& file, const GroupedPlan& plan,
                                         const std::filesystem::path& destination);

// The document `file` with `plan` filled in, as `trainyard plan --out` writes it and every other
// command reads it. The order of keys stays. Relative references are rewritten for a document at
// `destination` (empty: the original's folder).
Expected<std::string> scenario_with_plan(const std::filesystem::path& file, const Plan& plan,
                                         const std::filesystem::path& destination = {});

}  // namespace trainyard

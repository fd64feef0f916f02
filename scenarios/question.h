// A scenario that is ready to be priced, and what a document leaves to be decided: the plan with
// its defaults, what the planner may choose, how long a run is.
#pragma once

#include <filesystem>

#include "model/expected.h"
#include "model/job.h"
#include "planner/planner.h"
#include "scenarios/scenario.h"
#include "scenarios/unlike_answer.h"
#include "simulator/life/settings.h"

namespace trainyard {

struct Question {
  Scenario scenario;
  PreparedJob job;
};

// Groups of unlike nodes are refused where only like ones are known.
enum class NodeKinds { alike, any };
Expected<Question> read_question(const std::filesystem::path& file,
                                 NodeKinds nodes = NodeKinds::alike);

// The plan that the scenario asks for, complete, with schedule and recompute `auto` decided.
Expected<Plan> requested_plan(const Scenario& scenario, const PreparedJob& job);

// The planner's options for a scenario: its `planner` section, and the keys of its plan, if it has
// one, that are not searched.
SearchOptions search_options(const Scenario& scenario);

// The settings of a run's life that `run` and the estimate add to the plan's.
Expected<LifeSettings> settings_of_run(const Scenario& scenario, const PreparedJob& job,
                                       const Candidate& candidate);

// Of groups of unlike nodes: the job, what its section, failures and checkpoints make of a search;
// and the settings with the best plans for what is left of a group.
GroupedJob grouped_job(const Scenario& scenario);
GroupSearchOptions group_options(const Scenario& scenario);
Expected<LifeSettings> settings_of_run(const Scenario& scenario, const GroupedJob& job,
                                       const UnlikeAnswer& answer);

}  // namespace trainyard

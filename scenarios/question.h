// A scenario that is ready to be priced, and what remains to be decided from its document: the
// complete plan, what the planner may choose, the length of a run.
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

// Whether groups of unlike nodes are refused or accepted.
enum class NodeKinds { alike, any };
Expected<Question> read_question(const std::filesystem::path& file,
                                 NodeKinds nodes = NodeKinds::alike);

// The scenario's plan, completed, with schedule and recompute `auto` decided.
Expected<Plan> requested_plan(const Scenario& scenario, const PreparedJob& job);

// The planner's options for a scenario: its `planner` section and, if it has a plan, those of the
// plan's keys that are not searched.
SearchOptions search_options(const Scenario& scenario);

// The settings of a run's life: those of the candidate's plan, with the length of the run from the
// scenario and, where the job replans on fewer nodes, the best plans for them.
Expected<LifeSettings> settings_of_run(const Scenario& scenario, const PreparedJob& job,
                                       const Candidate& candidate);

// The same for groups of unlike nodes: the job, the options of its search, and the settings of a
// run's life, with the best plans for the nodes that may be left.
GroupedJob grouped_job(const Scenario& scenario);
GroupSearchOptions group_options(const Scenario& scenario);
// The question of a plan's only group as a cluster of its own, with that plan. Requires: the plan
// uses one group alone.
Question question_of_group(Question question, const GroupedPlan& plan);
Expected<LifeSettings> settings_of_run(const Scenario& scenario, const GroupedJob& job,
                                       const UnlikeAnswer& answer);

}  // namespace trainyard

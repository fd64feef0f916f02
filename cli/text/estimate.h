// An estimate for people: what the job is, how long a step takes and on what, what every stage
// holds, whether it fits, and what would help.
#pragma once

#include <string>

#include "cli/text/layout/style.h"
#include "planner/findings/explain.h"
#include "planner/planner.h"
#include "scenarios/question.h"

namespace trainyard {

// Model, cluster and training, a line each.
std::string job_heading(const Question& question, const Style& style);
// The same without what the sizes of the planner section vary.
std::string sizes_heading(const Question& question, const Style& style);
// Plan, step time with its interval, throughput, utilisation, money.
std::string step_summary(const Question& question, const Candidate& candidate, const Style& style);
// What a step costs: price, energy, and carbon where its intensity is known; no full stop.
std::string money_words(const Scenario& scenario, const Estimate& estimate);
// What schedule `auto` of the scenario became, a line; nothing: it did not ask for it.
std::string found_schedule(const Question& question, const Plan& plan, const Style& style);
std::string breakdown_table(const Estimate& estimate, const Style& style);
// Memory of the fullest stage by kind against the device.
std::string memory_bars(const Estimate& estimate, Bytes capacity, const Style& style);
// Memory by stage; neighbours that look the same share a row.
std::string stage_table(const Estimate& estimate, const Style& style);
std::string verdict(const Estimate& estimate, const Cluster& cluster, const Style& style);
// What a plan that does not fit needs, and what there is; empty: it fits.
std::string misfit_words(const Candidate& candidate, const Cluster& cluster);
// What lies on the hosts of a node, and how much they have.
std::string host_words(Bytes needed, const Cluster& cluster);
// What holds most of the memory of the fullest device.
std::string most_memory(const Estimate& estimate, const Style& style);
struct AdviceOptions {
  bool faster_shown = false;  // beside a plan that is faster
  IsOver is_over;             // no time for what would help
};
// What limits the plan and what would help most.
std::string advice(const Question& question, const Candidate& candidate, const Style& style,
                   const AdviceOptions& options = {});

// All of it.
std::string estimate_report(const Question& question, const Candidate& candidate,
                            const Style& style, const AdviceOptions& options);

}  // namespace trainyard

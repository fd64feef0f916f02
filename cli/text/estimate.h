// An estimate as text: the job, how long a step takes and why, the memory of each stage, whether
// the plan fits, and what would help.
#pragma once

#include <string>

#include "cli/text/layout/style.h"
#include "planner/findings/explain.h"
#include "planner/planner.h"
#include "scenarios/question.h"

namespace trainyard {

// Model, cluster and training, a line each.
std::string job_heading(const Question& question, const Style& style);
// The same without the sizes that the planner section varies.
std::string sizes_heading(const Question& question, const Style& style);
// Plan, step time with its interval, throughput, utilisation, money.
std::string step_summary(const Question& question, const Candidate& candidate, const Style& style);
// Price, energy and, where its intensity is known, carbon of a step; without a full stop.
std::string money_words(const Scenario& scenario, const Estimate& estimate);
// A line with the schedule that `auto` of the scenario became; empty: it did not ask for it.
std::string found_schedule(const Question& question, const Plan& plan, const Style& style);
std::string breakdown_table(const Estimate& estimate, const Style& style);
// Memory of the fullest stage by kind, beside that of the device.
std::string memory_bars(const Estimate& estimate, Bytes capacity, const Style& style);
// Memory of each stage; neighbours that print the same share a row.
std::string stage_table(const Estimate& estimate, const Style& style);
std::string verdict(const Estimate& estimate, const Cluster& cluster, const Style& style);
// How much memory the plan needs and how much there is; empty: it fits.
std::string misfit_words(const Candidate& candidate, const Cluster& cluster);
// Memory that the plan needs on the hosts of a node, and how much they have.
std::string host_words(Bytes needed, const Cluster& cluster);
// What holds most of the memory of the fullest device.
std::string most_memory(const Estimate& estimate, const Style& style);
struct AdviceOptions {
  bool faster_shown = false;  // a faster plan is shown beside this one
  IsOver is_over;             // whether the time for finding what would help is over
};
// What limits the plan and what would help most.
std::string advice(const Question& question, const Candidate& candidate, const Style& style,
                   const AdviceOptions& options = {});

// The whole report.
std::string estimate_report(const Question& question, const Candidate& candidate,
                            const Style& style, const AdviceOptions& options);

}  // namespace trainyard

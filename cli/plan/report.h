// The report of `trainyard plan`: the best plans side by side, the first one in detail, why the
// others lost, and how much of the space was searched.
#pragma once

#include <string>
#include <string_view>

#include "cli/plan/table.h"
#include "cli/text/layout/style.h"
#include "planner/findings/findings.h"
#include "planner/planner.h"
#include "scenarios/question.h"

namespace trainyard {

struct PlanAnswer {
  SearchResult result;
  PlanFindings findings;
  PlanOrder order;
  std::size_t top = 5;  // number of plans compared with the first
  // plans of a Pareto front that are not shown because they look like another one
  std::size_t alike = 0;
  Seconds wall_time;
};

// The parts of the step that differ most: "pipeline communication +1.2 s, the bubble -0.3 s".
std::string difference_words(const std::vector<PartDifference>& differences);

// Why a baseline (planner/findings/baseline.h) is not legal; no full stop.
std::string illegal_words(std::string_view baseline, const Error& error, const Stack& stack);

// Cost of training: "0.52 device-hours a million tokens".
std::string device_hours_words(double device_seconds_per_token);

std::string plan_report(const Question& question, const PlanAnswer& answer, const Style& style);

}  // namespace trainyard

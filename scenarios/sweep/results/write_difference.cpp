#include "scenarios/sweep/results/write_difference.h"

#include <fmt/format.h>

#include "model/cost/breakdown.h"
#include "scenarios/plan_value.h"
#include "scenarios/sweep/results/row_json.h"
#include "scenarios/write/result_json.h"

namespace trainyard {
namespace {

Json parsed_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : parse_json(text).value_or(Json(text));
}

Json changes_json(const std::vector<KeyChange>& changes) {
  Json list = Json::array();
  for (const KeyChange& change : changes) {
    list.push_back({{"key", change.key},
                    {"a", parsed_or_null(change.before)},
                    {"b", parsed_or_null(change.after)}});
  }
  return list;
}

Json inputs_json(const std::vector<SweepInput>& inputs) {
  Json list = Json::array();
  for (const SweepInput& input : inputs) {
    list.push_back({{"name", input.name}, {"sha256", input.hash}});
  }
  return list;
}

Json plan_entry(const ComparedAnswer& answer) {
  if (!answer.groups) return plan_value(answer.candidate.plan);
  const auto& [cluster, plan, carbon_intensity] = *answer.groups;
  return grouped_plan_value(cluster, plan, carbon_intensity);
}

Json name_or_null(std::size_t figure) {
  return figure == kFigures ? Json(nullptr) : Json(std::string(kFigureNames[figure]));
}

Json answer_json(const ComparedAnswer& answer) {
  const Candidate& candidate = answer.candidate;
  const Estimate& estimate = candidate.estimate;
  return {
      {"step_time_s", estimate.step_time.value()},
      {"mfu", estimate.mfu},
      {"peak_memory_bytes", estimate.peak_memory.value()},
      {"feasible", estimate.feasible},
      {"cost_per_step_usd", number_or_null(estimate.cost_per_step)},
      {"energy_per_step_joule", number_or_null(estimate.energy_per_step)},
      {"carbon_per_step_g", answer.carbon_per_step ? Json(*answer.carbon_per_step) : Json(nullptr)},
      {"goodput", answer.goodput},
      {"devices", candidate.plan.devices()},
      {"plan", plan_entry(answer)}};
}

Json parts_json(const Breakdown& before, const Breakdown& after) {
  Json parts = Json::array();
  for (const BreakdownPart& part : breakdown_parts()) {
    const double a = (before.*part.time).value();
    const double b = (after.*part.time).value();
    parts.push_back(
        {{"part", fmt::format("{}_s", part.key)}, {"a", a}, {"b", b}, {"change", b - a}});
  }
  return parts;
}

}  // namespace

std::string scenario_difference_json(const std::vector<KeyChange>& changes,
                                     const ComparedAnswer& before, const ComparedAnswer& after) {
  Json parts = nullptr;
  if (!before.groups && !after.groups) {
    parts = parts_json(before.candidate.estimate.breakdown, after.candidate.estimate.breakdown);
  }
  return text_of(Json{{"trainyard", "diff/1"},
                      {"changes", changes_json(changes)},
                      {"a", answer_json(before)},
                      {"b", answer_json(after)},
                      {"parts", std::move(parts)}});
}

std::string result_difference_json(const ResultDifference& difference) {
  Json largest = Json::array();
  for (const MovedPoint& moved : difference.largest) {
    largest.push_back({{"a", row_value(moved.before)},
                       {"b", row_value(moved.after)},
                       {"step_time_change", moved.step_time_change()},
                       {"largest_part", name_or_null(moved.largest_part())},
                       {"largest_figure", name_or_null(moved.largest_figure())}});
  }
  return text_of(Json{{"trainyard", "diff/1"},
                      {"changes", changes_json(difference.documents)},
                      {"inputs_a", inputs_json(difference.inputs_before)},
                      {"inputs_b", inputs_json(difference.inputs_after)},
                      {"same", difference.same},
                      {"moved", difference.moved},
                      {"only_a", difference.only_before},
                      {"only_b", difference.only_after},
                      {"fits_no_more", difference.fits_no_more},
                      {"fits_now", difference.fits_now},
                      {"largest", std::move(largest)}});
}

}  // namespace trainyard

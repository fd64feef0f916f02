#include "cli/plan/groups_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "cli/plan/explain_option.h"
#include "cli/plan/groups_table.h"
#include "cli/plan/report.h"
#include "cli/text/estimate.h"
#include "cli/text/layout/columns.h"
#include "cli/text/plan.h"
#include "planner/findings/explain.h"
#include "planner/heterogeneous/space.h"
#include "planner/heterogeneous/team.h"
#include "planner/heterogeneous/value.h"

namespace trainyard {
namespace {

std::string lost_words(const GroupedPlan& plan, const GroupedPlan& best, Objective objective) {
  const bool is_better = plan.value < best.value;
  if (plan.value == best.value)
    return fmt::format("Its {} is the same.", objective_words(objective));
  if (objective == Objective::step_time && best.value == best.step_time.value()) {
    const Seconds lost = plan.step_time - best.step_time;
    const auto differences = part_differences(best.breakdown, plan.breakdown, best.step_time);
    return fmt::format("It is {} ({} %) {}{}{}.", with_unit(is_better ? -lost : lost),
                       percent(std::abs(lost / best.step_time)), is_better ? "faster" : "slower",
                       differences.empty() ? "" : ": ", difference_words(differences));
  }
  return fmt::format("Its {} is {} % {}.", objective_words(objective),
                     percent(std::abs(plan.value / best.value - 1)),
                     is_better ? "lower" : "higher");
}

// A plan in words. Plans of a front are not compared: none lost to another.
std::string plan_words(const GroupedPlan& plan, const GroupedPlan& best,
                       const GroupedPlans& found) {
  std::string words = plan_line(shown_plan(plan)) + ".";
  if (&plan != &best && !found.second) words += " " + lost_words(plan, best, found.objective);
  if (plan.boundary && *plan.boundary > Seconds(0)) {
    words += fmt::format(" What crosses between the groups shows with {} of the step.",
                         with_unit(*plan.boundary));
  }
  return words;
}

// By how much the best value may be lower, at most.
std::string gap_words(const GroupedPlans& found) {
  if (found.objective == Objective::step_time) {
    return fmt::format(": the best step may be up to {} % lower.", percent(gap_of(found)));
  }
  const std::string_view value = objective_words(found.objective);
  if (found.value_bound <= 0) return fmt::format(". Of the {} no bound is known.", value);
  return fmt::format(". The best {} may be up to {} % lower.", value, percent(gap_of(found)));
}

// The dimensions that a search of one cluster varies, but pipelines and replicas over several
// groups do not.
std::string not_varied_words() {
  std::vector<std::string> fixed;
  for (const auto& [key, value] : only_values(GroupUse::replicas)) {
    const std::string_view whose = key == "expert_parallel" ? " of replicas" : "";
    fixed.push_back(fmt::format("{}{} ({})", key, whose, value));
  }
  return fmt::format(
      " Not varied in a pipeline through several groups and in replicas, which have one value of "
      "them: {}; replicas have even layers, and all stages of a group one recomputation: none, "
      "selective, full, or full of as few layers as fit. As one cluster and alone all of it is "
      "searched.",
      fmt::join(fixed, ", "));
}

std::string search_words(const GroupedPlans& found) {
  const std::string bound =
      fmt::format("All devices at their peak would take {}, and no plan of any kind less",
                  with_unit(found.bound));
  if (found.complete) {
    return fmt::format("these ways were searched to their end. {}.{}", bound, not_varied_words());
  }
  return fmt::format("stopped early: the best so far. {}{}{}", bound, gap_words(found),
                     not_varied_words());
}

std::string_view way_words(GroupUse use) {
  return use == GroupUse::pipeline ? "a pipeline through several groups"
                                   : "replicas on several groups";
}

// Why ways to use the groups have no plan; `by` ends a way's reason with what rules it out.
std::vector<std::string> reasons_of(const Scenario& scenario, const GroupedPlans& found,
                                    std::string_view by) {
  const std::vector<std::size_t> idle = groups_without_precision(scenario);
  std::vector<std::string> reasons;
  for (const LeftOutWay& way : found.left_out) {
    if (way.group && std::ranges::find(idle, *way.group) != idle.end()) continue;
    const std::string reason = reason_of(scenario, way);
    reasons.push_back(way.group ? reason : fmt::format("{}: {}{}", way_words(way.use), reason, by));
  }
  return reasons;
}

std::string ways_left_out(const Scenario& scenario, const GroupedPlans& found, const Style& style) {
  std::string text;
  for (const std::string& reason : reasons_of(scenario, found, " by the planner section")) {
    text += paragraph("left out", reason + ".", style);
  }
  return text;
}

// Compares the best plan with the pinned keys to the best of all, or says why there is none.
// `winner`: null where no plan fits, which may be so with the keys too.
std::string explained_words(const Scenario& scenario, const GroupedExplained& explained,
                            const GroupedPlan* winner) {
  const GroupedPlans& found = explained.found;
  const std::vector<GroupedPlan> plans = in_order(found);
  if (plans.empty() && !found.complete) return "none was found before the search was stopped.";
  if (plans.empty()) {
    const std::vector<std::string> reasons = reasons_of(scenario, found, "");
    return reasons.empty() ? "no plan fits."
                           : fmt::format("no plan: {}.", fmt::join(reasons, "; "));
  }
  const GroupedPlan& best = plans.front();
  std::string words = fmt::format("at its best {}, {}.", use_words(best), plan_line(best.plan));
  if (winner == nullptr) return words;
  if (best.value == winner->value) return "so has the best plan.";
  return fmt::format("{} {}", words,
                     best.value > winner->value
                         ? lost_words(best, *winner, found.objective)
                         : "That is better than the best above: layers are moved from stage to "
                           "stage under the best degrees only.");
}

std::string closest_words(const Scenario& scenario, const GroupedPlan& closest) {
  return fmt::format("{}, {}: {}.", use_words(closest), plan_line(shown_plan(closest)),
                     misfit_words(scenario, closest));
}

std::string way_out_words(const GroupedWayOut& way) {
  return fmt::format("{}: {}, {}, {} a step, {}.", way.change, use_words(way.plan),
                     plan_line(shown_plan(way.plan)), with_unit(way.plan.step_time),
                     device_hours_words(way.device_seconds_per_token));
}

std::string limit_words(const GroupedPlan& best) {
  const Limits found = limits(best.breakdown);
  const auto share = [&best](const BreakdownPart* part) {
    return percent(best.breakdown.*part->time / best.step_time);
  };
  std::string words =
      fmt::format("Limited by {} ({} % of the step)", found.largest->label, share(found.largest));
  if (found.largest_overhead != nullptr && found.largest_overhead != found.largest) {
    words += fmt::format("; the largest overhead is {} ({} %)", found.largest_overhead->label,
                         share(found.largest_overhead));
  }
  return words + ".";
}

std::string explained_paragraph(const Scenario& scenario,
                                const std::optional<GroupedExplained>& explained,
                                const GroupedPlan* winner, const Style& style) {
  if (!explained) return "";
  return paragraph("explained",
                   fmt::format("{}: {}", pinned_words(explained->pinned),
                               explained_words(scenario, *explained, winner)),
                   style);
}

// Why no plan can use some groups.
std::string left_out(const Scenario& scenario) {
  std::vector<std::string_view> devices;
  for (const std::size_t g : groups_without_precision(scenario)) {
    const std::string_view name = scenario.unlike->groups[g].device.name;
    if (std::ranges::find(devices, name) == devices.end()) devices.push_back(name);
  }
  if (devices.empty()) return "";
  return fmt::format("{}: no plan can use them, for they do not compute in {}.",
                     fmt::join(devices, ", "), scenario.job.training.precision.name);
}

// What was written to the file; a group alone is written as a cluster of its own.
std::string written_words(const Scenario& scenario, const GroupedPlan& plan,
                          const std::string& file) {
  if (plan.use != GroupUse::alone) return fmt::format("{}: plan 1.", file);
  return fmt::format("{}: plan 1, with {} as its only nodes.", file,
                     scenario.unlike->groups[plan.order.front()].name);
}

std::string list_heading(const GroupedPlans& found, bool robust) {
  std::string text = "the best plan of every way to use the groups";
  if (found.second) {
    text = fmt::format("the plans that none found beats in both {} and {}",
                       objective_words(found.objective), objective_words(*found.second));
  } else if (found.objective != Objective::step_time) {
    text += fmt::format(", by {}", objective_words(found.objective));
  }
  return robust ? text + ", at the high end of their intervals" : text;
}

std::vector<Objective> objectives_of(const GroupedPlans& found) {
  std::vector<Objective> objectives = {found.objective};
  if (found.second && *found.second != found.objective) objectives.push_back(*found.second);
  return objectives;
}

// The closest plan of each way to use the groups, and what would let a plan fit.
std::string nothing_fits(const Scenario& scenario, const GroupAnswer& answer, const Style& style) {
  std::string text =
      style.bad("no plan fits") + ", neither through several groups nor on one of them\n";
  for (const GroupedPlan& closest : answer.found.closest) {
    const bool is_first = &closest == &answer.found.closest.front();
    text +=
        paragraph(is_first ? "the closest" : "farther", closest_words(scenario, closest), style);
  }
  for (const GroupedWayOut& way : answer.findings.ways_out) {
    text += paragraph("a way out", way_out_words(way), style);
  }
  return text;
}

// A baseline, compared with the winner if there is one.
std::string baseline_words(const GroupedPlans& found, const GroupedPlan* winner,
                           const GroupedPlanBaseline& baseline) {
  if (!baseline.plan) return baseline.reason + ".";
  const GroupedPlan& plan = *baseline.plan;
  std::string words = fmt::format("{}, {}.", use_words(plan), plan_line(shown_plan(plan)));
  if (!baseline.reason.empty()) return fmt::format("{} It {}.", words, baseline.reason);
  if (winner == nullptr) return words;
  if (same_plan(plan, *winner)) return words + " It is this very plan.";
  return fmt::format("{} {}", words, lost_words(plan, *winner, found.objective));
}

// "0.80 % (a100 0.20, h100 0.60)"
std::string gain_words(const Scenario& scenario, const GroupedMarginalValue& value) {
  const auto share = [](double gained) { return fmt::format("{:.2f}", 100 * gained); };
  std::string words = fmt::format("{} {} %", value.resource, share(value.gained));
  std::vector<std::string> groups;
  for (std::size_t g = 0; g < value.gained_by_group.size(); ++g) {
    groups.push_back(fmt::format("{} {}", scenario.unlike->groups[g].device.name,
                                 share(value.gained_by_group[g])));
  }
  if (!value.same_plan) groups.emplace_back("another plan");
  if (!groups.empty()) words += fmt::format(" ({})", fmt::join(groups, ", "));
  return words;
}

std::string marginal_words(const Scenario& scenario, const GroupAnswer& answer) {
  std::vector<std::string> words;
  for (const GroupedMarginalValue& value : answer.findings.marginal) {
    words.push_back(gain_words(scenario, value));
  }
  return fmt::format(
      "of a resource on all groups (in brackets: on one alone) lowers the {} of the best plan, "
      "found anew, by: {}.",
      objective_words(answer.found.objective), fmt::join(words, ", "));
}

// The paragraphs that follow the plans, or the message that none fits.
std::string findings_text(const Scenario& scenario, const GroupAnswer& answer, const Style& style) {
  const GroupedFindings& findings = answer.findings;
  const GroupedPlan* winner = answer.plans.empty() ? nullptr : answer.plans.data();
  std::string text = explained_paragraph(scenario, findings.explained, winner, style);
  for (const GroupedPlanBaseline& baseline : findings.baselines) {
    text += paragraph(baseline.name, baseline_words(answer.found, winner, baseline), style);
  }
  if (!findings.marginal.empty()) {
    text += paragraph("1 % more", marginal_words(scenario, answer), style);
  }
  if (!findings.written.empty()) {
    text +=
        paragraph("wrote", written_words(scenario, answer.plans.front(), findings.written), style);
  }
  const std::string idle = left_out(scenario);
  if (!idle.empty()) text += paragraph("left out", idle, style);
  text += ways_left_out(scenario, answer.found, style);
  for (const std::string& note : findings.notes) text += paragraph("note", note + ".", style);
  return text + paragraph("search", search_words(answer.found), style);
}

std::string plan_paragraphs(const GroupAnswer& answer, const Style& style) {
  const auto& [plans, found, findings, robust, alike] = answer;
  std::string text;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    text +=
        paragraph(fmt::format("plan {}", i + 1), plan_words(plans[i], plans.front(), found), style);
  }
  if (alike == 0) return text;
  return text + paragraph("left out",
                          fmt::format("{} of the front, within 1 % of the {} of one before them.",
                                      alike, objective_words(*found.second)),
                          style);
}

std::string interval_words(const GroupedPlan& plan) {
  return fmt::format("{} (80 % interval {} – {}, the widest of the groups at work).",
                     with_unit(plan.step_time), with_unit(plan.step_time_low),
                     with_unit(plan.step_time_high));
}

std::string verdict_of(const Scenario& scenario, const GroupedPlan& plan, const Style& style) {
  if (plan.feasible) return "";
  std::vector<std::string> full;
  for (const std::size_t g : plan.order) {
    const Cluster& group = scenario.unlike->groups[g];
    const Bytes required = plan.shares[g].peak_memory / group.memory_share;
    if (required <= group.device.memory) continue;
    full.push_back(fmt::format("{} need {} and have {}", group.device.name, with_unit(required),
                               with_unit(group.device.memory)));
  }
  return paragraph("memory",
                   style.bad("does not fit") + fmt::format(": {}.", fmt::join(full, "; ")), style);
}

}  // namespace

std::string misfit_words(const Scenario& scenario, const GroupedPlan& plan) {
  std::vector<std::string> full;
  for (const std::size_t g : plan.order) {
    const GroupShare& share = plan.shares[g];
    const Cluster& group = scenario.unlike->groups[g];
    const Bytes required = share.peak_memory / group.memory_share;
    if (required <= group.device.memory) continue;
    full.push_back(fmt::format("stage {} on {} needs {} and the device has {}, {} too little",
                               share.fullest_stage, group.name, with_unit(required),
                               with_unit(group.device.memory),
                               with_unit(required - group.device.memory)));
  }
  return full.empty() ? "what lies on the hosts does not fit them"
                      : fmt::format("{}", fmt::join(full, "; "));
}

std::string groups_report(const Question& question, const GroupAnswer& answer, const Style& style) {
  const Scenario& scenario = question.scenario;
  const GroupedPlans& found = answer.found;
  std::string text = job_heading(question, style) + "\n";
  if (answer.plans.empty()) {
    return text + nothing_fits(scenario, answer, style) + findings_text(scenario, answer, style);
  }
  text += list_heading(found, answer.robust) + "\n" +
          groups_table(scenario, answer.plans, style, {objectives_of(found), answer.robust}) +
          "\n" + plan_paragraphs(answer, style) + findings_text(scenario, answer, style);
  if (found.second || found.objective == Objective::memory) return text;
  return text + style.strong(wrap(limit_words(answer.plans.front())));
}

std::string grouped_estimate_report(const Question& question, const UnlikeAnswer& answer,
                                    const Style& style) {
  const Scenario& scenario = question.scenario;
  const GroupedPlan& plan = answer.best;
  return job_heading(question, style) + "\n" + groups_table(scenario, {plan}, style) + "\n" +
         paragraph("plan", plan_words(plan, plan, {}), style) +
         paragraph("step", interval_words(plan), style) +
         paragraph("cost", money_words(scenario, answer.candidate.estimate) + ".", style) +
         verdict_of(scenario, plan, style);
}

}  // namespace trainyard

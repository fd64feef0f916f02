#include "cli/plan/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "cli/interrupt.h"
#include "cli/plan/explain_option.h"
#include "cli/plan/groups_csv.h"
#include "cli/plan/groups_report.h"
#include "cli/plan/report.h"
#include "cli/progress.h"
#include "planner/findings/refusal.h"
#include "planner/heterogeneous/baseline.h"
#include "planner/heterogeneous/ways_out.h"
#include "scenarios/json/output_file.h"
#include "scenarios/write/groups.h"

namespace trainyard {
namespace {

// Runs `work` with search options that show progress and stop when `flag` is set.
template <typename Work>
auto with_progress(std::string what, const std::atomic<bool>* flag, GroupSearchOptions options,
                   const Work& work) {
  const InterruptGuard guard;
  Progress progress(std::move(what));
  options.interrupted = flag;
  options.progress = [&progress](double fraction) { progress.show(fraction); };
  return work(options);
}

}  // namespace

Expected<UnlikeAnswer> search_groups(const Scenario& scenario) {
  return with_progress("searching", interrupt_flag(), group_options(scenario),
                       [&scenario](const GroupSearchOptions& options) {
                         return answer_of_groups(grouped_job(scenario), scenario, options);
                       });
}

namespace {

GroupSearchOptions asked_options(const Scenario& scenario, const GroupAnswerOptions& options) {
  GroupSearchOptions asked = group_options(scenario);
  asked.objective = options.objective;
  asked.second = options.second;
  asked.valuation.robust = options.robust;
  asked.time_limit = options.time_limit;
  return asked;
}

Expected<void> write_best(const std::filesystem::path& file, const GroupAnswerOptions& options,
                          const std::vector<GroupedPlan>& plans, GroupAnswer& answer) {
  if (options.out.empty()) return {};
  if (plans.empty()) {
    answer.findings.notes.push_back(
        fmt::format("--out: no plan fits, so that {} was not written", options.out.string()));
    return {};
  }
  answer.findings.written = options.out.string();
  return scenario_with_plan(file, plans.front(), options.out)
      .and_then([&](const std::string& text) { return write_file(options.out, text); });
}

// The plans of a front that look different; `alike` counts the others.
std::vector<GroupedPlan> distinct_plans(const std::vector<GroupedPlan>& front, std::size_t& alike) {
  constexpr double kGain = 0.01;
  std::vector<GroupedPlan> distinct;
  for (const GroupedPlan& plan : front) {
    const bool gains =
        distinct.empty() || plan.second_value <= (1 - kGain) * distinct.back().second_value;
    if (gains) distinct.push_back(plan);
  }
  alike = front.size() - distinct.size();
  return distinct;
}

// The plans to show: of a front every plan, else the best few.
std::vector<GroupedPlan> shown_plans(const std::vector<GroupedPlan>& plans,
                                     const GroupAnswerOptions& options, std::size_t& alike) {
  if (options.second) {
    return options.format == Format::text ? distinct_plans(plans, alike) : plans;
  }
  const auto shown = std::min(plans.size(), static_cast<std::size_t>(options.top));
  return {plans.begin(), plans.begin() + static_cast<std::ptrdiff_t>(shown)};
}

GroupedPlanBaseline baseline_of(const Scenario& scenario, GroupedBaseline&& found) {
  auto& [name, plan] = found;
  if (!plan) {
    return {name, std::nullopt, illegal_words(name, plan.error(), scenario.job.training.stack)};
  }
  std::string reason;
  if (!plan->feasible) reason = "does not fit: " + misfit_words(scenario, *plan);
  return {name, *std::move(plan), std::move(reason)};
}

// Adds the results of further searches to an answer; none after a search that was stopped, whose
// time is over.
void add_searches(const Scenario& scenario, const GroupSearchOptions& asked,
                  const std::vector<GroupedPlan>& plans, GroupAnswer& answer) {
  const GroupedJob job = grouped_job(scenario);
  GroupedFindings& findings = answer.findings;
  if (!answer.found.complete) {
    findings.notes.emplace_back(
        "the search was stopped, so that what resources are worth was not looked for");
    return;
  }
  if (plans.empty()) {
    findings.ways_out =
        with_progress("looking for ways out", stop_flag(), asked,
                      [&job](const auto& how) { return ways_out_of_groups(job, how); });
  } else {
    findings.marginal =
        with_progress("valuing resources", stop_flag(), asked,
                      [&](const auto& how) { return marginal_values(job, how, plans.front()); });
  }
  if (was_stopped()) {
    findings.notes.emplace_back(fmt::format(
        "the search was complete, but was stopped before all was added to it: {}",
        plans.empty() ? "ways out may be missing" : "what resources are worth is missing"));
  }
}

// Why no way to use the groups has a legal plan: what a group alone is refused for. Nothing: a plan
// is legal, or the search was not complete.
std::optional<Error> why_none_of_groups(const GroupedJob& job, const GroupSearchOptions& asked,
                                        const GroupedPlans& found) {
  const auto left_out_alone = std::ranges::count(found.left_out, GroupUse::alone, &LeftOutWay::use);
  const bool none = found.complete && found.closest.empty() && in_order(found).empty() &&
                    std::cmp_equal(left_out_alone, job.cluster.groups.size());
  if (!none) return std::nullopt;
  PlanRequest base;
  base.layers_per_stage = asked.layers_per_stage;
  for (const Cluster& group : job.cluster.groups) {
    const PreparedJob alone = prepare(Job{job.model, group, job.training});
    if (auto why = why_none_is_legal(alone, asked.space, base)) return why;
  }
  return std::nullopt;
}

// Prints one line for people; in JSON and CSV also the usual document.
int print_none_legal(const std::filesystem::path& file, const Scenario& scenario, const Error& why,
                     Format format, GroupAnswer& answer) {
  const std::string line = none_is_legal(why);
  fail({file.string(), line});
  if (format == Format::csv) {
    return print(plan_groups_csv(scenario, {}, answer.found, answer.robust), kAnswerIsNo);
  }
  if (format == Format::text) return kAnswerIsNo;
  answer.findings.notes.push_back(line);
  return print(groups_json(scenario, {}, answer.found, answer.findings), kAnswerIsNo);
}

// Adds findings until Ctrl-C or the end of the whole time limit.
void add_findings(const Scenario& scenario, const GroupAnswerOptions& options,
                  const std::vector<GroupedPlan>& plans, GroupAnswer& answer) {
  const InterruptGuard guard;
  std::optional<AddedTime> time;
  if (options.time_limit > Seconds(0)) time.emplace(options.time_limit - elapsed());
  GroupSearchOptions asked = asked_options(scenario, options);
  asked.time_limit = Seconds(0);
  for (GroupedBaseline& found : baselines_of(grouped_job(scenario), asked)) {
    answer.findings.baselines.push_back(baseline_of(scenario, std::move(found)));
  }
  add_searches(scenario, asked, plans, answer);
  if (options.pinned.empty()) return;
  const PlannerKeys keys = pinned_keys(scenario.space, options.pinned);
  asked.space = keys;
  asked.layers_per_stage = keys.layers_per_stage;
  asked.second.reset();
  answer.findings.explained = {options.pinned,
                               with_progress("searching", stop_flag(), asked, [&](const auto& how) {
                                 return plan_groups(grouped_job(scenario), how);
                               })};
}

}  // namespace

int answer_for_groups(const std::filesystem::path& file, const Question& question,
                      const GroupAnswerOptions& options) {
  const Scenario& scenario = question.scenario;
  const GroupSearchOptions asked = asked_options(scenario, options);
  GroupAnswer answer{.found = with_progress("searching", interrupt_flag(), asked,
                                            [&scenario](const GroupSearchOptions& how) {
                                              return plan_groups(grouped_job(scenario), how);
                                            }),
                     .robust = options.robust};
  const std::vector<GroupedPlan> plans = in_order(answer.found);
  if (plans.empty() && !answer.found.complete) {
    return fail({scenario.name, "stopped before any plan that fits was found"}, kInterrupted);
  }
  if (const auto why = why_none_of_groups(grouped_job(scenario), asked, answer.found)) {
    return print_none_legal(file, scenario, *why, options.format, answer);
  }
  if (const auto written = write_best(file, options, plans, answer); !written) {
    return fail(written.error(), kMachineFailed);
  }
  answer.plans = shown_plans(plans, options, answer.alike);
  const int status = plans.empty() ? kAnswerIsNo : kDone;
  if (options.format == Format::csv) {
    for (const std::string& note : answer.findings.notes) fail({"", note});
    return print(plan_groups_csv(scenario, answer.plans, answer.found, answer.robust), status);
  }
  add_findings(scenario, options, plans, answer);
  if (options.format == Format::json) {
    return print(groups_json(scenario, answer.plans, answer.found, answer.findings), status);
  }
  return print(groups_report(question, answer, style_for(stdout)), status);
}

int estimate_of_groups(const std::filesystem::path& file, const Question& question, Format format) {
  const Scenario& scenario = question.scenario;
  const auto answer = search_groups(scenario);
  if (!answer) return fail(in_file(file, answer.error()));
  const GroupedPlan& plan = answer->best;
  const int status = plan.feasible ? kDone : kAnswerIsNo;
  if (format == Format::csv) return print(estimate_groups_csv(scenario, plan), status);
  if (format == Format::json) return print(grouped_estimate_json(scenario, *answer), status);
  return print(grouped_estimate_report(question, *answer, style_for(stdout)), status);
}

}  // namespace trainyard

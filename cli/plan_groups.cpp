#include "cli/plan_groups.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "cli/estimate_text.h"
#include "cli/explain_option.h"
#include "cli/plan_groups_csv.h"
#include "cli/plan_report.h"
#include "cli/plan_search.h"
#include "cli/plan_table.h"
#include "cli/plan_text.h"
#include "cli/progress.h"
#include "cli/style.h"
#include "cli/table.h"
#include "cli/text.h"
#include "planner/explain.h"
#include "planner/unlike_space.h"
#include "planner/unlike_value.h"
#include "scenarios/output.h"
#include "scenarios/write_groups.h"

namespace trainyard {
namespace {

std::string use_words(const GroupedPlan& plan) {
  switch (plan.use) {
    case GroupUse::pipeline:
      return plan.plan.layers_per_stage.empty() ? "even stages on each" : "stages on each";
    case GroupUse::replicas:
      return "replicas on each";
    case GroupUse::together:
      return "as one cluster";
    case GroupUse::alone:
      break;
  }
  return "one alone";
}

std::string tokens_cell(const Training& training, const GroupedPlan& plan) {
  const auto tokens = static_cast<double>(training.global_batch * training.sequence_length);
  return number(tokens / plan.step_time.value());
}

std::optional<Column> value_column(Objective objective, bool robust) {
  switch (objective) {
    case Objective::step_time:
      if (robust) return Column{"robust", "s"};
      break;
    case Objective::cost:
      return Column{"cost", "USD/step"};
    case Objective::energy:
      return Column{"energy", "kWh/step"};
    case Objective::memory:
      return Column{"fullest", "%"};
    case Objective::goodput:
      return Column{"goodput", "%"};
  }
  return std::nullopt;
}

// In the unit of the column.
std::string value_cell(Objective objective, const GroupedPlan& plan, double value) {
  constexpr double kJoulesAKilowattHour = 3.6e6;
  if (objective == Objective::step_time) return fmt::format("{:.3f}", value);
  if (objective == Objective::cost) return number(plan.cost_per_step->value());
  if (objective == Objective::energy) {
    return number(plan.energy_per_step->value() / kJoulesAKilowattHour);
  }
  return percent(objective == Objective::memory ? plan.fullness : plan.goodput.value_or(1));
}

std::vector<Column> figure_columns(const GroupValues& values) {
  std::vector<Column> columns;
  for (const Objective objective : values.objectives) {
    if (const auto value = value_column(objective, values.robust)) columns.push_back(*value);
  }
  // Which follows the step, and would make a row too long beside others.
  if (columns.empty()) columns.push_back({"tokens", "/s"});
  return columns;
}

std::vector<std::string> figure_cells(const Training& training, const GroupedPlan& plan,
                                      const GroupValues& values) {
  std::vector<std::string> cells;
  for (std::size_t i = 0; i < values.objectives.size(); ++i) {
    const Objective objective = values.objectives[i];
    if (!value_column(objective, values.robust)) continue;
    cells.push_back(value_cell(objective, plan, i == 0 ? plan.value : plan.second_value));
  }
  if (cells.empty()) cells.push_back(tokens_cell(training, plan));
  return cells;
}

void add_rows(const Scenario& scenario, const GroupedPlan& plan, std::size_t number,
              const GroupValues& values, Table& table) {
  const UnlikeCluster& cluster = *scenario.unlike;
  bool is_first = true;
  for (const std::size_t g : plan.order) {
    const GroupShare& share = plan.shares[g];
    std::vector<std::string> row = {fmt::format("{}", number), use_words(plan),
                                    fmt::format("{:.3f}", plan.step_time.value())};
    std::ranges::move(figure_cells(scenario.job.training, plan, values), std::back_inserter(row));
    if (!is_first) std::ranges::fill(row, "");
    for (std::string cell :
         {fmt::format("{} {}", count(cluster.groups[g].devices()), cluster.groups[g].device.name),
          fmt::format("{}", share.stages), fmt::format("{}", share.layers),
          fmt::format("{}", share.replicas), fmt::format("{}", share.microbatches),
          fmt::format("{:.1f}", share.peak_memory.value() / kGib)}) {
      row.push_back(std::move(cell));
    }
    table.add_row(std::move(row));
    is_first = false;
  }
}

std::string lost_words(const GroupedPlan& plan, const GroupedPlan& best, Objective objective) {
  if (objective == Objective::step_time && best.value == best.step_time.value()) {
    const Seconds lost = plan.step_time - best.step_time;
    const auto differences = part_differences(best.breakdown, plan.breakdown, best.step_time);
    return fmt::format("It is {} ({} %) slower: {}.", with_unit(lost),
                       percent(lost / best.step_time), difference_words(differences));
  }
  return fmt::format("Its {} is {} % higher.", objective_words(objective),
                     percent(plan.value / best.value - 1));
}

// With the replicas of all groups, and their number where states are sharded over all of a group's.
Plan shown_plan(const GroupedPlan& found) {
  Plan plan = plan_of_all(found);
  const Plan& own = found.plan;
  const bool over_all = own.sharding_group == own.data_parallel * own.context_parallel;
  if (over_all) plan.sharding_group = plan.data_parallel * plan.context_parallel;
  return plan;
}

// Of a front none lost to another.
std::string plan_words(const GroupedPlan& plan, const GroupedPlan& best,
                       const GroupedPlans& found) {
  std::string words = plan_line(shown_plan(plan)) + ".";
  if (&plan != &best && !found.second) words += " " + lost_words(plan, best, found.objective);
  if (plan.boundary > Seconds(0)) {
    words += fmt::format(" What crosses between the groups shows with {} of the step.",
                         with_unit(plan.boundary));
  }
  return words;
}

// How much lower the best may be, at most.
std::string gap_words(const GroupedPlans& found) {
  if (found.objective == Objective::step_time) {
    return fmt::format(": the best step may be up to {} % lower.", percent(gap_of(found)));
  }
  const std::string_view value = objective_words(found.objective);
  if (found.value_bound <= 0) return fmt::format(". Of the {} no bound is known.", value);
  return fmt::format(". The best {} may be up to {} % lower.", value, percent(gap_of(found)));
}

// What a search of one cluster varies and the ways that deal the work out do not.
std::string not_varied_words() {
  std::vector<std::string> fixed;
  for (const auto& [key, value] : only_values(GroupUse::replicas)) {
    const std::string_view whose = key == "expert_parallel" ? " of replicas" : "";
    fixed.push_back(fmt::format("{}{} ({})", key, whose, value));
  }
  return fmt::format(
      " Not varied in a pipeline through several groups and in replicas, which have one value of "
      "them: {}; replicas have even layers, and one recomputation of none, selective and full on "
      "all of a group's stages. As one cluster and alone all of it is searched.",
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

// Of the ways that nothing is left of, why; and what does not allow them.
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

// The best plan with the pinned keys beside the best of all, or why there is none. `winner`: null
// where nothing fits, which may be the same with the keys.
std::string explained_words(const Scenario& scenario, const ExplainedGroups& explained,
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

// The device that is the fullest of a group whose own it is not: the stage, and by how much.
std::string misfit_words(const Scenario& scenario, const GroupedPlan& plan) {
  std::vector<std::string> full;
  for (const std::size_t g : plan.order) {
    const GroupShare& share = plan.shares[g];
    const Cluster& group = scenario.unlike->groups[g];
    if (share.peak_memory <= group.device.memory) continue;
    full.push_back(fmt::format("stage {} on {} needs {} and the device has {}, {} too little",
                               share.fullest_stage, group.name, with_unit(share.peak_memory),
                               with_unit(group.device.memory),
                               with_unit(share.peak_memory - group.device.memory)));
  }
  return full.empty() ? "what lies on the hosts does not fit them"
                      : fmt::format("{}", fmt::join(full, "; "));
}

std::string closest_words(const Scenario& scenario, const GroupedPlan& closest) {
  return fmt::format("{}, {}: {}.", use_words(closest), plan_line(shown_plan(closest)),
                     misfit_words(scenario, closest));
}

std::string way_out_words(const GroupedWayOut& way) {
  constexpr double kDeviceHoursAMillion = 1e6 / 3600;
  return fmt::format("{}: {}, {}, {} a step, {} device-hours a million tokens.", way.change,
                     use_words(way.plan), plan_line(shown_plan(way.plan)),
                     with_unit(way.plan.step_time),
                     number(way.device_seconds_per_token * kDeviceHoursAMillion));
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
                                const std::optional<ExplainedGroups>& explained,
                                const GroupedPlan* winner, const Style& style) {
  if (!explained) return "";
  return paragraph("explained",
                   fmt::format("{}: {}", pinned_words(explained->pinned),
                               explained_words(scenario, *explained, winner)),
                   style);
}

// Of the groups that no plan can use, why.
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

// One group alone is written as a cluster of its own.
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

// What is shown: the plans, those that are asked for beside them, the file that was written.
struct GroupAnswer {
  std::vector<GroupedPlan> plans;
  GroupedPlans found;
  std::optional<ExplainedGroups> explained;
  std::string written;
  bool robust = false;
  std::size_t alike = 0;           // of a front, left out because they look like one that is shown
  std::vector<std::string> notes;  // on options that had nothing to work on
  std::vector<GroupedWayOut> ways_out;  // where nothing fits
};

// The closest of each way, and what would let a plan fit.
std::string nothing_fits(const Scenario& scenario, const GroupAnswer& answer, const Style& style) {
  std::string text =
      style.bad("no plan fits") + ", neither through several groups nor on one of them\n";
  for (const GroupedPlan& closest : answer.found.closest) {
    const bool is_first = &closest == &answer.found.closest.front();
    text +=
        paragraph(is_first ? "the closest" : "farther", closest_words(scenario, closest), style);
  }
  for (const GroupedWayOut& way : answer.ways_out) {
    text += paragraph("a way out", way_out_words(way), style);
  }
  return text;
}

std::string report(const Question& question, const GroupAnswer& answer, const Style& style) {
  const auto& [plans, found, explained, written, robust, alike, notes, ways_out] = answer;
  const std::string heading = job_heading(question, style) + "\n";
  const std::string idle = left_out(question.scenario);
  std::string end = (idle.empty() ? "" : paragraph("left out", idle, style)) +
                    ways_left_out(question.scenario, found, style);
  for (const std::string& note : notes) end += paragraph("note", note + ".", style);
  end += paragraph("search", search_words(found), style);
  if (plans.empty()) {
    return heading + nothing_fits(question.scenario, answer, style) +
           explained_paragraph(question.scenario, explained, nullptr, style) + end;
  }
  std::string text = heading + list_heading(found, robust) + "\n" +
                     groups_table(question.scenario, plans, style, {objectives_of(found), robust}) +
                     "\n";
  for (std::size_t i = 0; i < plans.size(); ++i) {
    text +=
        paragraph(fmt::format("plan {}", i + 1), plan_words(plans[i], plans.front(), found), style);
  }
  if (alike > 0) {
    text += paragraph("left out",
                      fmt::format("{} of the front, within 1 % of the {} of one before them.",
                                  alike, objective_words(*found.second)),
                      style);
  }
  text += explained_paragraph(question.scenario, explained, &plans.front(), style);
  if (!written.empty()) {
    text += paragraph("wrote", written_words(question.scenario, plans.front(), written), style);
  }
  text += end;
  if (found.second || found.objective == Objective::memory) return text;
  return text + style.strong(wrap(limit_words(plans.front())));
}

// Of a front, as many as look different: `alike` counts the others.
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

std::string interval_words(const GroupedPlan& plan) {
  return fmt::format("{} (80 % interval {} – {}, the widest of the groups at work).",
                     with_unit(plan.step_time), with_unit(plan.step_time_low),
                     with_unit(plan.step_time_high));
}

std::string verdict_of(const Scenario& scenario, const GroupedPlan& plan, const Style& style) {
  if (plan.feasible) return "";
  std::vector<std::string> full;
  for (const std::size_t g : plan.order) {
    const Device& device = scenario.unlike->groups[g].device;
    const Bytes peak = plan.shares[g].peak_memory;
    if (peak <= device.memory) continue;
    full.push_back(fmt::format("{} need {} and have {}", device.name, with_unit(peak),
                               with_unit(device.memory)));
  }
  return paragraph("memory",
                   style.bad("does not fit") + fmt::format(": {}.", fmt::join(full, "; ")), style);
}

// `work` with the options of a search that shows its progress.
template <typename Work>
auto with_progress(GroupSearchOptions options, const Work& work) {
  const InterruptGuard guard;
  Progress progress("searching");
  options.interrupted = interrupt_flag();
  options.progress = [&progress](double fraction) { progress.show(fraction); };
  return work(options);
}

}  // namespace

std::string groups_table(const Scenario& scenario, const std::vector<GroupedPlan>& plans,
                         const Style& style, const GroupValues& values) {
  std::vector<Column> columns = {{"#"}, {"use", "", Align::left}, {"step", "s"}};
  std::ranges::move(figure_columns(values), std::back_inserter(columns));
  for (const Column& column :
       {Column{"devices", "", Align::left}, Column{"stages"}, Column{"layers"}, Column{"replicas"},
        Column{"micro-", "batches"}, Column{"memory", "GiB"}}) {
    columns.push_back(column);
  }
  Table table(std::move(columns));
  for (std::size_t i = 0; i < plans.size(); ++i) {
    add_rows(scenario, plans[i], i + 1, values, table);
  }
  return table.render(style);
}

Expected<UnlikeAnswer> search_groups(const Scenario& scenario) {
  return with_progress(group_options(scenario), [&scenario](const GroupSearchOptions& options) {
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
    answer.notes.push_back(
        fmt::format("--out: no plan fits, so that {} was not written", options.out.string()));
    return {};
  }
  answer.written = options.out.string();
  return scenario_with_plan(file, plans.front(), options.out)
      .and_then([&](const std::string& text) { return write_file(options.out, text); });
}

// Of a front every plan, else the best few.
std::vector<GroupedPlan> shown_plans(const std::vector<GroupedPlan>& plans,
                                     const GroupAnswerOptions& options, std::size_t& alike) {
  if (options.second) {
    return options.format == Format::text ? distinct_plans(plans, alike) : plans;
  }
  const auto shown = std::min(plans.size(), static_cast<std::size_t>(options.top));
  return {plans.begin(), plans.begin() + static_cast<std::ptrdiff_t>(shown)};
}

}  // namespace

int answer_for_groups(const std::filesystem::path& file, const Question& question,
                      const GroupAnswerOptions& options) {
  const Scenario& scenario = question.scenario;
  GroupSearchOptions asked = asked_options(scenario, options);
  const auto search = [&scenario](const GroupSearchOptions& how) {
    return plan_groups(grouped_job(scenario), how);
  };
  const auto ways = [&scenario](const GroupSearchOptions& how) {
    return ways_out_of_groups(grouped_job(scenario), how);
  };
  GroupAnswer answer{.found = with_progress(asked, search), .robust = options.robust};
  const std::vector<GroupedPlan> plans = in_order(answer.found);
  if (plans.empty() && !answer.found.complete) {
    return fail({scenario.name, "stopped before any plan that fits was found"}, kInterrupted);
  }
  if (const auto written = write_best(file, options, plans, answer); !written) {
    return fail(written.error(), kMachineFailed);
  }
  if (plans.empty()) answer.ways_out = with_progress(asked, ways);
  answer.plans = shown_plans(plans, options, answer.alike);
  const int status = plans.empty() ? kAnswerIsNo : kDone;
  if (options.format == Format::csv) {
    for (const std::string& note : answer.notes) fail({"", note});
    return print(plan_groups_csv(scenario, answer.plans, answer.found, answer.robust), status);
  }
  if (!options.pinned.empty()) {
    const PlannerKeys keys = pinned_keys(scenario.space, options.pinned);
    asked.space = keys;
    asked.layers_per_stage = keys.layers_per_stage;
    asked.second.reset();
    answer.explained = {options.pinned, with_progress(asked, search)};
  }
  if (options.format == Format::json) {
    return print(groups_json(scenario, answer.plans, answer.found,
                             {answer.explained, answer.written, answer.notes, answer.ways_out}),
                 status);
  }
  return print(report(question, answer, style_for(stdout)), status);
}

int estimate_of_groups(const std::filesystem::path& file, const Question& question, Format format) {
  const Scenario& scenario = question.scenario;
  const auto answer = search_groups(scenario);
  if (!answer) return fail(in_file(file, answer.error()));
  const GroupedPlan& plan = answer->best;
  const int status = plan.feasible ? kDone : kAnswerIsNo;
  if (format == Format::csv) return print(estimate_groups_csv(scenario, plan), status);
  if (format == Format::json) return print(grouped_estimate_json(scenario, plan), status);
  const Style style = style_for(stdout);
  return print(job_heading(question, style) + "\n" + groups_table(scenario, {plan}, style) + "\n" +
                   paragraph("plan", plan_words(plan, plan, {}), style) +
                   paragraph("step", interval_words(plan), style) +
                   verdict_of(scenario, plan, style),
               status);
}

}  // namespace trainyard

#include "cli/plan_groups.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/csv.h"
#include "cli/estimate_text.h"
#include "cli/explain_option.h"
#include "cli/plan_search.h"
#include "cli/plan_table.h"
#include "cli/plan_text.h"
#include "cli/progress.h"
#include "cli/style.h"
#include "cli/table.h"
#include "cli/text.h"
#include "scenarios/write_groups.h"

namespace trainyard {
namespace {

std::string use_words(const GroupedPlan& plan) {
  switch (plan.use) {
    case GroupUse::pipeline:
      return plan.plan.layers_per_stage.empty() ? "stages on each, even layers" : "stages on each";
    case GroupUse::replicas:
      return "replicas on each";
    case GroupUse::alone:
      break;
  }
  return "one alone";
}

std::string tokens_cell(const Training& training, const GroupedPlan& plan) {
  const auto tokens = static_cast<double>(training.global_batch * training.sequence_length);
  return number(tokens / plan.step_time.value());
}

std::optional<Column> value_column(Objective objective) {
  switch (objective) {
    case Objective::step_time:
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
std::string value_cell(Objective objective, const GroupedPlan& plan) {
  constexpr double kJoulesAKilowattHour = 3.6e6;
  if (objective == Objective::cost) return number(plan.value);
  if (objective == Objective::energy)
    return fmt::format("{:.3f}", plan.value / kJoulesAKilowattHour);
  return percent(objective == Objective::memory ? plan.fullness : plan.goodput.value_or(1));
}

void add_rows(const Scenario& scenario, const GroupedPlan& plan, std::size_t number,
              Objective objective, Table& table) {
  const UnlikeCluster& cluster = *scenario.unlike;
  bool is_first = true;
  for (const std::size_t g : plan.order) {
    const GroupShare& share = plan.shares[g];
    std::vector<std::string> row(4);
    if (is_first) {
      row = {fmt::format("{}", number), use_words(plan),
             fmt::format("{:.3f}", plan.step_time.value()),
             tokens_cell(scenario.job.training, plan)};
    }
    if (value_column(objective)) row.push_back(is_first ? value_cell(objective, plan) : "");
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
  if (objective == Objective::step_time) {
    const Seconds lost = plan.step_time - best.step_time;
    return fmt::format("It is {} ({} %) slower.", with_unit(lost), percent(lost / best.step_time));
  }
  return fmt::format("Its {} is {} % higher.", objective_words(objective),
                     percent(plan.value / best.value - 1));
}

std::string plan_words(const GroupedPlan& plan, const GroupedPlan& best, Objective objective) {
  std::string words = plan_line(plan.plan) + ".";
  if (&plan != &best) words += " " + lost_words(plan, best, objective);
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

std::string search_words(const GroupedPlans& found) {
  const std::string bound =
      fmt::format("All devices at their peak would take {}, and no plan of any kind less",
                  with_unit(found.bound));
  if (found.complete) return fmt::format("these ways were searched to their end. {}.", bound);
  return fmt::format("stopped early: the best so far. {}{}", bound, gap_words(found));
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

// The best plan with the pinned keys beside the best of all, or why there is none.
std::string explained_words(const Scenario& scenario, const ExplainedGroups& explained,
                            const GroupedPlan& winner) {
  const GroupedPlans& found = explained.found;
  const std::vector<GroupedPlan> plans = in_order(found);
  if (plans.empty() && !found.complete) return "none was found before the search was stopped.";
  if (plans.empty()) {
    const std::vector<std::string> reasons = reasons_of(scenario, found, "");
    return reasons.empty() ? "no plan fits."
                           : fmt::format("no plan: {}.", fmt::join(reasons, "; "));
  }
  const GroupedPlan& best = plans.front();
  if (best.value == winner.value) return "so has the best plan.";
  return fmt::format("at its best {}, {}. {}", use_words(best), plan_line(best.plan),
                     best.value > winner.value
                         ? lost_words(best, winner, found.objective)
                         : "That is better than the best above: layers are moved from stage to "
                           "stage under the best degrees only.");
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

std::string report(const Question& question, const std::vector<GroupedPlan>& plans,
                   const GroupedPlans& found, const std::optional<ExplainedGroups>& explained,
                   const Style& style) {
  const std::string heading = job_heading(question, style) + "\n";
  const std::string idle = left_out(question.scenario);
  const std::string end = (idle.empty() ? "" : paragraph("left out", idle, style)) +
                          ways_left_out(question.scenario, found, style) +
                          paragraph("search", search_words(found), style);
  if (plans.empty()) {
    return heading + style.bad("no plan fits") +
           ", neither through several groups nor on one of them\n" + end;
  }
  std::string text = heading + "the best plan of every way to use the groups";
  if (found.objective != Objective::step_time) {
    text += fmt::format(", by {}", objective_words(found.objective));
  }
  text += "\n" + groups_table(question.scenario, plans, style, found.objective) + "\n";
  for (std::size_t i = 0; i < plans.size(); ++i) {
    text += paragraph(fmt::format("plan {}", i + 1),
                      plan_words(plans[i], plans.front(), found.objective), style);
  }
  if (explained) {
    text += paragraph("explained",
                      fmt::format("{}: {}", pinned_words(explained->pinned),
                                  explained_words(question.scenario, *explained, plans.front())),
                      style);
  }
  return text + end;
}

template <typename Q>
std::string csv_figure(const std::optional<Q>& figure) {
  return figure ? csv_number(figure->value()) : "";
}

// A group that no plan can use: no figures.
CsvRow idle_row(const Scenario& scenario, std::size_t group) {
  return {{"name", scenario.name},
          {"use", "left out"},
          {"step_time_s", ""},
          {"boundary_s", ""},
          {"group", scenario.unlike->groups[group].name},
          {"stages", ""},
          {"layers", ""},
          {"replicas", ""},
          {"micro_batches", ""},
          {"peak_memory_bytes", ""},
          {"cost_per_step_usd", ""},
          {"energy_per_step_joule", ""},
          {"memory_share", ""},
          {"goodput", ""}};
}

std::string csv_of(const Scenario& scenario, const std::vector<GroupedPlan>& plans) {
  std::vector<CsvRow> rows;
  for (const GroupedPlan& plan : plans) {
    for (const std::size_t g : plan.order) {
      const GroupShare& share = plan.shares[g];
      rows.push_back({{"name", scenario.name},
                      {"use", std::string(name_of(plan.use))},
                      {"step_time_s", csv_number(plan.step_time.value())},
                      {"boundary_s", csv_number(plan.boundary.value())},
                      {"group", scenario.unlike->groups[g].name},
                      {"stages", fmt::format("{}", share.stages)},
                      {"layers", fmt::format("{}", share.layers)},
                      {"replicas", fmt::format("{}", share.replicas)},
                      {"micro_batches", fmt::format("{}", share.microbatches)},
                      {"peak_memory_bytes", csv_number(share.peak_memory.value())},
                      {"cost_per_step_usd", csv_figure(plan.cost_per_step)},
                      {"energy_per_step_joule", csv_figure(plan.energy_per_step)},
                      {"memory_share", csv_number(plan.fullness)},
                      {"goodput", plan.goodput ? csv_number(*plan.goodput) : ""}});
    }
  }
  for (const std::size_t g : groups_without_precision(scenario)) {
    rows.push_back(idle_row(scenario, g));
  }
  return csv_text(rows);
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
                         const Style& style, Objective objective) {
  std::vector<Column> columns = {
      {"#"}, {"use of the groups", "", Align::left}, {"step", "s"}, {"tokens", "/s"}};
  if (const auto value = value_column(objective)) columns.push_back(*value);
  for (const Column& column :
       {Column{"devices", "", Align::left}, Column{"stages"}, Column{"layers"}, Column{"replicas"},
        Column{"micro-batches", "each"}, Column{"memory", "GiB"}}) {
    columns.push_back(column);
  }
  Table table(std::move(columns));
  for (std::size_t i = 0; i < plans.size(); ++i) {
    add_rows(scenario, plans[i], i + 1, objective, table);
  }
  return table.render(style);
}

Expected<UnlikeAnswer> search_groups(const Scenario& scenario) {
  return with_progress(group_options(scenario), [&scenario](const GroupSearchOptions& options) {
    return answer_of_groups(grouped_job(scenario), scenario, options);
  });
}

int answer_for_groups(const Question& question, const GroupAnswerOptions& options) {
  const Scenario& scenario = question.scenario;
  GroupSearchOptions asked = group_options(scenario);
  asked.objective = options.objective;
  asked.time_limit = options.time_limit;
  const auto search = [&scenario](const GroupSearchOptions& how) {
    return plan_groups(grouped_job(scenario), how);
  };
  const GroupedPlans found = with_progress(asked, search);
  std::vector<GroupedPlan> plans = in_order(found);
  if (plans.empty() && !found.complete) {
    return fail({scenario.name, "stopped before any plan that fits was found"}, kInterrupted);
  }
  plans.resize(std::min(plans.size(), static_cast<std::size_t>(options.top)));
  const int status = plans.empty() ? kAnswerIsNo : kDone;
  if (options.format == Format::csv) return print(csv_of(scenario, plans), status);
  std::optional<ExplainedGroups> explained;
  if (!options.pinned.empty() && !plans.empty()) {
    const PlannerKeys keys = pinned_keys(scenario.space, options.pinned);
    asked.space = keys;
    asked.layers_per_stage = keys.layers_per_stage;
    explained = {options.pinned, with_progress(asked, search)};
  }
  if (options.format == Format::json) {
    return print(groups_json(scenario, plans, found, explained), status);
  }
  return print(report(question, plans, found, explained, style_for(stdout)), status);
}

}  // namespace trainyard

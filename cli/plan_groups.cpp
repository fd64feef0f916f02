#include "cli/plan_groups.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/csv.h"
#include "cli/estimate_text.h"
#include "cli/plan_search.h"
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

void add_rows(const Scenario& scenario, const GroupedPlan& plan, std::size_t number, Table& table) {
  const UnlikeCluster& cluster = *scenario.unlike;
  bool is_first = true;
  for (const std::size_t g : plan.order) {
    const GroupShare& share = plan.shares[g];
    table.add_row(
        {is_first ? fmt::format("{}", number) : "", is_first ? use_words(plan) : "",
         is_first ? fmt::format("{:.3f}", plan.step_time.value()) : "",
         is_first ? tokens_cell(scenario.job.training, plan) : "",
         fmt::format("{} {}", count(cluster.groups[g].devices()), cluster.groups[g].device.name),
         fmt::format("{}", share.stages), fmt::format("{}", share.layers),
         fmt::format("{}", share.replicas), fmt::format("{}", share.microbatches),
         fmt::format("{:.1f}", share.peak_memory.value() / kGib)});
    is_first = false;
  }
}

std::string plan_words(const GroupedPlan& plan, const GroupedPlan& best) {
  std::string words = plan_line(plan.plan) + ".";
  if (&plan != &best) {
    const Seconds lost = plan.step_time - best.step_time;
    words +=
        fmt::format(" It is {} ({} %) slower.", with_unit(lost), percent(lost / best.step_time));
  }
  if (plan.boundary > Seconds(0)) {
    words += fmt::format(" What crosses between the groups shows with {} of the step.",
                         with_unit(plan.boundary));
  }
  return words;
}

std::string search_words(const GroupedPlans& found) {
  const std::string bound =
      fmt::format("All devices at their peak would take {}, and no plan of any kind less",
                  with_unit(found.bound));
  if (found.complete) return fmt::format("these ways were searched to their end. {}.", bound);
  return fmt::format("stopped early: the best so far. {}: the best step may be up to {} % lower.",
                     bound, percent(gap_of(found)));
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
                   const GroupedPlans& found, const Style& style) {
  const std::string heading = job_heading(question, style) + "\n";
  const std::string idle = left_out(question.scenario);
  const std::string end = (idle.empty() ? "" : paragraph("left out", idle, style)) +
                          paragraph("search", search_words(found), style);
  if (plans.empty()) {
    return heading + style.bad("no plan fits") +
           ", neither through several groups nor on one of them\n" + end;
  }
  std::string text = heading + "the best plan of every way to use the groups\n";
  text += groups_table(question.scenario, plans, style) + "\n";
  for (std::size_t i = 0; i < plans.size(); ++i) {
    text += paragraph(fmt::format("plan {}", i + 1), plan_words(plans[i], plans.front()), style);
  }
  return text + end;
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
          {"peak_memory_bytes", ""}};
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
                      {"peak_memory_bytes", csv_number(share.peak_memory.value())}});
    }
  }
  for (const std::size_t g : groups_without_precision(scenario)) {
    rows.push_back(idle_row(scenario, g));
  }
  return csv_text(rows);
}

// `work` with the options of a search that shows its progress.
template <typename Work>
auto with_progress(Seconds time_limit, const Work& work) {
  const InterruptGuard guard;
  Progress progress("searching");
  GroupSearchOptions options{.time_limit = time_limit, .interrupted = interrupt_flag()};
  options.progress = [&progress](double fraction) { progress.show(fraction); };
  return work(options);
}

}  // namespace

std::string groups_table(const Scenario& scenario, const std::vector<GroupedPlan>& plans,
                         const Style& style) {
  Table table({{"#"},
               {"use of the groups", "", Align::left},
               {"step", "s"},
               {"tokens", "/s"},
               {"devices", "", Align::left},
               {"stages"},
               {"layers"},
               {"replicas"},
               {"micro-batches", "each"},
               {"memory", "GiB"}});
  for (std::size_t i = 0; i < plans.size(); ++i) add_rows(scenario, plans[i], i + 1, table);
  return table.render(style);
}

Expected<UnlikeAnswer> search_groups(const Scenario& scenario) {
  return with_progress(Seconds(0), [&scenario](const GroupSearchOptions& options) {
    return answer_of_groups(grouped_job(scenario), scenario, options);
  });
}

int answer_for_groups(const Question& question, const GroupAnswerOptions& options) {
  const Scenario& scenario = question.scenario;
  const GroupedPlans found =
      with_progress(options.time_limit, [&scenario](const GroupSearchOptions& search) {
        return plan_groups(grouped_job(scenario), search);
      });
  std::vector<GroupedPlan> plans = in_order(found);
  if (plans.empty() && !found.complete) {
    return fail({scenario.name, "stopped before any plan that fits was found"}, kInterrupted);
  }
  plans.resize(std::min(plans.size(), static_cast<std::size_t>(options.top)));
  const int status = plans.empty() ? kAnswerIsNo : kDone;
  switch (options.format) {
    case Format::json:
      return print(groups_json(scenario, plans, found), status);
    case Format::csv:
      return print(csv_of(scenario, plans), status);
    case Format::text:
      break;
  }
  return print(report(question, plans, found, style_for(stdout)), status);
}

}  // namespace trainyard

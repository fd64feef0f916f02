#include "cli/plan_groups.h"

#include <fmt/format.h>

#include "cli/csv.h"
#include "cli/plan_text.h"
#include "cli/style.h"
#include "cli/table.h"
#include "cli/text.h"
#include "scenarios/write_groups.h"

namespace trainyard {
namespace {

constexpr double kGib = 1073741824.0;

std::string use_words(const GroupedPlan& plan) {
  switch (plan.use) {
    case GroupUse::pipeline:
      return plan.plan.layers_per_stage.empty() ? "stages on both, even layers" : "stages on both";
    case GroupUse::replicas:
      return "replicas on each";
    case GroupUse::alone:
      break;
  }
  return "one alone";
}

void add_rows(const UnlikeCluster& cluster, const GroupedPlan& plan, std::size_t number,
              Table& table) {
  bool is_first = true;
  for (std::size_t turn = 0; turn < kGroups; ++turn) {
    const std::size_t g = turn == 0 ? plan.first : 1 - plan.first;
    const GroupShare& share = plan.shares[g];
    if (share.stages == 0) continue;
    table.add_row(
        {is_first ? fmt::format("{}", number) : "", is_first ? use_words(plan) : "",
         is_first ? fmt::format("{:.3f}", plan.step_time.value()) : "",
         fmt::format("{} {}", count(cluster.groups[g].devices()), cluster.groups[g].device.name),
         fmt::format("{}", share.stages), fmt::format("{}", share.layers),
         fmt::format("{}", share.replicas), fmt::format("{}", share.microbatches),
         fmt::format("{:.1f}", share.peak_memory.value() / kGib)});
    is_first = false;
  }
}

std::string report(const Scenario& scenario, const std::vector<GroupedPlan>& plans,
                   const Style& style) {
  if (plans.empty()) {
    return style.bad("no plan fits") + ", neither with both groups nor with one of them\n";
  }
  Table table({{"#"},
               {"use of the groups", "", Align::left},
               {"step", "s"},
               {"devices", "", Align::left},
               {"stages"},
               {"layers"},
               {"replicas"},
               {"micro-batches", "each"},
               {"memory", "GiB"}});
  for (std::size_t i = 0; i < plans.size(); ++i) add_rows(*scenario.unlike, plans[i], i + 1, table);
  const GroupedPlan& best = plans.front();
  std::string text = style.strong(scenario.name) + "\n\n" + table.render(style) + "\n";
  text += paragraph("plan 1", plan_line(best.plan), style);
  if (best.boundary > Seconds(0)) {
    text += paragraph("boundary",
                      fmt::format("what crosses between the groups shows with {} of the step",
                                  with_unit(best.boundary)),
                      style);
  }
  return text;
}

std::string csv_of(const Scenario& scenario, const std::vector<GroupedPlan>& plans) {
  std::vector<CsvRow> rows;
  for (const GroupedPlan& plan : plans) {
    for (std::size_t g = 0; g < kGroups; ++g) {
      const GroupShare& share = plan.shares[g];
      if (share.stages == 0) continue;
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
  return csv_text(rows);
}

}  // namespace

int answer_for_groups(const Scenario& scenario, Format format) {
  const GroupedJob job{scenario.job.model, scenario.job.training, *scenario.unlike};
  const std::vector<GroupedPlan> plans = in_order(plan_groups(job));
  const int status = plans.empty() ? kAnswerIsNo : kDone;
  switch (format) {
    case Format::json:
      return print(groups_json(scenario, plans), status);
    case Format::csv:
      return print(csv_of(scenario, plans), status);
    case Format::text:
      break;
  }
  return print(report(scenario, plans, style_for(stdout)), status);
}

}  // namespace trainyard

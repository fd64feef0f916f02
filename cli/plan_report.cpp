#include "cli/plan_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "cli/estimate_text.h"
#include "cli/improvement_text.h"
#include "cli/plan_text.h"
#include "cli/table.h"
#include "cli/text.h"
#include "planner/explain.h"

namespace trainyard {
namespace {

std::string_view objective_words(Objective objective) {
  switch (objective) {
    case Objective::step_time:
      return "step time";
    case Objective::cost:
      return "cost";
    case Objective::energy:
      return "energy";
    case Objective::memory:
      return "memory";
    case Objective::goodput:
      return "step time over goodput";
  }
  return "";
}

// ---- The table of plans ---------------------------------------------------------------

struct DegreeColumn {
  std::string_view head;
  int Plan::*degree;
  bool always;  // shown even when it is 1 in every plan
};

constexpr DegreeColumn kDegreeColumns[] = {
    {"tp", &Plan::tensor_parallel, true},
    {"cp", &Plan::context_parallel, false},
    {"pp", &Plan::pipeline_parallel, true},
    {"vp", &Plan::virtual_stages, false},
    {"dp", &Plan::data_parallel, true},
    {"ep", &Plan::expert_parallel, false},
    {"etp", &Plan::expert_tensor_parallel, false},
    {"mb", &Plan::micro_batch, true},
    {"zero", &Plan::zero_stage, true},
};

std::vector<DegreeColumn> shown_degrees(const std::vector<Candidate>& plans) {
  std::vector<DegreeColumn> shown;
  for (const DegreeColumn& column : kDegreeColumns) {
    const bool matters = std::any_of(plans.begin(), plans.end(),
                                     [&](const Candidate& c) { return c.plan.*column.degree > 1; });
    if (column.always || matters) {
      shown.push_back(column);
    }
  }
  return shown;
}

// A key beside the degrees, shown where the plans differ in it.
struct FinerColumn {
  std::string_view head, key;
};
constexpr FinerColumn kFinerColumns[] = {
    {"sp", "sequence_parallel"},  {"cp by", "context_parallel_algorithm"},
    {"shards", "sharding_group"}, {"offload", "offload"},
    {"rank order", "rank_order"}, {"collective", "collective"},
};

struct FinerCells {
  std::string_view head;
  std::vector<std::string> cells;  // of every plan
};

std::vector<FinerCells> finer_cells(const std::vector<Candidate>& plans) {
  std::vector<FinerCells> shown;
  for (const FinerColumn& column : kFinerColumns) {
    FinerCells cells{column.head, {}};
    cells.cells.reserve(plans.size());
    for (const Candidate& candidate : plans) {
      const auto fields = plan_fields(candidate.plan);
      const auto field = std::find_if(fields.begin(), fields.end(),
                                      [&](const auto& entry) { return entry.first == column.key; });
      cells.cells.push_back(field->second.empty() ? "–" : field->second);
    }
    const bool differ = std::any_of(cells.cells.begin(), cells.cells.end(),
                                    [&](const auto& cell) { return cell != cells.cells.front(); });
    if (differ) shown.push_back(std::move(cells));
  }
  return shown;
}

std::string step_cell(Seconds step, bool seconds) {
  return seconds ? fmt::format("{:.3f}", step.value()) : fmt::format("{:.2f}", 1e3 * step.value());
}

std::string plans_table(const std::vector<Candidate>& plans, const Style& style) {
  const std::vector<DegreeColumn> degrees = shown_degrees(plans);
  const std::vector<FinerCells> finer = finer_cells(plans);
  const bool seconds = plans.front().estimate.step_time >= Seconds(1);
  std::vector<Column> columns = {{"#"}};
  for (const DegreeColumn& column : degrees) {
    columns.push_back({std::string(column.head)});
  }
  for (const FinerCells& column : finer) {
    columns.push_back({std::string(column.head), "", Align::left});
  }
  for (Column column : {Column{"recompute", "", Align::left}, Column{"schedule", "", Align::left},
                        Column{"step", seconds ? "s" : "ms"}, Column{"MFU", "%"},
                        Column{"tokens", "/s/device"}, Column{"memory", "GiB"}}) {
    columns.push_back(std::move(column));
  }
  Table table(std::move(columns));
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Plan& plan = plans[i].plan;
    const Estimate& e = plans[i].estimate;
    std::vector<std::string> row = {fmt::format("{}", i + 1)};
    for (const DegreeColumn& column : degrees) {
      row.push_back(fmt::format("{}", plan.*column.degree));
    }
    for (const FinerCells& column : finer) row.push_back(column.cells[i]);
    row.emplace_back(recompute_name(plan.recompute));
    row.emplace_back(plan.pipeline_parallel > 1 ? plan.schedule->name : "–");
    row.push_back(step_cell(e.step_time, seconds));
    row.push_back(percent(e.mfu));
    row.push_back(number(e.tokens_per_second / plan.devices()));
    row.push_back(fmt::format("{:.1f}", e.peak_memory.value() / kGib));
    table.add_row(std::move(row));
  }
  return table.render(style);
}

// ---- Why another plan lost ------------------------------------------------------------

std::string difference_words(const std::vector<PartDifference>& differences) {
  constexpr std::size_t kMost = 3;
  std::vector<PartDifference> largest = differences;
  std::stable_sort(largest.begin(), largest.end(), [](const auto& a, const auto& b) {
    return std::abs(a.lost().value()) > std::abs(b.lost().value());
  });
  largest.resize(std::min(largest.size(), kMost));
  std::vector<std::string> words;
  for (const PartDifference& difference : largest) {
    const bool loses = difference.lost() > Seconds(0);
    words.push_back(fmt::format("{} {}{}", difference.part->label, loses ? "+" : "−",
                                with_unit(loses ? difference.lost() : -difference.lost())));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string lost_words(const Candidate& winner, const Candidate& other, Bytes capacity) {
  const Comparison found = compare(winner, other, capacity);
  if (found.memory) {
    return fmt::format("does not fit: stage {} needs {}, the device has {}", found.memory->stage,
                       with_unit(found.memory->required), with_unit(found.memory->available));
  }
  const Bytes more = other.estimate.peak_memory - winner.estimate.peak_memory;
  const std::string memory = fmt::format("{} {} memory", with_unit(more < Bytes(0) ? -more : more),
                                         more < Bytes(0) ? "less" : "more");
  const double slower = found.lost / winner.estimate.step_time;
  if (found.differences.empty()) {
    return fmt::format("takes as long with {}", memory);
  }
  if (found.lost < Seconds(0)) {
    return fmt::format("is {} ({} %) faster with {}: {}", with_unit(-found.lost), percent(-slower),
                       memory, difference_words(found.differences));
  }
  return fmt::format("is {} ({} %) slower: {}", with_unit(found.lost), percent(slower),
                     difference_words(found.differences));
}

std::string runner_up_words(const Candidate& winner, const Candidate& other, Bytes capacity) {
  const std::string difference = plan_differences(other.plan, winner.plan);
  return fmt::format("with {} it {}.", difference.empty() ? "another placement" : difference,
                     lost_words(winner, other, capacity));
}

std::string baseline_words(const Candidate& winner, const Baseline& baseline, Bytes capacity) {
  if (!baseline.candidate) return "not legal for this job.";
  const std::string difference = plan_differences(baseline.candidate->plan, winner.plan);
  return fmt::format(
      "{}. It {}.", plan_line(baseline.candidate->plan),
      difference.empty() ? "is this very plan" : lost_words(winner, *baseline.candidate, capacity));
}

std::string marginal_words(const PlanAnswer& answer) {
  std::vector<std::string> words;
  words.reserve(answer.marginal.size());
  for (const MarginalValue& value : answer.marginal) {
    words.push_back(fmt::format("{} {:.2f} %{}", value.resource, 100 * value.gained,
                                value.same_plan ? "" : " (another plan)"));
  }
  return fmt::format("1 % more of a resource lowers the {} by: {}.",
                     objective_words(answer.objective), fmt::join(words, ", "));
}

std::string way_out_words(const WayOut& way) {
  return fmt::format("{}: {}, {} a step, {} a device.", way.change, plan_line(way.candidate.plan),
                     with_unit(way.candidate.estimate.step_time),
                     with_unit(way.candidate.estimate.peak_memory));
}

// What the simulation of a plan says beside its estimate.
std::string confirmation_words(const Candidate& candidate) {
  const Confirmation& found = *candidate.confirmation;
  if (!found.simulated) return fmt::format("not simulated: {}.", found.reason);
  const Seconds simulated = found.simulated->step_time;
  const Seconds estimated = candidate.estimate.step_time;
  return fmt::format("simulated {}, estimated {} ({} to {}): {:+.1f} %{}.", with_unit(simulated),
                     with_unit(estimated), with_unit(candidate.estimate.step_time_low),
                     with_unit(candidate.estimate.step_time_high),
                     100 * (simulated / estimated - 1),
                     found.departs ? "; DEPARTS from the estimate by more than its interval" : "");
}

std::string explained_words(const Candidate& winner, const Explained& explained, Bytes capacity) {
  if (!explained.candidate) {
    return fmt::format("no plan: {}.", explained.reason);
  }
  const std::string difference = plan_differences(explained.candidate->plan, winner.plan);
  if (difference.empty()) {
    return "is the best plan.";
  }
  return fmt::format("at its best {}. It {}.", plan_line(explained.candidate->plan),
                     lost_words(winner, *explained.candidate, capacity));
}

std::string search_words(const PlanAnswer& answer) {
  const SearchResult& r = answer.result;
  const std::string extent =
      r.optimal
          ? "All of them were considered."
          : fmt::format("Stopped after {} of them: the best {} may be up to {} % lower.",
                        count(r.considered), objective_words(answer.objective), percent(r.gap));
  return fmt::format(
      "{} combinations of {} in {}: {} left out by a bound on time, {} by one on memory; {} "
      "priced, of "
      "which {} do not fit ({} for their states, {} for their activations). {}",
      count(r.space_size), fmt::join(r.space, ", "), with_unit(answer.wall_time),
      count(r.pruned_by_time), count(r.pruned_by_memory), count(r.evaluated), count(r.infeasible),
      count(r.shortfall.by_states), count(r.shortfall.by_activations), extent);
}

std::string plans_heading(const PlanAnswer& answer) {
  if (!answer.second) return fmt::format("best plans by {}\n", objective_words(answer.objective));
  return fmt::format("plans that none beats both in {} and in {}\n",
                     objective_words(answer.objective), objective_words(*answer.second));
}

std::string comparisons(const Question& question, const PlanAnswer& answer, const Style& style) {
  const Bytes capacity = question.job.job.cluster.device.memory;
  const SearchResult& result = answer.result;
  const std::vector<Candidate>& plans = result.plans.empty() ? result.closest : result.plans;
  std::string text;
  for (std::size_t i = 1; i < result.plans.size(); ++i) {
    text += paragraph(fmt::format("plan {}", i + 1), runner_up_words(plans[0], plans[i], capacity),
                      style);
  }
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (!plans[i].confirmation) continue;
    text += paragraph(fmt::format("plan {} played", i + 1), confirmation_words(plans[i]), style);
  }
  if (answer.explained) {
    text += paragraph("explained",
                      fmt::format("{}: {}", pinned_words(answer.explained->pinned),
                                  explained_words(plans[0], *answer.explained, capacity)),
                      style);
  }
  for (const Baseline& baseline : answer.baselines) {
    text += paragraph(baseline.name, baseline_words(plans[0], baseline, capacity), style);
  }
  if (!answer.marginal.empty()) text += paragraph("more of it", marginal_words(answer), style);
  for (const WayOut& way : answer.ways_out) {
    text += paragraph("a way out", way_out_words(way), style);
  }
  if (answer.improvement) {
    text += paragraph("improved", improvement_words(*answer.improvement, plans[0]), style);
  }
  return text + paragraph("search", search_words(answer), style);
}

}  // namespace

std::string plan_report(const Question& question, const PlanAnswer& answer, const Style& style) {
  const SearchResult& result = answer.result;
  const bool fits = !result.plans.empty();
  const std::vector<Candidate>& plans = fits ? result.plans : result.closest;
  const Bytes capacity = question.job.job.cluster.device.memory;
  const Estimate& best = plans[0].estimate;
  std::string text = job_heading(question, style) + "\n";
  text += fits ? plans_heading(answer)
               : style.bad("no plan fits") + "; these miss the memory by the least\n";
  text += plans_table(plans, style) + "\n";
  text += fmt::format("{}\n", style.strong(fits ? "plan 1" : "the closest"));
  text += step_summary(question, plans[0], style) + "\n";
  text += breakdown_table(best, style) + "\n";
  text += memory_bars(best, capacity, style) + "\n";
  if (best.stages.size() > 1) {
    text += stage_table(best, style) + "\n";
  }
  text += comparisons(question, answer, style) + "\n";
  text += verdict(best, capacity, style);
  return text + advice(question, plans[0], style);
}

}  // namespace trainyard

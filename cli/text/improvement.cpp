#include "cli/text/improvement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <vector>

#include "cli/text/layout/columns.h"
#include "cli/text/plan.h"
#include "model/schedule/schedule.h"

namespace trainyard {
namespace {

// Equal neighbours once: "9, 10 × 6, 7".
std::string runs_of(const std::vector<std::string>& words) {
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < words.size();) {
    std::size_t end = i + 1;
    while (end < words.size() && words[end] == words[i]) ++end;
    runs.push_back(end == i + 1 ? words[i] : fmt::format("{} × {}", words[i], end - i));
    i = end;
  }
  return fmt::format("{}", fmt::join(runs, ", "));
}

std::string layers_words(const Plan& plan) {
  std::vector<std::string> words;
  words.reserve(plan.layers_per_stage.size());
  for (const int layers : plan.layers_per_stage) words.push_back(fmt::format("{}", layers));
  return fmt::format("layers {}", runs_of(words));
}

std::string recompute_of_stages(const Plan& plan) {
  std::vector<std::string> words;
  words.reserve(static_cast<std::size_t>(plan.pipeline_parallel));
  for (int stage = 0; stage < plan.pipeline_parallel; ++stage) {
    const Recompute recompute = recompute_of(plan, stage);
    std::string word(name_of(recompute.mode));
    if (recompute.full_layers > 0) word += fmt::format(" {}", recompute.full_layers);
    words.push_back(std::move(word));
  }
  return fmt::format("recompute {}", runs_of(words));
}

std::string schedule_words(const Plan& plan) {
  if (plan.passes) return "a pass order found for its stages (schedule auto)";
  const int chunks = plan.virtual_stages;
  return fmt::format("schedule {}{}", plan.schedule->name,
                     chunks > 1 ? fmt::format(" with {} chunks a stage", chunks) : "");
}

std::vector<std::string> change_words(const Improvement& improvement) {
  std::vector<std::string> words;
  const Plan& plan = improvement.candidate.plan;
  if (improvement.layers) words.push_back(layers_words(plan));
  if (improvement.recompute) words.push_back(recompute_of_stages(plan));
  if (improvement.placement) words.push_back(fmt::format("rank order {}", plan.rank_order));
  if (improvement.sharding) {
    words.push_back(fmt::format("states sharded over groups of {}", plan.sharding_group));
  }
  if (improvement.order) words.push_back(schedule_words(plan));
  return words;
}

}  // namespace

std::string improvement_gain(const Estimate& improved, const Estimate& first) {
  if (!first.feasible) return "which fits";
  const double faster = 1 - improved.step_time / first.step_time;
  return fmt::format("{} % {} than plan 1", percent(std::abs(faster)),
                     faster < 0 ? "slower" : "faster");
}

std::string improvement_words(const Improvement& improvement, const std::vector<Candidate>& plans,
                              const std::string& valued) {
  const Candidate& best = plans.front();
  const Estimate& found = improvement.candidate.estimate;
  const double gained = 1 - found.step_time / best.estimate.step_time;
  const std::string against =
      best.estimate.feasible ? fmt::format("{} ({} % {} than plan 1)", with_unit(found.step_time),
                                           percent(std::abs(gained)), gained < 0 ? "more" : "less")
                             : fmt::format("{} and {}", with_unit(found.step_time),
                                           found.feasible ? "fits" : "misses the memory by less");
  const Plan& plan = improvement.candidate.plan;
  const auto place = place_of_changed(improvement, plans);
  const std::string name = place ? fmt::format("plan {}", *place + 1) : "a plan that is not listed";
  const bool plain = place && same_split(plan, best.plan);
  const std::string which = plain ? "" : fmt::format(" ({})", plan_line(plan));
  return fmt::format(
      "{}{} with {}: {}, {}memory {}. Of its degrees no other layers, recomputation, order or "
      "placement take less than {}.",
      name, which, fmt::join(change_words(improvement), "; "), against,
      valued.empty() ? "" : valued + ", ", with_unit(found.peak_memory),
      with_unit(improvement.bound));
}

}  // namespace trainyard

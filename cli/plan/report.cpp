#include "cli/plan/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "cli/interrupt.h"
#include "cli/plan/explain_option.h"
#include "cli/text/estimate.h"
#include "cli/text/improvement.h"
#include "cli/text/layout/columns.h"
#include "cli/text/plan.h"
#include "planner/findings/baseline.h"
#include "planner/findings/confirm.h"
#include "planner/findings/explain.h"
#include "planner/held_memory.h"
#include "planner/offered.h"

namespace trainyard {
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
    words.push_back(fmt::format("{} {}{}", difference.part->label, loses ? "+" : "-",
                                with_unit(loses ? difference.lost() : -difference.lost())));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string device_hours_words(double device_seconds_per_token) {
  constexpr double kHoursAMillion = 1e6 / kHour.value();
  return fmt::format("{} device-hours a million tokens",
                     number(device_seconds_per_token * kHoursAMillion));
}

std::string illegal_words(std::string_view baseline, const Error& error, const Stack& stack) {
  if (baseline == kPlainFsdp && !stack.zero_stack.empty()) {
    return fmt::format("not with {}, which has no ZeRO; {} has it", stack.name, stack.zero_stack);
  }
  const std::string key = error.where.substr(error.where.rfind('/') + 1);
  return fmt::format("not legal: {}: {}", key, error.message);
}

namespace {

std::string lost_words(const Candidate& winner, const Candidate& other, const Cluster& cluster) {
  const Comparison found = compare(winner, other, cluster);
  if (found.memory) return fmt::format("does not fit: {}", misfit_words(other, cluster));
  const Bytes more = other.estimate.peak_memory - winner.estimate.peak_memory;
  const std::string memory =
      more == Bytes(0) ? "the same memory"
                       : fmt::format("{} {} memory", with_unit(more < Bytes(0) ? -more : more),
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

// The differences in the objectives other than step time.
std::string beside_words(const Question& question, const PlanOrder& order, const Candidate& winner,
                         const Candidate& other) {
  std::string words;
  for (const auto& objective : {std::optional(order.objective), order.second}) {
    if (!objective || *objective == Objective::step_time) continue;
    const auto value = [&](const Candidate& candidate) {
      return objective_value(question.job, order.valuation, *objective, candidate.plan,
                             candidate.estimate);
    };
    words += fmt::format("; {} {} %", objective_words(*objective),
                         signed_percent(value(other) / value(winner) - 1));
  }
  return words;
}

std::string runner_up_words(const Question& question, const PlanOrder& order,
                            const Candidate& winner, const Candidate& other) {
  const std::string difference = plan_differences(other.plan, winner.plan);
  return fmt::format("with {} it {}{}.", difference.empty() ? "another placement" : difference,
                     lost_words(winner, other, question.job.job.cluster),
                     beside_words(question, order, winner, other));
}

// Whether a baseline is faster than the proven optimum, so that it lies outside the search space.
bool is_outside(const PlanAnswer& answer, const Candidate& winner, const Candidate& baseline) {
  const PlanOrder& order = answer.order;
  const bool by_time =
      order.objective == Objective::step_time && !order.second && !order.valuation.robust;
  return by_time && answer.result.optimal && baseline.estimate.feasible &&
         winner.estimate.feasible && baseline.estimate.step_time < winner.estimate.step_time;
}

std::string baseline_words(const Question& question, const PlanAnswer& answer,
                           const Candidate& winner, const PlanBaseline& baseline) {
  const Cluster& cluster = question.job.job.cluster;
  if (!baseline.candidate) return baseline.reason + ".";
  const std::string difference = plan_differences(baseline.candidate->plan, winner.plan);
  return fmt::format(
      "{}. It {}{}.", plan_line(baseline.candidate->plan),
      difference.empty() ? "is this very plan" : lost_words(winner, *baseline.candidate, cluster),
      is_outside(answer, winner, *baseline.candidate) ? "; the `planner` section leaves it out"
                                                      : "");
}

std::string marginal_words(const PlanAnswer& answer) {
  std::vector<std::string> words;
  words.reserve(answer.findings.marginal.size());
  for (const MarginalValue& value : answer.findings.marginal) {
    words.push_back(fmt::format("{} {:.2f} %{}", value.resource, 100 * value.gained,
                                value.same_plan ? "" : " (another plan)"));
  }
  return fmt::format("of a resource lowers the {} of the best plan, found anew, by: {}.",
                     objective_words(answer.order.objective), fmt::join(words, ", "));
}

std::string way_out_words(const WayOut& way) {
  return fmt::format("{}: {}, {} a step, {} a device, {}.", way.change,
                     plan_line(way.candidate.plan), with_unit(way.candidate.estimate.step_time),
                     with_unit(way.candidate.estimate.peak_memory),
                     device_hours_words(way.device_seconds_per_token));
}

// The simulated step of a plan, beside its estimate.
std::string confirmation_words(const Candidate& candidate, const Cluster& cluster) {
  const Confirmation& found = *candidate.confirmation;
  if (!found.simulated) return fmt::format("not simulated: {}.", found.reason);
  const Seconds simulated = found.simulated->step_time;
  const Seconds estimated = candidate.estimate.step_time;
  const std::string misfit =
      misfit_words({.plan = candidate.plan, .estimate = *found.simulated}, cluster);
  return fmt::format("simulated {}, estimated {} ({} to {}): {} %{}{}.", with_unit(simulated),
                     with_unit(estimated), with_unit(candidate.estimate.step_time_low),
                     with_unit(candidate.estimate.step_time_high),
                     signed_percent(simulated / estimated - 1),
                     found.departs ? "; DEPARTS from the estimate by more than its interval" : "",
                     misfit.empty() ? "" : "; DOES NOT FIT as simulated: " + misfit);
}

std::string explained_words(const Candidate& winner, const Explained& explained,
                            const Cluster& cluster) {
  if (!explained.candidate) {
    return fmt::format("no plan: {}.", explained.reason);
  }
  const std::string difference = plan_differences(explained.candidate->plan, winner.plan);
  std::string notes;
  for (const std::string& note : explained.notes) notes += fmt::format(" Note: {}.", note);
  if (difference.empty()) return "is the best plan." + notes;
  return fmt::format("at its best {}. It {}.{}", plan_line(explained.candidate->plan),
                     lost_words(winner, *explained.candidate, cluster), notes);
}

// Why even the plan that comes closest does not fit.
std::string why_words(const SearchResult& r, const Cluster& cluster) {
  const Candidate& closest = r.closest.front();
  const auto missing = infeasibility(closest.estimate, cluster);
  if (!missing) return "";
  const HeldMemory held = held_memory(closest.estimate);
  std::string words = fmt::format("plan 1 comes closest: {}.", misfit_words(closest, cluster));
  if (!missing->on_hosts) {
    words += fmt::format(
        " Parameters, gradients and optimizer take {} of it, activations {}, buffers and the "
        "runtime {}.",
        with_unit(held.states), with_unit(held.activations), with_unit(held.others));
  }
  if (r.evaluated == 0) {
    return words +
           " No plan was priced in the search: all were left out by bounds on their memory.";
  }
  return words;
}

std::string priced_words(const SearchResult& r) {
  if (r.evaluated == 0) return "none priced";
  if (r.infeasible == 0) {
    return r.evaluated == 1 ? "1 priced, which fits"
                            : fmt::format("{} priced, all of which fit", count(r.evaluated));
  }
  return fmt::format(
      "{} priced, of which {} do not fit ({} for their states, {} for their activations)",
      count(r.evaluated), count(r.infeasible), count(r.shortfall.by_states),
      count(r.shortfall.by_activations));
}

// Dimensions that the stack narrows where the scenario names no values.
std::vector<std::string_view> narrowed_by_stack(const SearchSpace& named, const Stack& stack) {
  std::vector<std::string_view> narrowed;
  const bool some_stages = !stack.zero_stages.empty() || !stack.pipeline_zero_stages.empty();
  if (named.zero_stage.empty() && some_stages) narrowed.emplace_back("zero_stage");
  if (named.recompute.empty() && stack.partial_recompute != PartialRecompute::by_stage) {
    narrowed.emplace_back("recompute");
  }
  const StackLimits& limits = stack.limits;
  if (named.pipeline_parallel.empty() && !limits.pipelines) {
    narrowed.emplace_back("pipeline_parallel");
  }
  if (named.context_parallel_algorithm.empty() && limits.context_algorithms) {
    narrowed.emplace_back("context_parallel_algorithm");
  }
  if (named.expert_parallel.empty() && limits.experts != ExpertSpread::any) {
    narrowed.emplace_back("expert_parallel");
  }
  return narrowed;
}

// Names the dimensions that were not searched, or only as far as the stack supports them.
std::string left_out_words(const Question& question, const SearchResult& result) {
  const Stack& stack = question.job.job.training.stack;
  const SearchSpace& named = question.scenario.space;
  std::string words;
  if (!stack.zero_stack.empty()) {
    words = fmt::format(
        " ZeRO was not searched, for {} has none: where `zero_stage` asks for it, {} "
        "runs the plan.",
        stack.name, stack.zero_stack);
  }
  const auto varied = [&result](std::string_view name) {
    return std::ranges::find(result.space, name) != result.space.end();
  };
  const bool by_plan =
      question.scenario.plan && question.scenario.plan->sequence_parallel.has_value();
  const bool by_limit = stack.limits.sequence_parallel == SequenceParallelism::always;
  if (!varied("sequence_parallel") && !by_plan && by_limit) {
    words += fmt::format(
        " Tensor parallelism without sequence parallelism was not searched, for {} has none: where "
        "`sequence_parallel` of the `planner` section names it, it is.",
        stack.name);
  } else if (!varied("sequence_parallel") && !by_plan) {
    words += fmt::format(
        " Sequence parallelism was not searched, for {} has none: where `sequence_parallel` of "
        "the `planner` section names it, it is.",
        stack.name);
  }
  const std::pair<std::string_view, bool> unnamed[] = {
      {"collective", named.collective.empty()},
      {"offload", named.offload.empty()},
      {"rank_order", named.rank_order.empty()},
      {"sharding_group", named.sharding_group.empty()}};
  std::vector<std::string_view> fixed, of_stack;
  for (const auto& [name, by_stack] : unnamed) {
    if (!varied(name)) fixed.push_back(name);
    if (varied(name) && by_stack) of_stack.push_back(name);
  }
  std::ranges::copy(narrowed_by_stack(named, stack), std::back_inserter(of_stack));
  if (!of_stack.empty()) {
    words += fmt::format(" Of {} only what {} offers was searched.", fmt::join(of_stack, ", "),
                         stack.name);
  }
  if (fixed.empty()) return words;
  return words + fmt::format(" Not varied, for the `planner` section names no values: {}.",
                             fmt::join(fixed, ", "));
}

// The ZeRO stages under which copies to the hosts may only add to a plan (planner/search/worker.h).
std::vector<std::string> offloaded_without_need(const Question& question) {
  const Job& job = question.job.job;
  const SearchSpace& space = question.scenario.space;
  const auto offloads = offloads_of(job, space, search_options(question.scenario).base);
  const bool on_devices =
      std::ranges::find(offloads, Offload{}, &SearchedOffload::offload) != offloads.end();
  const int most = job.training.stack.zero_stack.empty() ? 1 : 0;
  std::vector<std::string> stages;
  for (int stage = 0; on_devices && stage <= most; ++stage) {
    const bool on_hosts = std::ranges::any_of(offloads, [stage](const SearchedOffload& searched) {
      const std::vector<int>& under = searched.zero_stages;
      return searched.offload != Offload{} &&
             (under.empty() || std::ranges::find(under, stage) != under.end());
    });
    if (on_hosts && space.zero_stage.has(stage)) stages.push_back(fmt::format("ZeRO-{}", stage));
  }
  return stages;
}

// Says that plans which only add copies to the hosts to another plan are not listed.
std::string unlisted_words(const Question& question, const PlanAnswer& answer) {
  const PlanOrder& order = answer.order;
  const bool by_time =
      order.objective == Objective::step_time || order.objective == Objective::cost;
  if (!by_time || order.second || order.valuation.robust) return "";
  const std::string stages =
      fmt::format("{}", fmt::join(offloaded_without_need(question), " and "));
  if (stages.empty()) return "";
  return fmt::format(
      " With {}, what is on the hosts without need is not listed: the same plan with all on the "
      "devices is as fast or faster.",
      stages);
}

// The objectives that bounds refer to.
std::string bounded_words(const PlanOrder& order) {
  if (!order.second) return std::string(objective_words(order.objective));
  return fmt::format("{} and {}", objective_words(order.objective), objective_words(*order.second));
}

// Whether the report shows a plan that is faster than the first.
bool shows_faster(const PlanAnswer& answer, const std::vector<Candidate>& plans) {
  const PlanFindings& findings = answer.findings;
  const auto is_faster = [&plans](const Candidate& other) {
    return other.estimate.feasible && other.estimate.step_time < plans.front().estimate.step_time;
  };
  const auto baseline = [&is_faster](const PlanBaseline& found) {
    return found.candidate && is_faster(*found.candidate);
  };
  return std::ranges::any_of(plans, is_faster) ||
         std::ranges::any_of(findings.baselines, baseline) ||
         (findings.improvement && is_faster(findings.improvement->candidate)) ||
         (findings.explained && findings.explained->candidate &&
          is_faster(*findings.explained->candidate));
}

std::string search_words(const Question& question, const PlanAnswer& answer) {
  const SearchResult& r = answer.result;
  const std::string extent =
      r.optimal ? (r.space_size == 1 ? "It was considered." : "All of them were considered.")
                : fmt::format("Stopped after {} of them: the best {} may be up to {} % lower.",
                              count(r.considered), objective_words(answer.order.objective),
                              percent(r.gap));
  const std::string illegal =
      r.illegal > 0 ? fmt::format(", {} turned out to be illegal", count(r.illegal)) : "";
  return fmt::format(
      "{} of {} in {}: {} left out by a bound on the {}, {} because {} cannot fit{}; {}. {}{}{}",
      counted(r.space_size, "combination"), fmt::join(r.space, ", "), with_unit(answer.wall_time),
      count(r.pruned_by_objective), bounded_words(answer.order), count(r.pruned_by_memory),
      r.pruned_by_memory == 1 ? "it" : "they", illegal, priced_words(r), extent,
      unlisted_words(question, answer), left_out_words(question, r));
}

// Says which plans were simulated, and are ordered by the result.
std::string played_words(const std::vector<Candidate>& plans) {
  const std::size_t played = played_of(plans);
  if (played == 0) return "";
  if (played == plans.size()) return ", as simulated";
  return played == 1 ? "; plan 1 was simulated"
                     : fmt::format("; the first {} as simulated, before all others", played);
}

std::string plans_heading(const PlanAnswer& answer) {
  const PlanOrder& order = answer.order;
  const std::string played = played_words(answer.result.plans);
  if (!order.second) return wrap(fmt::format("best plans by {}{}", order_words(order), played));
  const std::string_view second = objective_words(*order.second);
  const std::string more =
      answer.alike == 0
          ? ""
          : fmt::format("; {} more, each within 1 % of the {} of one shown, are in --format json",
                        count(static_cast<std::int64_t>(answer.alike)), second);
  return wrap(fmt::format("plans that none beats both in {} and in {}{}{}",
                          objective_words(order.objective), second, played, more));
}

// "plans 1, 3: …".
std::string note_words(const PlanNote& note, std::size_t listed) {
  constexpr std::size_t kMost = 8;
  std::vector<std::string> places;
  for (std::size_t i = 0; i < std::min(note.plans.size(), kMost); ++i) {
    places.push_back(fmt::format("{}", note.plans[i] + 1));
  }
  if (note.plans.size() > kMost) {
    places.push_back(fmt::format("{} more", note.plans.size() - kMost));
  }
  std::vector<std::string> whose;
  if (note.plans.size() == listed && listed > 1) {
    whose.emplace_back("all plans");
  } else if (!places.empty()) {
    whose.push_back(
        fmt::format("plan{} {}", places.size() > 1 ? "s" : "", fmt::join(places, ", ")));
  }
  if (note.improvement) whose.emplace_back("the improved one");
  if (whose.empty()) return note.text + ".";
  return fmt::format("{}: {}.", fmt::join(whose, " and "), note.text);
}

std::string written_words(const WrittenPlan& written, const PlanAnswer& answer,
                          const Candidate& first) {
  if (!written.improved) {
    const std::string_view which = answer.result.optimal ? "plan 1" : "plan 1, the best so far";
    return fmt::format("{}: {}.", written.file, which);
  }
  const Candidate& improved = answer.findings.improvement->candidate;
  return fmt::format("{}: the improved plan ({}), {}.", written.file, plan_line(improved.plan),
                     improvement_gain(improved.estimate, first.estimate));
}

std::string misfits_heading(const PlanAnswer& answer, const Style& style) {
  if (!answer.findings.improvement_fits()) {
    return style.bad("no plan fits") + "; these miss the memory by the least\n";
  }
  return style.bad("no plan of the space fits") +
         ", the improved one below does; these miss the memory by the least\n";
}

// The value of a plan beside that of the first, where plans are ordered by neither step time nor
// memory.
std::string valued_words(const PreparedJob& job, const PlanOrder& order, const Candidate& first,
                         const Candidate& candidate) {
  std::vector<std::string> words;
  for (const ValueColumn& value : value_columns(order)) {
    const auto cell = [&](const Candidate& of) { return value.cell(job, order, of); };
    words.push_back(fmt::format("{} {}{}{} (plan 1: {})", value.column.head, cell(candidate),
                                value.column.unit.empty() ? "" : " ", value.column.unit,
                                cell(first)));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

// Changes of the job: ways out where nothing fits, or fewer nodes that are faster.
std::string other_jobs(const PlanFindings& findings, const Style& style) {
  std::string text;
  for (const WayOut& way : findings.ways_out) {
    text += paragraph("a way out", way_out_words(way), style);
  }
  if (findings.fewer_nodes) {
    text += paragraph("fewer nodes", way_out_words(*findings.fewer_nodes), style);
  }
  return text;
}

std::string comparisons(const Question& question, const PlanAnswer& answer, const Style& style) {
  const Cluster& cluster = question.job.job.cluster;
  const SearchResult& result = answer.result;
  const std::vector<Candidate>& plans = result.plans_or_closest();
  std::string text;
  for (std::size_t i = 1; i < std::min(result.plans.size(), answer.top); ++i) {
    text += paragraph(fmt::format("plan {}", i + 1),
                      runner_up_words(question, answer.order, plans[0], plans[i]), style);
  }
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (!plans[i].confirmation) continue;
    text += paragraph(fmt::format("plan {} played", i + 1), confirmation_words(plans[i], cluster),
                      style);
  }
  const PlanFindings& findings = answer.findings;
  if (findings.explained) {
    text += paragraph("explained",
                      fmt::format("{}: {}", pinned_words(findings.explained->pinned),
                                  explained_words(plans[0], *findings.explained, cluster)),
                      style);
  }
  for (const PlanBaseline& baseline : findings.baselines) {
    text += paragraph(baseline.name, baseline_words(question, answer, plans[0], baseline), style);
  }
  if (result.plans.empty()) text += paragraph("why", why_words(result, cluster), style);
  if (!findings.marginal.empty()) text += paragraph("1 % more", marginal_words(answer), style);
  text += other_jobs(findings, style);
  if (findings.improvement) {
    text += paragraph("improved",
                      improvement_words(*findings.improvement, plans,
                                        valued_words(question.job, answer.order, plans.front(),
                                                     findings.improvement->candidate)),
                      style);
  }
  if (findings.cut_short) {
    text += paragraph("cut short",
                      "the search was complete, but was stopped before all was added to it: "
                      "improvements are the best so far, resources or ways out are missing, and "
                      "plans that were not simulated stand behind those that were.",
                      style);
  }
  if (!result.optimal) {
    text += paragraph("left out",
                      "the search was stopped: improvements, what resources are worth and ways out "
                      "were not looked for.",
                      style);
  }
  for (const PlanNote& note : findings.notes) {
    text += paragraph("note", note_words(note, plans.size()), style);
  }
  text += paragraph("search", search_words(question, answer), style);
  if (!findings.written) return text;
  return text + paragraph("wrote", written_words(*findings.written, answer, plans[0]), style);
}

}  // namespace

std::string plan_report(const Question& question, const PlanAnswer& answer, const Style& style) {
  const SearchResult& result = answer.result;
  const bool fits = !result.plans.empty();
  const std::vector<Candidate>& plans = fits ? result.plans : result.closest;
  const Cluster& cluster = question.job.job.cluster;
  const Estimate& best = plans[0].estimate;
  std::string text = job_heading(question, style) + "\n";
  text += fits ? plans_heading(answer) : misfits_heading(answer, style);
  text += plans_table(question, plans, answer.order, style) + "\n";
  text += fmt::format("{}\n", style.strong(fits ? "plan 1" : "the closest"));
  text += step_summary(question, plans[0], style) + "\n";
  text += breakdown_table(best, style) + "\n";
  text += memory_bars(best, cluster.device.memory, style) + "\n";
  if (best.stages.size() > 1) {
    text += stage_table(best, style) + "\n";
  }
  text += comparisons(question, answer, style) + "\n";
  text += verdict(best_known(plans[0]), cluster, style);
  if (!fits && answer.findings.improvement_fits()) {
    const Plan& improved = answer.findings.improvement->candidate.plan;
    return text + style.strong(wrap(fmt::format("Improved, it fits: {}.", plan_line(improved))));
  }
  const std::vector<WayOut>& ways = answer.findings.ways_out;
  const bool by_memory = answer.order.objective == Objective::memory && !answer.order.second;
  if (fits && by_memory) return text + most_memory(best, style);
  if (ways.empty()) {
    return text + advice(question, plans[0], style,
                         {.faster_shown = shows_faster(answer, plans),
                          .is_over = [over = closing_time()](double) { return over(); }});
  }
  return text + style.strong(wrap(fmt::format("The cheapest way out: {}.", ways.front().change)));
}

}  // namespace trainyard

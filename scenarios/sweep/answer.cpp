#include "scenarios/sweep/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <new>
#include <span>
#include <stdexcept>
#include <utility>

#include "model/cost/breakdown.h"
#include "planner/findings/refusal.h"
#include "planner/improved_search.h"
#include "scenarios/plan_value.h"
#include "scenarios/write/groups.h"
#include "simulator/life/bill.h"
#include "simulator/step.h"

namespace trainyard {
namespace {

template <typename Q>
void set_known(PointRow& row, FigureName name, const std::optional<Q>& value) {
  if (value) row.figure(name) = value->value();
}

void set_carbon(const Scenario& settings, FigureName energy, FigureName carbon, PointRow& row) {
  if (settings.carbon_intensity)
    row.figure(carbon) = row.figure(energy) * *settings.carbon_intensity;
}

constexpr std::size_t kFirstPart = figure_at("compute_s");
constexpr bool parts_are_figures() {
  const auto figures = std::span(kFigureNames).subspan(kFirstPart);
  return std::ranges::equal(breakdown_parts(), figures.first(breakdown_parts().size()),
                            [](const BreakdownPart& part, std::string_view figure) {
                              return figure.starts_with(part.key) &&
                                     figure.substr(part.key.size()) == "_s";
                            });
}
static_assert(parts_are_figures(), "the parts of a step are figures, in their order");

void fill_breakdown(const Breakdown& breakdown, PointRow& row) {
  std::size_t at = kFirstPart;
  for (const BreakdownPart& part : breakdown_parts()) {
    row.figures[at++] = (breakdown.*part.time).value();
  }
}

std::string line_of(const Error& error) {
  return error.where.empty() ? error.message : fmt::format("{}: {}", error.where, error.message);
}

// The best plan; if none fits, the one that exceeds the memory by the least.
Expected<Candidate> searched(const PointQuestion& point, Objective objective) {
  SearchOptions options = search_options(*point.settings);
  options.objective = objective;
  options.top = 1;
  options.threads = 1;
  SearchResult result = improved_search(point.job(), options, analytic_evaluator(point.job()));
  auto& found = result.plans_or_closest();
  if (found.empty()) return failure("", none_is_legal(point.job(), options.space, options.base));
  return std::move(found.front());
}

// The scenario's own plan, or else the planner's.
Expected<void> candidate_of(const PointQuestion& point, Objective objective, Candidate& candidate) {
  if (!point.settings->plan) {
    auto found = searched(point, objective);
    if (!found) return tl::unexpected(found.error());
    candidate = std::move(*found);
    return {};
  }
  auto plan = requested_plan(*point.settings, point.job());
  if (!plan) return tl::unexpected(plan.error());
  candidate.plan = std::move(*plan);
  estimate(point.job(), candidate.plan, candidate.estimate);
  return {};
}

Expected<void> simulate_step(const PointQuestion& point, Candidate& candidate) {
  const auto simulation =
      simulate(point.job(), candidate.plan, {.conditions = point.settings->simulation});
  if (!simulation) return tl::unexpected(simulation.error());
  candidate.estimate = as_estimate(point.job(), candidate.plan, *simulation);
  return {};
}

void fill_life(const PointQuestion& point, const LifeSettings& settings, const Campaign& campaign,
               const Candidate& candidate, PointRow& row) {
  const GoodputEstimate closed =
      estimate_goodput(point.job(), candidate.plan, settings.step, point.settings->reliability,
                       point.settings->checkpoint);
  row.figure("goodput") = campaign.goodput.mean;
  row.figure("goodput_p10") = campaign.goodput.low;
  row.figure("goodput_p90") = campaign.goodput.high;
  row.figure("finished") = campaign.finished;
  if (all_ended(settings, campaign)) row.figure("wall_time_s") = campaign.wall.mean;
  row.figure("interruptions") = campaign.interruptions.mean;
  row.figure("closed_form_goodput") = closed.goodput;
  row.figure("mtbf_s") = closed.mtbf.value();
  row.figure("interval_s") = settings.interval.value();
  const Bill bill = bill_of(point.job().job.cluster, candidate.estimate, settings, campaign);
  set_known(row, "cost_usd", bill.cost);
  set_known(row, "energy_joule", bill.energy);
  set_carbon(*point.settings, "energy_joule", "carbon_g", row);
}

Expected<void> live(const PointQuestion& point, const Expected<LifeSettings>& settings,
                    const Candidate& candidate, PointRow& row) {
  if (!settings) return tl::unexpected(settings.error());
  const RunLength& run = point.settings->run;
  const CampaignOptions options{
      .runs = run.runs, .seed = static_cast<std::uint64_t>(run.seed), .threads = 1};
  fill_life(point, *settings, summary_of(live_many(*settings, options)), candidate, row);
  return {};
}

// Makes unknown the figures that groups of unlike nodes do not have in common.
void forget_parts(PointRow& row) {
  const double unknown = std::numeric_limits<double>::quiet_NaN();
  for (const FigureName name :
       {FigureName("hfu"), FigureName("peak_allocated_bytes"), FigureName("peak_reserved_bytes")}) {
    row.figure(name) = unknown;
  }
  std::fill_n(row.figures.begin() + kFirstPart, breakdown_parts().size(), unknown);
}

// Answers a point of groups of unlike nodes, by their best plan.
Expected<void> answer_groups(const PointQuestion& point, const SweepDocument& sweep,
                             PointRow& row) {
  const Scenario& asked = point.question->scenario;
  if (auto known = check_groups_are_answered(sweep, *point.settings); !known) return known;
  const GroupedJob job = grouped_job(asked);
  GroupSearchOptions options = group_options(*point.settings);
  options.objective = sweep.objective;
  const auto answer = answer_of_groups(job, *point.settings, options);
  if (!answer) return tl::unexpected(answer.error());
  if (sweep.evaluate == Evaluation::goodput) {
    const PointQuestion stand_in{
        point.settings, std::make_shared<const Question>(Question{asked, answer->stand_in})};
    auto done =
        live(stand_in, settings_of_run(*point.settings, job, *answer), answer->candidate, row);
    if (!done) return done;
  }
  fill_row(answer->stand_in, *point.settings, answer->candidate, row);
  forget_parts(row);
  row.plan =
      grouped_plan_value(*asked.unlike, answer->best, point.settings->carbon_intensity).dump();
  return {};
}

// Finds the point's candidate, and fills the figures that are not part of its estimate.
Expected<void> evaluate(const PointQuestion& point, const SweepDocument& sweep,
                        Candidate& candidate, PointRow& row) {
  if (sweep.evaluate == Evaluation::plan) {
    auto found = searched(point, sweep.objective);
    if (!found) return tl::unexpected(found.error());
    candidate = std::move(*found);
    return {};
  }
  if (auto done = candidate_of(point, sweep.objective, candidate); !done) return done;
  if (sweep.evaluate == Evaluation::simulate) return simulate_step(point, candidate);
  if (sweep.evaluate != Evaluation::goodput) return {};
  return live(point, settings_of_run(*point.settings, point.job(), candidate), candidate, row);
}

}  // namespace

void fill_row(const PreparedJob& job, const Scenario& settings, const Candidate& candidate,
              PointRow& row) {
  const Estimate& e = candidate.estimate;
  const double devices = candidate.plan.devices();
  row.figure("devices") = devices;
  row.figure("parameters") = job.parameters;
  row.figure("active_parameters") = job.active_parameters;
  row.figure("step_time_s") = e.step_time.value();
  row.figure("step_time_low_s") = e.step_time_low.value();
  row.figure("step_time_high_s") = e.step_time_high.value();
  row.figure("tokens_per_second") = e.tokens_per_second;
  row.figure("tokens_per_second_per_device") = e.tokens_per_second / devices;
  row.figure("model_tflops_per_device") = e.model_flops_per_device.value() * 1e-12;
  row.figure("mfu") = e.mfu;
  row.figure("mfu_bf16") = e.mfu_bf16;
  row.figure("hfu") = e.hfu;
  row.figure("peak_allocated_bytes") = e.peak_allocated.value();
  row.figure("peak_reserved_bytes") = e.peak_reserved.value();
  row.figure("peak_memory_bytes") = e.peak_memory.value();
  fill_breakdown(e.breakdown, row);
  set_known(row, "cost_per_step_usd", e.cost_per_step);
  set_known(row, "energy_per_step_joule", e.energy_per_step);
  set_carbon(settings, "energy_per_step_joule", "carbon_per_step_g", row);
  row.status = e.feasible ? PointStatus::done : PointStatus::too_large;
}

AnsweredLease refused_lease(const Sweep& sweep, Lease lease, const std::string& why) {
  AnsweredLease refused{lease, {}};
  std::vector<SweepValue> values;
  for (std::int64_t point = lease.first; point < lease.first + lease.count; ++point) {
    values_at(sweep, point, values);
    if (!is_asked_for(sweep, values)) continue;
    refused.rows.push_back({.point = point,
                            .status = PointStatus::refused,
                            .overrides = overrides_text(sweep, values),
                            .note = why});
  }
  return refused;
}

bool PointAnswerer::answer(std::int64_t point, PointRow& row) {
  row = {.point = point};
  values_at(sweep_, point, values_);
  if (!is_asked_for(sweep_, values_)) return false;
  row.overrides = overrides_text(sweep_, values_);
  constexpr const char* kNoMemory = "needs more memory than there is";
  try {
    answer_asked(row);
  } catch (const std::bad_alloc&) {
    give_up(kNoMemory, row);
  } catch (const std::length_error&) {  // more than could ever be allocated
    give_up(kNoMemory, row);
  } catch (const std::exception& error) {
    give_up(error.what(), row);
  }
  return true;
}

// Starts afresh, so that nothing that the failed point left behind is used for the next one.
void PointAnswerer::give_up(const char* why, PointRow& row) {
  row = {.point = row.point, .status = PointStatus::refused, .overrides = row.overrides};
  row.note = why;
  candidate_ = {};
  reader_.emplace(sweep_);
}

void PointAnswerer::answer_asked(PointRow& row) {
  const auto refuse = [&row](const Error& error) {
    row.status = PointStatus::refused;
    row.note = line_of(error);
  };
  const auto point = reader_->read(values_);
  if (!point) return refuse(point.error());
  if (point->question->scenario.unlike) {
    const auto done = answer_groups(*point, sweep_.document, row);
    return done ? void() : refuse(done.error());
  }
  auto done = evaluate(*point, sweep_.document, candidate_, row);
  if (done && sweep_.document.evaluate == Evaluation::run) done = run(row);
  if (!done) return refuse(done.error());
  fill_row(point->job(), *point->settings, candidate_, row);
  const bool planned = sweep_.document.evaluate == Evaluation::plan || !point->settings->plan;
  if (planned) row.plan = plan_value(candidate_.plan).dump();
}

// Runs the scenario with the candidate's plan, so that a plan that the planner chose is what runs.
Expected<void> PointAnswerer::run(PointRow& row) const {
  auto scenario = scenario_of_point(sweep_, values_);
  if (!scenario) return tl::unexpected(scenario.error());
  Json document = {{"trainyard", "scenario/1"}};
  document.update(*scenario);
  document["plan"] = plan_value(candidate_.plan);
  const auto measured = runner_(document.dump());
  if (!measured) return tl::unexpected(measured.error());
  row.figure("measured_step_time_s") = measured->step_time.value();
  row.figure("measured_peak_memory_bytes") = measured->peak_memory.value();
  return {};
}

}  // namespace trainyard

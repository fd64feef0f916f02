#include "scenarios/sweep/report/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "planner/findings/baseline.h"
#include "scenarios/fields/documents.h"

namespace trainyard {
namespace {

constexpr std::size_t kBaselinesKept = 256;

// Degrees above 1, by their usual letters.
std::vector<std::pair<std::string_view, int>> degrees_of(const Plan& plan) {
  std::vector<std::pair<std::string_view, int>> degrees;
  for (const auto& [name, degree] : {std::pair<std::string_view, int>{"TP", plan.tensor_parallel},
                                     {"CP", plan.context_parallel},
                                     {"PP", plan.pipeline_parallel},
                                     {"EP", plan.expert_parallel},
                                     {"DP", plan.data_parallel}}) {
    if (degree > 1) degrees.emplace_back(name, degree);
  }
  return degrees;
}

std::string strategy_of(const Plan& plan) {
  std::vector<std::string_view> names;
  for (const auto& [name, degree] : degrees_of(plan)) names.push_back(name);
  std::string text = names.empty() ? "one device" : fmt::format("{}", fmt::join(names, " + "));
  if (plan.zero_stage > 0 && plan.sharding_group > 1) {
    text += fmt::format(", ZeRO {}", plan.zero_stage);
  }
  return text;
}

std::string degrees_in_words(const Plan& plan) {
  std::vector<std::string> parts;
  for (const auto& [name, degree] : degrees_of(plan)) {
    parts.push_back(fmt::format("{} {}", name, degree));
  }
  parts.push_back(fmt::format("micro-batch {}", plan.micro_batch));
  parts.push_back(fmt::format("ZeRO {}", plan.zero_stage));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::optional<BaselineFigures> figures_of(const Expected<Candidate>& candidate) {
  if (!candidate) return std::nullopt;
  const Estimate& estimate = candidate->estimate;
  return BaselineFigures{estimate.step_time.value(), estimate.peak_memory.value(),
                         estimate.feasible, degrees_in_words(candidate->plan)};
}

// The plan that the planner found for a point, from its row's JSON.
std::optional<PlanRequest> request_of_text(const std::string& text) {
  const auto value = parse_json(text);
  static const Document kRow{.name = "plan"};
  const Place place{&kRow, ""};
  if (!value || !check(plan_section().spec(), *value, place)) return std::nullopt;
  PlanRequest request;
  if (!plan_section().read(*value, request, place)) return std::nullopt;
  return request;
}

// "24 devices of dgx-a100-80gb: DP 12, PP 1, 40 layers; …" from a plan of groups that the sweep
// wrote; none if `plan` is something else.
std::optional<std::string> shares_in_words(const Json& plan) {
  std::vector<std::string> shares;
  if (!plan.is_object() || !plan.contains("groups")) return std::nullopt;
  for (const Json& group : plan.at("groups")) {
    const auto known = [&group](const char* key) {
      return group.is_object() && group.contains(key) && group.at(key).is_number_integer();
    };
    if (!known("stages") || !known("layers") || !known("replicas") || !known("devices") ||
        !group.contains("name") || !group.at("name").is_string()) {
      return std::nullopt;
    }
    if (group.at("stages") == 0) continue;
    const auto number = [&group](const char* key) { return group.at(key).get<std::int64_t>(); };
    shares.push_back(fmt::format("{} devices of {}: DP {}, PP {}, {} layers", number("devices"),
                                 group.at("name").get<std::string>(), number("replicas"),
                                 number("stages"), number("layers")));
  }
  return fmt::format("{}", fmt::join(shares, "; "));
}

// Fills in strategy and plan of a point of groups of unlike nodes, as far as its row has them.
void describe_groups(ReportedPoint& reported) {
  const auto plan = parse_json(reported.row.plan);
  if (!plan) return;
  const auto words = shares_in_words(*plan);
  if (!words || !plan->contains("use") || !plan->at("use").is_string()) return;
  reported.strategy = "unlike groups, " + plan->at("use").get<std::string>();
  reported.plan = *words;
}

void widen(double value, double& least, double& most, bool first) {
  least = first ? value : std::min(least, value);
  most = first ? value : std::max(most, value);
}

void add_point(const ReportedPoint& point, StrategyRecord& record) {
  const PointRow& row = point.row;
  if (row.status == PointStatus::too_large) ++record.too_large;
  if (row.status != PointStatus::done) return;
  const bool first = record.done++ == 0;
  widen(row.figure("peak_memory_bytes"), record.least_memory, record.most_memory, first);
  widen(row.figure("devices"), record.least_devices, record.most_devices, first);
  record.best_speed = std::max(record.best_speed, row.figure("tokens_per_second_per_device"));
  record.best_mfu = std::max(record.best_mfu, row.figure("mfu"));
  record.best_total = std::max(record.best_total, row.figure("tokens_per_second"));
}

}  // namespace

Expected<std::unique_ptr<SweepReport>> SweepReport::open(const std::filesystem::path& file) {
  auto results = ResultFile::open(file);
  if (!results) return tl::unexpected(results.error());
  auto sweep =
      sweep_of_text(results->said("document"), results->said("csv"), results->said("file"));
  if (!sweep) return tl::unexpected(sweep.error());
  if (auto known = results->check_points(sweep->points); !known) {
    return tl::unexpected(known.error());
  }
  return std::unique_ptr<SweepReport>(new SweepReport(std::move(*results), std::move(*sweep)));
}

const SweepReport::Baselines& SweepReport::baselines_of(
    const std::shared_ptr<const Question>& question) {
  const auto known = baselines_.find(question.get());
  if (known != baselines_.end()) return known->second;
  if (baselines_.size() >= kBaselinesKept) baselines_.clear();
  const PreparedJob& job = question->job;
  const Evaluator evaluate = analytic_evaluator(job);
  return baselines_
      .emplace(question.get(),
               Baselines{.question = question,
                         .plain = figures_of(data_parallel_only(job, 0, {}, evaluate)),
                         .rule = figures_of(rule_of_thumb(job, {}, evaluate))})
      .first->second;
}

std::optional<PlanRequest> SweepReport::request_of(const PointRow& row,
                                                   const PointQuestion& point) {
  return row.plan.empty() ? point.settings->plan : request_of_text(row.plan);
}

ReportedPoint SweepReport::describe(const PointRow& row) {
  ReportedPoint reported{.row = row, .strategy = "refused"};
  values_at(sweep_, row.point, values_);
  const auto point = reader_.read(values_);
  if (!point) return reported;
  if (point->question->scenario.unlike) {
    describe_groups(reported);
    return reported;
  }
  const Baselines& baselines = baselines_of(point->question);
  reported.plain = baselines.plain;
  reported.rule = baselines.rule;
  const auto request = request_of(row, *point);
  const Job& job = point->job().job;
  const auto plan =
      request ? plan_if_legal(*request, job.model, job.cluster, job.training) : std::nullopt;
  if (!plan) return reported;
  reported.strategy = strategy_of(*plan);
  reported.plan = degrees_in_words(*plan);
  return reported;
}

Expected<std::map<std::string, StrategyRecord>> SweepReport::strategies(
    const std::function<void(const ReportedPoint&)>& also) {
  std::map<std::string, StrategyRecord> records;
  const auto read = results_.each({}, [&](const PointRow& row) {
    const ReportedPoint point = describe(row);
    if (row.status != PointStatus::refused) add_point(point, records[point.strategy]);
    also(point);
    return true;
  });
  if (!read) return tl::unexpected(read.error());
  return records;
}

}  // namespace trainyard

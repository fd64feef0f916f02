#include "scenarios/machine/stack_document.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "model/calibration/accuracy.h"
#include "model/calibration/interval_fit.h"
#include "model/calibration/least_squares.h"
#include "model/calibration/stack_parameters.h"
#include "model/cost/estimate.h"
#include "model/cost/interval.h"
#include "planner/passes/auto_schedule.h"
#include "scenarios/fields/documents.h"
#include "scenarios/fields/reference.h"
#include "scenarios/scenario.h"

namespace trainyard {
namespace {

std::optional<MeasuredRun> run_on(const Stack& stack, const std::string& source,
                                  const Scenario& scenario) {
  const auto step = measured_step_time(scenario);
  if (scenario.job.training.stack.name != stack.name || !scenario.plan || !step) return {};
  Job job = scenario.job;
  job.training.stack = stack;
  PreparedJob prepared = prepare(std::move(job));
  auto plan = complete_plan(prepared, *scenario.plan);
  if (!plan) return {};
  return MeasuredRun{scenario.name, source, std::move(prepared), *std::move(plan), *step};
}

std::string provenance(std::span<const MeasuredRun> runs, const StackFit& fit,
                       std::string_view date) {
  std::vector<std::string> sources;
  for (const SourceError& source : errors_by_source(runs, fit)) {
    sources.push_back(fmt::format("{} {} {:.1f} %", source.rows, source.source, source.mape * 100));
  }
  return fmt::format("fitted {} to {} published runs, MAPE in sample by source: {}", date,
                     runs.size(), fmt::join(sources, ", "));
}

}  // namespace

Expected<StackDocument> read_stack(const std::string& reference, std::string_view asker) {
  auto named = read_named(stack_section(), reference, asker);
  if (!named) return tl::unexpected(std::move(named.error()));
  return StackDocument{std::move(named->content), std::move(named->value)};
}

Expected<std::vector<MeasuredRun>> runs_on(const Stack& stack,
                                           const std::vector<std::filesystem::path>& files) {
  std::vector<MeasuredRun> runs;
  for (const std::filesystem::path& file : files) {
    const auto scenarios = read_scenarios(file);
    if (!scenarios) return tl::unexpected(scenarios.error());
    for (const Scenario& scenario : *scenarios) {
      if (auto run = run_on(stack, file.stem().string(), scenario)) runs.push_back(*std::move(run));
    }
  }
  if (runs.empty()) {
    return tl::unexpected(
        Error{"--stack", fmt::format("found no run on {}; allowed: a stack that some run with a "
                                     "measured step time names",
                                     stack.name)});
  }
  return runs;
}

std::vector<SourceError> errors_by_source(std::span<const MeasuredRun> runs, const StackFit& fit) {
  std::vector<SourceError> sources;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    auto found = std::ranges::find(sources, runs[i].source, &SourceError::source);
    if (found == sources.end()) found = sources.insert(sources.end(), {runs[i].source});
    ++found->rows;
    found->mape += std::abs(fit.errors[i]);
  }
  for (SourceError& source : sources) source.mape /= source.rows;
  return sources;
}

std::string stack_document(const StackDocument& original, std::span<const MeasuredRun> runs,
                           const StackFit& fit, std::string_view date) {
  Stack stack = original.stack;
  stack.evidence = {};
  for (const MeasuredRun& run : runs) add_evidence(run, stack.evidence);
  for (const StackParameter& parameter : stack_parameters()) {
    const auto fitted = std::ranges::find(fit.parameters, parameter.name, &FittedParameter::name);
    if (fitted != fit.parameters.end()) parameter.set(stack, four_digits(fitted->value));
  }
  Json json = {{"trainyard", "stack/1"}};
  json.update(original.value);
  Json sources = json.contains("sources") ? json["sources"] : Json::object();
  json.erase("sources");
  const Json written = stack_section().write(stack);
  json["evidence"] = written.at("evidence");
  const std::string fitted_to = provenance(runs, fit, date);
  for (const FittedParameter& fitted : fit.parameters) {
    const std::string name(fitted.name);
    const auto parameter =
        std::ranges::find(stack_parameters(), fitted.name, &StackParameter::name);
    json[name] = written.at(name);
    sources[name] = fitted.determined ? fitted_to
                                      : fmt::format("not determined by the published runs: {}",
                                                    parameter->source);
  }
  json["sources"] = std::move(sources);
  return text_of(json);
}

Expected<void> check_stack_document(const std::string& text, const std::filesystem::path& file) {
  return check_written(stack_section(), text, file);
}

std::string stack_fit_json(const Stack& stack, std::span<const MeasuredRun> runs,
                           const StackFit& fit) {
  Json parameters = Json::array();
  for (const FittedParameter& parameter : fit.parameters) {
    parameters.push_back({{"name", std::string(parameter.name)},
                          {"value", parameter.value},
                          {"determined", parameter.determined}});
  }
  Json files = Json::array();
  for (const SourceError& source : errors_by_source(runs, fit)) {
    files.push_back({{"file", source.source}, {"rows", source.rows}, {"mape", source.mape}});
  }
  return text_of({{"trainyard", "stack-fit/1"},
                  {"stack", stack.name},
                  {"parameters", std::move(parameters)},
                  {"files", std::move(files)},
                  {"mape", mean_absolute(fit.errors).value_or(0)}});
}

}  // namespace trainyard

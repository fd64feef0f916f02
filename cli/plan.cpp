// trainyard plan SCENARIO
#include "scenarios/write/plan.h"

#include <fmt/format.h>

#include <iterator>
#include <map>
#include <memory>
#include <numeric>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/plan/added_searches.h"
#include "cli/plan/capacity.h"
#include "cli/plan/csv.h"
#include "cli/plan/explain_option.h"
#include "cli/plan/given_plan.h"
#include "cli/plan/groups.h"
#include "cli/plan/report.h"
#include "cli/planner_run.h"
#include "cli/progress.h"
#include "cli/text/estimate.h"
#include "planner/findings/baseline.h"
#include "planner/findings/confirm.h"
#include "planner/findings/refusal.h"
#include "planner/improved_search.h"
#include "planner/rank_orders.h"
#include "scenarios/json/output_file.h"
#include "scenarios/write/groups.h"
#include "simulator/step.h"

namespace trainyard {
namespace {

const std::map<std::string, Objective> kObjectives = [] {
  std::map<std::string, Objective> names;
  for (const Objective objective : {Objective::step_time, Objective::cost, Objective::energy,
                                    Objective::memory, Objective::goodput}) {
    names[std::string(objective_name(objective))] = objective;
  }
  return names;
}();

struct PlanOptions {
  std::filesystem::path file;
  Format format = Format::text;
  int top = 5;
  bool top_is_given = false;
  Objective objective = Objective::step_time;
  std::optional<std::string> explain;
  double time_limit = 0;
  std::filesystem::path out;
  bool robust = false;
  std::vector<std::string> pareto;  // two objectives; empty: none
  int confirm = 0;

  // Every plan that was simulated is shown.
  int shown() const { return std::max(top, confirm); }
  std::optional<Objective> second() const {
    return pareto.empty() ? std::nullopt : std::optional(kObjectives.at(pareto[1]));
  }
};

// Checks that a front has two objectives, and that --robust is asked of times: only they have an
// interval and stragglers.
Expected<void> check_what_is_asked(const PlanOptions& options) {
  const std::string_view name = objective_name(options.objective);
  if (options.second() == options.objective) {
    return failure("--pareto",
                   fmt::format("found {0},{0}; allowed: two different objectives", name));
  }
  if (options.robust && !options.second() && options.objective == Objective::memory) {
    return failure("--robust", fmt::format("found with --objective {}, which no time changes; "
                                           "allowed: with step-time, cost, energy, goodput",
                                           name));
  }
  return {};
}

// Checks that the device states what the objective needs.
Expected<void> check_objective(const PlanOptions& options, const std::string& where,
                               const Device& device) {
  const auto asks = [&options](Objective objective) {
    return options.objective == objective || options.second() == objective;
  };
  if (asks(Objective::cost) && !device.price) {
    return failure(where, "the device has no price, which the cost needs");
  }
  if (asks(Objective::energy) && device.power <= Watts(0)) {
    return failure(where, "the device has no power, which the energy needs");
  }
  return {};
}

// The same for every group that a plan can use, because any of them may be used.
Expected<void> check_objective_of_groups(const PlanOptions& options, const Scenario& scenario) {
  const UnlikeCluster& cluster = *scenario.unlike;
  const std::vector<std::size_t> idle = groups_without_precision(scenario);
  for (std::size_t g = 0; g < cluster.groups.size(); ++g) {
    if (std::ranges::find(idle, g) != idle.end()) continue;
    const Cluster& group = cluster.groups[g];
    const std::string where =
        fmt::format("{}: /cluster/groups/{} ({})", options.file.string(), g, group.name);
    if (auto known = check_objective(options, where, group.device); !known) return known;
  }
  return {};
}

// Refuses options that need a single size.
Expected<void> check_options_of_sizes(const PlanOptions& options) {
  const std::pair<std::string_view, bool> given[] = {{"--top", options.top_is_given},
                                                     {"--out", !options.out.empty()},
                                                     {"--explain", options.explain.has_value()},
                                                     {"--pareto", !options.pareto.empty()},
                                                     {"--confirm", options.confirm > 0}};
  for (const auto& [name, is_given] : given) {
    if (!is_given) continue;
    return failure(std::string(name),
                   "found with sizes in the planner section; allowed: without them");
  }
  return {};
}

Expected<void> check_of_groups(const PlanOptions& options, const Scenario& scenario) {
  if (scenario.plan) return tl::unexpected(in_file(options.file, plan_of_groups()));
  if (options.confirm > 0) {
    return failure("--confirm",
                   "found with groups of unlike nodes; allowed: with one kind of node; trainyard "
                   "simulate plays a pipeline through groups that --out wrote");
  }
  if (options.top_is_given && options.second()) {
    return failure("--top",
                   "found with --pareto on groups of unlike nodes, of which the whole front is "
                   "shown; allowed: without it");
  }
  return check_objective_of_groups(options, scenario);
}

// Refuses objectives that prefer slower plans where there is a deadline, which asks for the fastest
// plan of each size; that is the cheapest one, too.
Expected<void> check_deadline(const PlanOptions& options, const CapacitySpace& sizes) {
  const Objective objective = options.objective;
  const bool slower = objective == Objective::memory || objective == Objective::energy;
  if (!sizes.deadline || !slower) return {};
  return failure("--objective", fmt::format("found {} with /planner/deadline; allowed: step-time, "
                                            "cost, goodput",
                                            objective_name(objective)));
}

// Refuses layers that do not add up to the network's: nothing would be left to search.
Expected<void> check_layers(const std::string& where, const std::vector<int>& layers,
                            const Scenario& scenario) {
  const auto all = std::accumulate(layers.begin(), layers.end(), std::int64_t{0});
  const int allowed = scenario.job.model.layers;
  if (layers.empty() || !scenario.space.models.empty() || all == allowed) return {};
  return failure(where, fmt::format("found {} layers in all; allowed: {}", all, allowed));
}

Expected<void> check(const PlanOptions& options, const std::vector<PinnedKey>& pinned,
                     const Question& question) {
  if (auto asked = check_what_is_asked(options); !asked) return asked;
  const Scenario& scenario = question.scenario;
  const std::string file = options.file.string();
  auto layers = check_layers(fmt::format("{}: /planner/layers_per_stage", file),
                             scenario.space.layers_per_stage, scenario);
  if (!layers) return layers;
  layers = check_layers("--explain: /layers_per_stage",
                        pinned_keys(scenario.space, pinned).layers_per_stage, scenario);
  if (!layers) return layers;
  if (scenario.unlike) return check_of_groups(options, scenario);
  if (asks_for_sizes(scenario.space)) {
    auto checked = check_options_of_sizes(options);
    if (checked) checked = check_deadline(options, scenario.space);
    if (!checked) return checked;
  }
  return check_objective(options, file, question.job.job.cluster.device);
}

SearchOptions planner_options(const PlanOptions& options, const Scenario& scenario) {
  SearchOptions result = search_options(scenario);
  result.objective = options.objective;
  result.second = options.second();
  result.valuation.robust = options.robust;
  result.top = options.shown();
  result.time_limit = Seconds(options.time_limit);
  result.interrupted = interrupt_flag();
  return result;
}

// Notes on the plan found, such as pinned keys that have no effect.
std::vector<std::string> notes_on_pinned(const Job& job, const std::vector<PinnedKey>& pinned,
                                         const Candidate& found) {
  SearchOptions asked;
  asked.space = pinned_keys(PlannerKeys(), pinned);
  std::vector<std::string> texts;
  for (PlanNote& note : notes_on(job, asked, {found}, std::nullopt)) {
    texts.push_back(std::move(note.text));
  }
  return texts;
}

Explained explain(const Question& question, SearchOptions options, std::vector<PinnedKey> pinned) {
  const PlannerKeys keys = pinned_keys(question.scenario.space, pinned);
  options.space = keys;
  options.base.layers_per_stage = keys.layers_per_stage;
  options.top = 1;
  // A pinned schedule asks for a pipeline.
  const Job& job = question.job.job;
  const bool of_pipeline = std::ranges::find(pinned, "schedule", &PinnedKey::key) != pinned.end() &&
                           keys.pipeline_parallel.empty() && job.cluster.devices() > 1;
  if (of_pipeline) {
    options.space.pipeline_parallel = Numbers::between(2, job.cluster.devices());
  }
  Explained explained{.pinned = std::move(pinned)};
  SearchResult result = run_search(question, options);
  if (!result.plans_or_closest().empty()) {
    explained.candidate = result.plans_or_closest().front();
    explained.notes = notes_on_pinned(job, explained.pinned, *explained.candidate);
    return explained;
  }
  if (!result.optimal) {
    explained.reason = "none was found before the search was stopped";
    return explained;
  }
  std::vector<std::string> suspects;
  for (const PinnedKey& pin : explained.pinned) suspects.insert(suspects.begin(), pin.key);
  const auto why = why_none_is_legal(question.job, options.space, options.base, suspects);
  explained.reason =
      why ? fmt::format("/plan/{}: {}", why->where.substr(why->where.rfind('/') + 1), why->message)
          : "none is legal with the other keys as the scenario allows them";
  return explained;
}

// Options of what is added to the search: it runs until Ctrl-C or the end of the whole time limit.
SearchOptions added_options(const PlanOptions& options, const Scenario& scenario) {
  SearchOptions added = planner_options(options, scenario);
  added.time_limit = Seconds(0);
  added.interrupted = stop_flag();
  return added;
}

// The improved plan; nothing after a search that was stopped, whose time is over.
std::optional<Improvement> improvement_of(const PlanOptions& options, const Question& question,
                                          const SearchResult& result) {
  if (!result.optimal) return std::nullopt;
  SearchOptions planner = added_options(options, question.scenario);
  Progress progress("improving");
  planner.progress = [&progress](double fraction) { progress.show(fraction); };
  return improve(question.job, planner, result.plans_or_closest(), analytic_evaluator(question.job),
                 result.to_deal);
}

// Simulates the best plans; a plan that cannot be lowered says why.
void confirm_by_simulation(const Question& question, const SearchOptions& options, int count,
                           SearchResult& result) {
  Progress progress("simulating");
  int done = 0;
  confirm(
      question.job, options, count,
      [&](const Plan& plan) -> Expected<Estimate> {
        progress.show(std::min(1.0, static_cast<double>(done++) / count));
        return simulate(question.job, plan, {.conditions = question.scenario.simulation})
            .map([&](const StepSimulation& simulation) {
              return as_estimate(question.job, plan, simulation);
            });
      },
      result.plans);
}

PlanBaseline baseline_of(std::string_view name, const Question& question,
                         Expected<Candidate> found) {
  if (!found) {
    return {name, std::nullopt,
            illegal_words(name, found.error(), question.job.job.training.stack)};
  }
  std::string reason = misfit_words(*found, question.job.job.cluster);
  if (!reason.empty()) reason = "does not fit: " + reason;
  return {name, *std::move(found), std::move(reason)};
}

std::vector<PlanBaseline> baselines_of(const Question& question, const PlanRequest& base) {
  const PreparedJob& job = question.job;
  const Evaluator evaluate = analytic_evaluator(job);
  const auto is_over = closing_time();
  const auto priced = [&](std::string_view name, const auto& find) {
    if (is_over()) return PlanBaseline{name, std::nullopt, "not priced: the search was stopped"};
    return baseline_of(name, question, find());
  };
  return {priced(kRuleOfThumb, [&] { return rule_of_thumb(job, base, evaluate); }),
          priced(kPlainDdp, [&] { return data_parallel_only(job, 0, base, evaluate); }),
          priced(kPlainFsdp, [&] { return data_parallel_only(job, 3, base, evaluate); })};
}

// Adds baselines, notes and the answer to --explain.
void add_findings(const PlanOptions& options, const Question& question, const SearchResult& result,
                  const std::vector<PinnedKey>& pinned, PlanFindings& findings) {
  const SearchOptions planner = planner_options(options, question.scenario);
  findings.baselines = baselines_of(question, planner.base);
  findings.notes =
      notes_on(question.job.job, planner, result.plans_or_closest(), findings.improvement);
  if (auto given = note_on_given_plan(question.scenario, result.space)) {
    findings.notes.push_back(*std::move(given));
  }
  findings.cut_short = result.optimal && was_stopped();
  if (!pinned.empty()) {
    findings.explained = explain(question, planner, pinned);
  }
}

PlanOrder order_of(const PlanOptions& options, const Scenario& scenario) {
  return {options.objective, options.second(), planner_options(options, scenario).valuation};
}

// Drops plans that were kept for the improvement but are not shown.
void keep_shown(const PlanOptions& options, SearchResult& result) {
  for (std::vector<Candidate>* plans : {&result.plans, &result.closest}) {
    const auto shown = std::min(plans->size(), static_cast<std::size_t>(options.shown()));
    plans->erase(plans->begin() + static_cast<std::ptrdiff_t>(shown), plans->end());
  }
}

Expected<void> write_plan(const PlanOptions& options, const Plan& plan) {
  return scenario_with_plan(options.file, plan, options.out).and_then([&](const std::string& text) {
    return write_file(options.out, text);
  });
}

// Writes the best plan at once, before hours may go into improving it. Not to a pipe or the like,
// where it would stay in front of what is written later.
Expected<void> write_first(const PlanOptions& options, const SearchResult& result) {
  std::error_code ignored;
  const auto kind = std::filesystem::status(options.out, ignored).type();
  const bool replaceable =
      kind == std::filesystem::file_type::not_found || kind == std::filesystem::file_type::regular;
  if (options.out.empty() || result.plans.empty() || !replaceable) return {};
  return write_plan(options, result.plans.front().plan);
}

// Whether the first plan fits, by its simulation where there is one.
bool list_fits(const SearchResult& result) {
  return !result.plans.empty() && best_known(result.plans.front()).feasible;
}

// Writes the best plan: the improved one, which beats the whole list. But a plan that was simulated
// and fits is preferred to one that was not, and a plan that the stack runs to one that it may not
// run. Where nothing in the list fits, nothing was simulated.
Expected<void> write_best(const PlanOptions& options, const Question& question,
                          const SearchResult& result, PlanFindings& findings) {
  const bool played = options.confirm > 0 && list_fits(result);
  const bool improved = findings.improvement_fits() && !played &&
                        runs_order(question.job.job, findings.improvement->candidate.plan);
  if (options.out.empty() || (result.plans.empty() && !improved)) return {};
  findings.written = WrittenPlan{options.out.string(), improved};
  return write_plan(options,
                    improved ? findings.improvement->candidate.plan : result.plans.front().plan);
}

// Notes on options without effect, because no plan of the list fits.
std::vector<PlanNote> notes_on_options(const PlanOptions& options, const SearchResult& result,
                                       const PlanFindings& findings) {
  std::vector<PlanNote> notes;
  if (!result.plans.empty()) return notes;
  if (options.confirm > 0) {
    notes.push_back(
        {.text = "--confirm: no plan of the list fits, so that none was simulated", .plans = {}});
  }
  if (!options.out.empty() && !findings.written) {
    const std::string_view why = findings.improvement_fits()
                                     ? "the stack is not known to run the only plan that fits"
                                     : "no plan fits";
    notes.push_back(
        {.text = fmt::format("--out: {}, so that {} was not written", why, options.out.string()),
         .plans = {}});
  }
  return notes;
}

int print_answer(const PlanOptions& options, const Question& question, SearchResult result,
                 const std::vector<PinnedKey>& pinned) {
  PlanAnswer answer;
  std::optional<AddedSearches> added;
  if (options.format != Format::csv && result.optimal && !was_stopped()) {
    added.emplace(question, added_options(options, question.scenario), result);
  }
  if (options.format != Format::csv || !options.out.empty() || result.plans.empty()) {
    answer.findings.improvement = improvement_of(options, question, result);
  }
  const bool fits = list_fits(result) || answer.findings.improvement_fits();
  const int status = fits ? kDone : kAnswerIsNo;
  if (const auto written = write_best(options, question, result, answer.findings); !written) {
    return fail(written.error(), kMachineFailed);
  }
  if (!options.second()) keep_shown(options, result);
  std::vector<PlanNote> notes = notes_on_options(options, result, answer.findings);
  if (options.format == Format::csv) {
    for (const PlanNote& note : notes) fail({"", note.text});
    return print(plan_csv(question, result, order_of(options, question.scenario)), status);
  }
  answer.wall_time = elapsed();
  answer.top = static_cast<std::size_t>(options.shown());
  answer.order = order_of(options, question.scenario);
  if (options.format == Format::text && answer.order.second) {
    const std::size_t all = result.plans.size();
    result.plans = distinct_plans(question, std::move(result.plans), answer.order);
    answer.alike = all - result.plans.size();
  }
  if (added) added->take(answer.findings);
  add_findings(options, question, result, pinned, answer.findings);
  std::ranges::move(notes, std::back_inserter(answer.findings.notes));
  if (options.format == Format::json) {
    return print(
        plan_json(question.scenario, question.job, result, answer.findings, answer.wall_time),
        status);
  }
  answer.result = std::move(result);
  return print(plan_report(question, answer, style_for(stdout)), status);
}

// Prints one line that no plan is legal; in JSON also the usual document.
int print_none_legal(const PlanOptions& options, const Question& question,
                     const SearchOptions& planner, const SearchResult& result) {
  const std::string why = none_is_legal(question.job, planner.space, planner.base);
  fail({options.file.string(), why});
  if (options.format != Format::json) return kAnswerIsNo;
  PlanFindings findings;
  findings.notes.push_back({.text = why, .plans = {}});
  return print(plan_json(question.scenario, question.job, result, findings, elapsed()),
               kAnswerIsNo);
}

// Reduces the memory that plans may use: for --robust the high end of its interval must fit too.
Question with_room(Question question) {
  Job& job = question.scenario.job;
  job.cluster.memory_share = robust_memory_share(job.training.stack);
  question.job = prepare(job);
  if (!question.scenario.unlike) return question;
  for (Cluster& group : question.scenario.unlike->groups) {
    group.memory_share = job.cluster.memory_share;
  }
  return question;
}

Expected<Question> question_to_plan(const PlanOptions& options) {
  auto question = read_question(options.file, NodeKinds::any);
  return question && options.robust ? with_room(*std::move(question)) : std::move(question);
}

int run(const PlanOptions& options) {
  const InterruptOnTermination as_interrupt;
  std::vector<PinnedKey> pinned;
  if (options.explain) {
    auto parsed = parse_pinned_keys(*options.explain);
    if (!parsed) {
      return fail(parsed.error());
    }
    pinned = *std::move(parsed);
  }
  const auto question = question_to_plan(options);
  if (!question) {
    return fail(question.error());
  }
  const auto checked =
      check(options, pinned, *question).and_then([&] { return check_output(options.out); });
  if (!checked) {
    return fail(checked.error());
  }
  if (question->scenario.unlike) {
    return answer_for_groups(options.file, *question,
                             {.top = options.top,
                              .objective = options.objective,
                              .second = options.second(),
                              .robust = options.robust,
                              .time_limit = Seconds(options.time_limit),
                              .format = options.format,
                              .pinned = std::move(pinned),
                              .out = options.out});
  }
  const SearchOptions planner = planner_options(options, question->scenario);
  if (asks_for_sizes(question->scenario.space)) {
    return answer_for_sizes(options.file, *question, planner, options.format);
  }
  SearchResult result = run_search(*question, with_kept_for_improvement(planner));
  // There is an answer now: Ctrl-C only cuts short what is added to it.
  const InterruptGuard guard;
  std::optional<AddedTime> added;
  if (options.time_limit > 0) added.emplace(Seconds(options.time_limit) - elapsed());
  if (options.confirm > 0) {
    confirm_by_simulation(*question, added_options(options, question->scenario), options.confirm,
                          result);
  }
  if (was_interrupted() && result.plans.empty()) {
    return fail(nothing_before_interruption(options.file), kInterrupted);
  }
  if (result.plans_or_closest().empty()) {
    if (!result.optimal) return fail(nothing_before_time_limit(options.file), kInterrupted);
    return print_none_legal(options, *question, planner, result);
  }
  if (const auto written = write_first(options, result); !written) {
    return fail(written.error(), kMachineFailed);
  }
  return print_answer(options, *question, std::move(result), pinned);
}

void add_what_is_asked(CLI::App& command, PlanOptions& options) {
  command
      .add_option_function<int>(
          "--top",
          [&options](int top) {
            options.top = top;
            options.top_is_given = true;
          },
          "best plans to show")
      ->check(whole_number(1, 1000))
      ->type_name("N")
      ->default_str("5");
  command
      .add_option_function<std::string>(
          "--objective",
          [&options](const std::string& name) { options.objective = kObjectives.at(name); },
          "what the best plan has least of; of goodput the most")
      ->check(one_name_of(names_in(kObjectives)))
      ->option_text("step-time|cost|energy|memory|goodput=step-time");
  CLI::Option* pareto = command
                            .add_option_function<std::vector<std::string>>(
                                "--pareto",
                                [&options](const std::vector<std::string>& names) {
                                  options.pareto = names;
                                  options.objective = kObjectives.at(names[0]);
                                },
                                "plans that none beats in both objectives; not with --objective")
                            ->delimiter(',')
                            ->expected(2)
                            ->check(one_name_of(names_in(kObjectives)))
                            ->option_text("A,B");
  pareto->excludes("--objective");
  command.add_flag("--robust", options.robust,
                   "by the intervals' high ends, of memory too; stragglers included");
  command
      .add_option("--confirm", options.confirm,
                  "simulate the best K and order them by what that finds")
      ->check(whole_number(1, 1000))
      ->type_name("K");
}

}  // namespace

void add_plan(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("plan", "the best plans for a job, and why the others lost");
  auto options = std::make_shared<PlanOptions>();
  command->add_option("SCENARIO", options->file, "scenario document")->required();
  add_what_is_asked(*command, *options);
  command
      ->add_option("--explain", options->explain,
                   "why not these? Long names, or tp sp cp pp vp dp ep etp mb zero")
      ->type_name("KEY=VALUE,…");
  command
      ->add_option("--time-limit", options->time_limit,
                   "seconds after which the best so far is shown")
      ->check(positive_seconds)
      ->type_name("S");
  command
      ->add_option("-o,--out", options->out, "write the scenario with the best plan that is shown")
      ->check(names_a_file)
      ->type_name("FILE");
  add_format(*command, options->format);
  add_example(
      *command,
      "trainyard plan scenarios/examples/llama-3.1-405b-2048-h100.json --explain tp=8,pp=16");
  command->callback([&action, options] { action = [options] { return run(*options); }; });
}

}  // namespace trainyard

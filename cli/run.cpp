// trainyard run SCENARIO
#include "cli/text/run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/planner_run.h"
#include "cli/progress.h"
#include "cli/run/cuda_program.h"
#include "cli/run/rank_reporter.h"
#include "cli/run/run_profile.h"
#include "cli/text/csv.h"
#include "executor/host/machine_memory.h"
#include "executor/host/standard_error.h"
#include "executor/scale_down.h"
#include "executor/supervision/start.h"
#include "executor/supervision/supervisor.h"
#include "executor/token_file.h"
#include "model/cost/memory/memory.h"
#include "model/cost/sharding/stage_parameters.h"
#include "model/program/lower.h"
#include "planner/request.h"
#include "scenarios/json/output_file.h"
#include "scenarios/question.h"
#include "scenarios/text/readable.h"
#include "scenarios/write/profile.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostSeed = 9'000'000'000'000'000;  // largest that a profile holds

struct RunOptions {
  fs::path file;
  BackendKind backend = BackendKind::cpu;
  int ranks = 0;  // 0: as many as the plan has
  RunPlan plan;
  double timeout = 60;  // s
  std::uint64_t seed = 0;
  bool scale_down = false, alone = false;
  std::string scaled_down;  // what --scale-down changed
  bool watch = false;
  int rank = 0;                         // the rank that runs alone
  std::optional<double> learning_rate;  // none: the optimizer's own
  fs::path profile;                     // empty: none is written
  fs::path trace;                       // empty: none is written
  fs::path tokens;                      // empty: by the seed
  Format format = Format::text;
  std::vector<std::string> arguments;  // command line of a rank process
};

Descent descent_of(const Training& training, std::optional<double> learning_rate) {
  const bool adam = training.optimizer.name != "sgd";
  Descent descent{.learning_rate = adam ? 1e-3 : 0.1, .momentum = 0.9};
  if (training.optimizer.name == "adamw") descent.weight_decay = 0.1;
  descent.learning_rate = learning_rate.value_or(descent.learning_rate);
  return descent;
}

// The question of the scaled-down run.
Expected<Question> scaled_down(RunOptions& options, const Question& question, const Plan& plan) {
  auto smaller = scale_down(question.job.job, request_of(plan), plan, options.ranks);
  if (!smaller) return tl::unexpected(smaller.error());
  for (const std::string& change : smaller->changes) {
    to_stderr(fmt::format("scaled down: {}\n", change));
  }
  options.scaled_down = fmt::format("{}", fmt::join(smaller->changes, ", "));
  Question out{question.scenario, prepare(smaller->job)};
  out.scenario.job = smaller->job;
  out.scenario.plan = smaller->request;
  if (!smaller->changes.empty()) {
    const Cluster& cluster = smaller->job.cluster;
    const int ranks = cluster.nodes * cluster.devices_per_node;
    out.scenario.name += fmt::format(", scaled down to {} rank{}", ranks, ranks == 1 ? "" : "s");
  }
  return out;
}

// The error for --ranks where the plan has so many.
tl::unexpected<Error> not_its_ranks(const RunOptions& options, int ranks) {
  const bool fewer = options.ranks < ranks;
  return failure(
      "--ranks",
      fmt::format("found {}; the plan of {} has {} ranks{}", options.ranks, options.file.string(),
                  ranks, fewer ? " (--scale-down derives a smaller one)" : ": no more can run it"));
}

// Finds the plan; if a smaller run is asked for, replaces the question by that of the smaller run.
Expected<Plan> plan_for(RunOptions& options, Question& question) {
  auto plan = plan_of(options.file, question);
  if (!plan || !options.scale_down || options.ranks == 0) return plan;
  if (options.ranks > plan->devices()) return not_its_ranks(options, plan->devices());
  auto smaller = scaled_down(options, question, *plan);
  if (!smaller) return tl::unexpected(smaller.error());
  question = *std::move(smaller);
  return plan_of(options.file, question);
}

Expected<void> check_ranks(const RunOptions& options, int ranks) {
  if (options.alone && options.rank >= ranks) {
    return failure("--rank", fmt::format("found {}; the plan of {} has {} ranks, from 0",
                                         options.rank, options.file.string(), ranks));
  }
  if (options.alone || options.scale_down || options.ranks == 0 || options.ranks == ranks) {
    return {};
  }
  return not_its_ranks(options, ranks);
}

// Tokens of a file that the steps read, targets included.
std::int64_t tokens_of(const Job& job, const RunPlan& plan) {
  const Training& training = job.training;
  return plan.all_steps() * training.global_batch * training.sequence_length + 1 +
         job.model.mtp_layers;
}

Expected<Setting> setting_of(RunOptions& options, Question& question) {
  auto plan = plan_for(options, question);
  if (!plan) return tl::unexpected(plan.error());
  const Job& job = question.job.job;
  Setting setting{job.model, job.training, *std::move(plan)};
  setting.seed = options.seed;
  setting.marks_unknown = options.plan.verify;
  setting.descent = descent_of(job.training, options.learning_rate);
  if (!options.tokens.empty()) {
    auto tokens = read_tokens(options.tokens, job.model.vocabulary, tokens_of(job, options.plan));
    if (!tokens) return tl::unexpected(tokens.error());
    setting.tokens = *std::move(tokens);
  }
  if (auto missing = not_executed(setting, options.backend)) {
    return tl::unexpected(in_file(options.file, *missing));
  }
  if (auto right = check_ranks(options, setting.plan.devices()); !right) {
    return tl::unexpected(right.error());
  }
  return setting;
}

// ---- Memory ------------------------------------------------------------------------------------

// The least that `ranks` ranks of this machine hold from the first step to the last (weights,
// gradients, optimizer states), if they are the ranks that hold least.
Bytes states_of(const RunOptions& options, const Question& question, const Setting& setting,
                int ranks) {
  const Training& training = question.job.job.training;
  std::vector<StageParameters> stages;
  stage_parameters(question.job, setting.plan, stages);
  const auto of_stage = [&](int index) {
    const auto stage = static_cast<std::size_t>(index);
    return (state_memory(training, setting.plan, stages[stage]).allocated() +
            states_at(training, setting.plan, stages[stage], OffloadTarget::host).allocated());
  };
  const RankLayout layout(setting.plan, setting.model.kv_heads);
  if (options.alone) return of_stage(layout.coordinates(options.rank).stage);
  std::vector<Bytes> of_ranks;
  of_ranks.reserve(stages.size());
  for (int stage = 0; stage < setting.plan.pipeline_parallel; ++stage)
    of_ranks.push_back(of_stage(stage));
  std::ranges::sort(of_ranks);
  const int of_a_stage = setting.plan.devices() / setting.plan.pipeline_parallel;
  Bytes all;
  for (const Bytes of_rank : of_ranks) {
    const int here = std::min(ranks, of_a_stage);
    all += here * of_rank;
    ranks -= here;
  }
  return all;
}

std::string_view advice(const RunOptions& options, const Plan& plan) {
  if (options.alone || plan.devices() == 1) return "a plan with smaller shards is needed";
  return "--scale-down derives a smaller run, --alone runs one rank";
}

// Checks before any rank allocates memory: a machine that runs out of it kills processes that have
// nothing to do with the run. `ranks`: number of ranks on this machine.
Expected<void> check_memory(const RunOptions& options, const Question& question,
                            const Setting& setting, int ranks) {
  if (options.backend == BackendKind::cuda) return {};  // each allocation is checked there
  const Bytes machine = machine_memory();
  const Bytes states = states_of(options, question, setting, ranks);
  if (states <= machine || machine == Bytes(0)) return {};
  return failure(options.file.string(),
                 fmt::format("found weights, gradients and optimizer states of {}; this machine "
                             "has {} ({})",
                             with_unit(states), with_unit(machine), advice(options, setting.plan)));
}

// ---- Of a rank -----------------------------------------------------------------------------

// File for the profile of a rank that ends before the others.
fs::path rank_file(const fs::path& file, int rank) {
  fs::path own = file;
  own.replace_extension(fmt::format(".rank-{}{}", rank, file.extension().string()));
  return own;
}

Profile profile_with(const RunOptions& options, const Question& question, const Setting& setting,
                     std::vector<std::optional<Board>>& boards) {
  Profile profile = profile_of(question, setting, options.plan, boards);
  profile.tokens = options.tokens.string();
  profile.scaled_down = options.scaled_down;
  if (options.alone) profile.name += fmt::format(", rank {} alone", options.rank);
  return profile;
}

void save_rank(const RunOptions& options, const Question& question, const Setting& setting,
               Board& board, const std::string& why) {
  if (options.profile.empty()) return;
  std::vector<std::optional<Board>> boards;
  auto copy = Board::copied(board.bytes());
  if (!copy) return;
  boards.emplace_back(*std::move(copy));
  Profile profile = profile_with(options, question, setting, boards);
  profile.failure = why;
  // An error is ignored: nobody is left to tell.
  (void)write_file(rank_file(options.profile, board.head().rank), profile_document(profile));
}

int answer(const RunOptions& options, const Question& question, const Setting& setting,
           std::vector<std::optional<Board>> boards, const std::string& failed, bool interrupted);

int run_rank_process(const RunOptions& options, const Question& question, const Setting& setting,
                     const Started& started) {
  const Launcher& launcher = started.launcher;
  if (!started.folder && launcher.ranks != setting.plan.devices() && !options.alone) {
    return fail({"command line",
                 fmt::format("found {} ranks, started by a launcher; allowed: {}, as the plan has",
                             launcher.ranks, setting.plan.devices())});
  }
  if (!started.folder) {
    const auto room = check_memory(options, question, setting, launcher.local_ranks);
    if (!room) return fail(room.error());
  }
  auto result =
      run_as_rank(started, setting, options.plan, [&](Board& board, const std::string& why) {
        save_rank(options, question, setting, board, why);
      });
  if (!result) return fail(result.error(), kMachineFailed);
  if (result->is_said) return kMachineFailed;
  if (!result->failure.empty()) return fail({"", result->failure}, kMachineFailed);
  if ((result->rank != 0 && !options.alone) || result->boards.empty()) return kDone;
  std::vector<std::optional<Board>> boards;
  for (Board& board : result->boards) boards.emplace_back(std::move(board));
  return answer(options, question, setting, std::move(boards), "", false);
}

// ---- Of the supervisor -------------------------------------------------------------------------

// A hint on what may make weights differ although the program is right.
std::string near_ties(const RunOptions& options, const Setting& setting) {
  const bool chosen = setting.model.experts > setting.model.experts_per_token;
  if (!chosen || options.plan.all_steps() == 1) return "";
  return "From the second step on a token whose scores nearly tie may go to another expert, which "
         "Adam's noise decides: --steps 1 --warmup 0, or a smaller --learning-rate, tells that "
         "from a wrong program.\n";
}

// Whether a run with --verify ended before everything was compared.
bool is_unverified(const RunOptions& options, const BoardHead& head) {
  return options.plan.verify && head.state != RankState::done;
}

std::optional<Verification> verification(const RunOptions& options, const BoardHead& head) {
  if (!options.plan.verify || head.compared == 0) return std::nullopt;
  Verification found{.compared = head.compared,
                     .differing = head.differ,
                     .furthest = head.worst.data(),
                     .complete = !is_unverified(options, head)};
  if (head.worst_share < kNoShare) found.furthest_share = head.worst_share;
  return found;
}

std::string verdict_so_far(const BoardHead& head) {
  if (head.compared == 0) return "Interrupted: NOT VERIFIED, nothing was compared.\n";
  return fmt::format(
      "Interrupted: NOT VERIFIED, the weights were not compared. {} tensors and scalars of the "
      "first step agree with the network on one rank; {} is the furthest off, at {:.3f} of what is "
      "allowed.\n",
      head.compared, head.worst.data(), head.worst_share);
}

std::string verdict(const BoardHead& head, const RunOptions& options, const Setting& setting) {
  if (is_unverified(options, head) && head.differ == 0) return verdict_so_far(head);
  if (!options.plan.verify || head.compared == 0) return "";
  if (head.differ == 0) {
    return fmt::format(
        "Verified against the network on one rank: {} tensors and scalars agree; {} is the "
        "furthest off, at {:.3f} of what is allowed.\n",
        head.compared, head.worst.data(), head.worst_share);
  }
  if (head.worst_share >= kNoShare) {
    return fmt::format(
        "DIFFERS from the network on one rank: {} of {} tensors and scalars; of {} something is "
        "no number, or no rank has it.\n",
        head.differ, head.compared, head.worst.data());
  }
  return fmt::format(
      "DIFFERS from the network on one rank: {} of {} tensors and scalars; {} is {:.3g} times as "
      "far off as allowed.\n{}",
      head.differ, head.compared, head.worst.data(), head.worst_share, near_ties(options, setting));
}

std::vector<CsvRow> rows_of(const Profile& profile) {
  std::vector<CsvRow> rows;
  rows.reserve(profile.operations.size());
  for (const ProfiledOperation& of : profile.operations) {
    rows.push_back({{"stage", fmt::format("{}", of.stage)},
                    {"operation", of.operation},
                    {"tasks", fmt::format("{}", of.tasks)},
                    {"predicted_s", csv_number(of.predicted.value())},
                    {"measured_s", csv_number(of.measured.value())},
                    {"class", of.of_class}});
  }
  return rows;
}

std::string printed(const Profile& profile, Format format, const std::string& checked) {
  switch (format) {
    case Format::json:
      return profile_document(profile);
    case Format::csv:
      return csv_text(rows_of(profile));
    case Format::text:
      break;
  }
  return run_report(profile, style_for(stdout)) + checked;
}

// The exit status by what the first rank found: numbers that differ, or a comparison that did not
// end.
int status_of(const RunOptions& options, const std::optional<Board>& first) {
  if (!first) return kDone;
  if (first->head().differ > 0) return kAnswerIsNo;
  return is_unverified(options, first->head()) ? kInterrupted : kDone;
}

int answer(const RunOptions& options, const Question& question, const Setting& setting,
           std::vector<std::optional<Board>> boards, const std::string& failed, bool interrupted) {
  const int found = status_of(options, boards.front());
  const bool complete = boards.front() && failed.empty();
  const std::string checked = complete ? verdict(boards.front()->head(), options, setting) : "";
  Profile profile = profile_with(options, question, setting, boards);
  profile.failure = interrupted ? "interrupted" : failed;
  if (complete) profile.verification = verification(options, boards.front()->head());
  int status = kDone;
  if (!options.profile.empty()) {
    const auto written = write_file(options.profile, profile_document(profile));
    if (!written) status = fail(written.error(), kMachineFailed);
  }
  if (!options.trace.empty()) {
    const auto written =
        write_file(options.trace, run_trace(question, setting, options.plan, boards));
    if (!written) status = fail(written.error(), kMachineFailed);
  }
  if (interrupted && profile.steps.empty()) return kInterrupted;
  const int shown = print(printed(profile, options.format, checked), status);
  if (!failed.empty()) return fail({"", failed}, kMachineFailed);
  return shown != kDone ? shown : found;
}

int supervise(const RunOptions& options, const Question& question, const Setting& setting) {
  const auto room = check_memory(options, question, setting, setting.plan.devices());
  if (!room) return fail(room.error());
  const auto program = lower(setting.model, setting.training, setting.plan);
  if (!program) return fail(in_file(options.file, program.error()));
  const RankLayout layout(setting.plan, setting.model.kv_heads);
  const TerminationGuard guard;
  Progress progress("running");
  RankLaunch what{.command = options.arguments, .ranks = options.alone ? 1 : layout.ranks()};
  what.timeout = Seconds(options.timeout);
  what.words = words_of(*program, layout);
  what.interrupted = was_interrupted;
  what.progress = [&progress](double fraction) { progress.show(fraction); };
  RankReporter reporter(what.words.described);
  if (options.watch) {
    what.looked = [&reporter](auto& boards) { reporter.look(boards); };
  }
  auto launched = launch(what);
  if (!launched) return fail(launched.error(), kMachineFailed);
  if (options.watch) reporter.say(launched->boards);
  return answer(options, question, setting, std::move(launched->boards), launched->failure,
                launched->interrupted);
}

// Checks a learning rate: CLI11's ranges let "nan" through. from_chars leaves `rate` unchanged
// where no double holds the number.
std::string learning_rate(const std::string& text) {
  double rate = 0;
  const char* end = text.data() + text.size();
  const auto [rest, wrong] = std::from_chars(text.data(), end, rate);
  if (wrong == std::errc() && rest == end && rate >= 0 && rate <= kMostLearningRate) return {};
  return fmt::format("found \"{}\", allowed a number from 0 to {}", text, kMostLearningRate);
}

// A file as an argument: a relative name that begins with a dash would be taken for an option.
std::string as_argument(const fs::path& file) {
  return (file.is_relative() ? "." / file : file).string();
}

// The command line for a rank process.
std::vector<std::string> rank_arguments(const RunOptions& options) {
  std::error_code error;
  std::vector<std::string> list = {fs::read_symlink("/proc/self/exe", error).string(),
                                   "run",
                                   as_argument(options.file),
                                   "--backend",
                                   std::string(name_of(options.backend)),
                                   "--steps",
                                   fmt::format("{}", options.plan.steps),
                                   "--warmup",
                                   fmt::format("{}", options.plan.warmup),
                                   "--seed",
                                   fmt::format("{}", options.seed)};
  if (options.learning_rate) {
    list.insert(list.end(), {"--learning-rate", fmt::format("{}", *options.learning_rate)});
  }
  if (options.scale_down) {
    list.insert(list.end(), {"--scale-down", "--ranks", fmt::format("{}", options.ranks)});
  }
  if (options.alone)
    list.insert(list.end(), {"--alone", "--rank", fmt::format("{}", options.rank)});
  if (!options.tokens.empty()) list.insert(list.end(), {"--tokens", options.tokens.string()});
  if (options.plan.verify) list.emplace_back("--verify");
  if (options.plan.same_batch) list.emplace_back("--same-batch");
  return list;
}

// The canonical path, or the given one where there is none (/dev/stdout that is a pipe).
fs::path canonical_or_given(const fs::path& file) {
  std::error_code none;
  const fs::path canonical = fs::weakly_canonical(file, none);
  return none ? file : canonical;
}

Expected<void> check_outputs(const RunOptions& options) {
  for (const fs::path& file : {options.profile, options.trace}) {
    if (auto writable = check_output(file, {options.file, options.tokens}); !writable) {
      return writable;
    }
  }
  const bool both = !options.profile.empty() && !options.trace.empty();
  if (!both || canonical_or_given(options.profile) != canonical_or_given(options.trace)) return {};
  return failure("command line", fmt::format("found {} as --output and as --trace; allowed: a "
                                             "file each",
                                             options.profile.string()));
}

// Whether a launcher's variables are left over: it started one process, not the plan's ranks, and
// its variables stay in shells that it starts.
bool is_leftover(const Started& started, const RunOptions& options, const Plan& plan) {
  return !started.folder && started.launcher.ranks == 1 && !options.alone && plan.devices() > 1;
}

int run(RunOptions& options) {
  if (options.alone && options.plan.verify) {
    return fail({"command line", "found --alone with --verify; allowed: one of them"});
  }
  if (options.alone) options.plan.alone = options.rank;
  options.plan.backend = options.backend;
  options.plan.timeout = Seconds(options.timeout);
  const auto started = started_as_rank();
  if (!started) return fail(started.error());
  if (const auto writable = check_outputs(options); !writable) return fail(writable.error());
  if (options.backend == BackendKind::cuda) {
    if (const auto error = become_cuda_program()) return fail(*error, kMachineFailed);
    if (const auto error = not_available(options.backend)) return fail(*error, kMachineFailed);
  }
  auto question = read_question(options.file);
  if (!question) return fail(question.error());
  const auto setting = setting_of(options, *question);
  if (was_interrupted()) return kInterrupted;
  if (!setting) return fail(setting.error());
  if (*started && !is_leftover(**started, options, setting->plan)) {
    return run_rank_process(options, *question, *setting, **started);
  }
  options.arguments = rank_arguments(options);
  return supervise(options, *question, *setting);
}

void add_training(CLI::App& command, RunOptions& options) {
  command.add_flag("--same-batch", options.plan.same_batch, "every step sees the first batch");
  command.add_option("--seed", options.seed, "of weights, tokens and dropout")
      ->check(whole_number(0, kMostSeed))
      ->type_name("N")
      ->capture_default_str();
  command
      .add_option("--tokens", options.tokens,
                  "a file of tokens to train on, 2 bytes each (4 where the vocabulary is larger)")
      ->type_name("FILE");
  command
      .add_option("--learning-rate", options.learning_rate, "else 0.001 with Adam, 0.1 with sgd")
      ->check(learning_rate)
      ->type_name("RATE");
}

void add_outputs(CLI::App& command, RunOptions& options) {
  command.add_option("-o,--out,--output", options.profile, "the profile, a profile/1 document")
      ->check(names_a_file)
      ->type_name("FILE");
  command
      .add_option("--trace", options.trace,
                  "the last step of each rank, predicted beside measured, for ui.perfetto.dev")
      ->check(names_a_file)
      ->type_name("FILE");
  command.add_flag("--watch", options.watch,
                   "a line of JSON on stderr, five times a second, that says where every rank is");
  add_format(command, options.format);
}

void add_options(CLI::App& command, RunOptions& options) {
  command
      .add_option("SCENARIO", options.file, "scenario document; without `plan` the best is found")
      ->required();
  add_backend(command, options.backend, "what runs it");
  command.add_option("--ranks", options.ranks, "as many as the plan has, which is the default")
      ->check(whole_number(1, 65536))
      ->type_name("N");
  command
      .add_flag("--scale-down", options.scale_down,
                "where the plan has more ranks than --ranks: fewer replicas, then fewer stages, "
                "then fewer experts")
      ->needs("--ranks");
  command.add_flag("--alone", options.alone,
                   "one rank's program with local copies in the place of its peers: its times are "
                   "real, its numbers are not");
  command.add_option("--rank", options.rank, "with --alone: which rank, from 0")
      ->check(whole_number(0, 1000000))
      ->needs("--alone")
      ->type_name("R")
      ->capture_default_str();
  command.add_option("--steps", options.plan.steps, "measured steps")
      ->check(whole_number(1, 1000000))
      ->type_name("N")
      ->capture_default_str();
  command.add_option("--warmup", options.plan.warmup, "steps before them that are not counted")
      ->check(whole_number(0, 1000000))
      ->type_name("N")
      ->capture_default_str();
  command.add_flag("--verify", options.plan.verify,
                   "compare gradients and weights with the network on one rank; exit status 1 when "
                   "they differ");
  add_training(command, options);
  command
      .add_option("--timeout", options.timeout,
                  "seconds without an operation on any rank after which the run has failed")
      ->check(positive_seconds)
      ->type_name("S")
      ->capture_default_str();
  add_outputs(command, options);
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("run", "the plan for real: every operation executed, timed and checked");
  auto options = std::make_shared<RunOptions>();
  add_options(*command, *options);
  add_example(*command, "trainyard run scenarios/examples/tiny-llama-8-ranks.json --verify");
  command->callback([&action, options] { action = [options] { return run(*options); }; });
}

}  // namespace trainyard

// trainyard sweep SWEEP -o RESULTS.sqlite
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>

#include "cli/command.h"
#include "cli/csv.h"
#include "cli/plan_search.h"
#include "cli/progress.h"
#include "cli/sweep_text.h"
#include "scenarios/sweep/worker_processes.h"

namespace trainyard {
namespace {

struct SweepCommand {
  std::filesystem::path file, out;
  int threads = 0, ranks = 0;  // 0: not said
  Format format = Format::text;
};

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

// The variables by which launchers tell a process how many there are.
int ranks_of_launcher() {
  int most = 1;
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const char* text = std::getenv(name);
    if (text == nullptr) continue;
    int ranks = 0;
    std::from_chars(text, text + std::strlen(text), ranks);
    most = std::max(most, ranks);
  }
  return most;
}

// Threads of this process, or processes of their own.
Expected<SweepOutcome> answer(const Sweep& sweep, SweepStore& store, WorkerProcesses* ranks,
                              int workers) {
  const InterruptGuard guard;
  Progress progress("sweeping");
  const SweepOptions options{.workers = workers,
                             .interrupted = interrupt_flag(),
                             .progress = [&progress](double fraction) { progress.show(fraction); }};
  return ranks != nullptr ? ranks->run(sweep, store, options) : run_sweep(sweep, store, options);
}

CsvRow row_of_summary(const SweepSummary& summary) {
  CsvRow row = {{"name", summary.name}};
  for (const auto& [key, value] :
       {std::pair<const char*, std::int64_t>{"points", summary.outcome.points},
        {"found", summary.outcome.found},
        {"answered", summary.outcome.answered},
        {"done", summary.done},
        {"does_not_fit", summary.too_large},
        {"refused", summary.refused},
        {"left_out", summary.left_out()}}) {
    row.emplace_back(key, fmt::format("{}", value));
  }
  return row;
}

std::string text_of(const SweepSummary& summary, Format format) {
  if (format == Format::json) return summary_json(summary);
  if (format == Format::csv) return csv_text({row_of_summary(summary)});
  return sweep_report(summary, style_for(stdout));
}

int workers_of(const SweepCommand& options) {
  if (options.ranks > 0) return options.ranks;
  if (options.threads > 0) return options.threads;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// Workers are started before the result file is opened: they hold nothing of it.
Expected<std::optional<WorkerProcesses>> start_ranks(const SweepCommand& options,
                                                     const Sweep& sweep) {
  if (options.ranks == 0) return std::optional<WorkerProcesses>();
  return WorkerProcesses::start(sweep, options.ranks).map([](WorkerProcesses processes) {
    return std::optional<WorkerProcesses>(std::move(processes));
  });
}

int run(const SweepCommand& options) {
  if (const int ranks = ranks_of_launcher(); ranks > 1) {
    return fail(
        {"command line",
         fmt::format("found {} processes of a launcher, which this version does not share a "
                     "sweep among; allowed: one process, with --ranks or --threads",
                     ranks)});
  }
  const auto sweep = read_sweep(options.file);
  if (!sweep) return fail(sweep.error());
  const int workers = workers_of(options);
  auto ranks = start_ranks(options, *sweep);
  if (!ranks) return fail(ranks.error(), kMachineFailed);
  auto store = SweepStore::open(
      options.out, *sweep, {.version = TRAINYARD_VERSION, .host = host_name(), .workers = workers});
  if (!store) return fail(store.error());
  const auto outcome = answer(*sweep, *store, *ranks ? &**ranks : nullptr, workers);
  if (!outcome) return fail({options.out.string(), outcome.error().message}, kMachineFailed);
  const auto summary = summary_of(options.out, *sweep, *outcome);
  if (!summary) return fail(summary.error(), kMachineFailed);
  return print(text_of(*summary, options.format), outcome->complete() ? kDone : kInterrupted);
}

}  // namespace

void add_sweep(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "sweep", "many variations of a scenario, answered into one file; goes on where it stopped");
  auto options = std::make_shared<SweepCommand>();
  command->add_option("SWEEP", options->file, "sweep document (docs/sweeps.md)")->required();
  command->add_option("-o,--out", options->out, "results, an SQLite database; continued if there")
      ->required()
      ->type_name("RESULTS.sqlite");
  command->add_option("--threads", options->threads, "as many as processors if absent")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  command
      ->add_option("--ranks", options->ranks,
                   "worker processes instead of threads; one that dies costs its points in flight")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  add_format(*command, options->format);
  add_example(*command,
              "trainyard sweep scenarios/examples/llama-3.1-70b-sweep.json -o results.sqlite");
  command->callback([&action, options] { action = [options] { return run(*options); }; });
}

}  // namespace trainyard

// trainyard sweep SWEEP -o RESULTS.sqlite
#include "cli/text/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <thread>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/provenance_date.h"
#include "cli/sweep/launched_sweep.h"
#include "cli/sweep/sweep_run.h"
#include "cli/text/csv.h"
#include "executor/launcher.h"
#include "scenarios/sweep/workers/processes.h"

namespace trainyard {
namespace {

struct SweepCommand {
  std::filesystem::path file, out;
  int threads = 0, ranks = 0;  // 0: not said
  Format format = Format::text;
};

// Answers the points on threads of this process, or in the processes `ranks`.
Expected<SweepOutcome> answer(const Sweep& sweep, SweepStore& store, WorkerPool* ranks,
                              int workers) {
  const InterruptGuard guard;
  Progress progress("sweeping");
  const SweepOptions options{.workers = workers,
                             .interrupted = interrupt_flag(),
                             .progress = [&progress](double fraction) { progress.show(fraction); },
                             .runner = run_in_a_process};
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

// The number of workers; points that are run on the hardware get the machine to themselves, one by
// one.
Expected<int> workers_of(const SweepCommand& options, const Sweep& sweep,
                         const Launcher& launcher) {
  const bool measures = sweep.document.evaluate == Evaluation::run;
  const int wanted = std::max(options.ranks, options.threads);
  if (!measures && wanted > 0) return wanted;
  if (!measures) return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  if (wanted <= 1 && options.ranks == 0 && !launcher.has_started_several()) return 1;
  return failure("command line",
                 "found several workers for \"evaluate\": \"run\", which measures one run at a "
                 "time; allowed: neither --threads nor --ranks nor mpirun");
}

// Starts worker processes. Call it before the result file is opened, so that they do not inherit
// it.
Expected<std::optional<WorkerPool>> start_ranks(const SweepCommand& options, const Sweep& sweep) {
  if (options.ranks == 0) return std::optional<WorkerPool>();
  return start_worker_processes(sweep, options.ranks).map([](WorkerPool pool) {
    return std::optional<WorkerPool>(std::move(pool));
  });
}

int run(const SweepCommand& options, const Sweep& sweep, std::optional<WorkerPool> ranks,
        int workers) {
  auto store = SweepStore::open(
      options.out, sweep, {.version = TRAINYARD_VERSION, .host = host_name(), .workers = workers});
  if (!store) return fail(store.error());
  const auto outcome = answer(sweep, *store, ranks ? &*ranks : nullptr, workers);
  if (!outcome) return fail({options.out.string(), outcome.error().message}, kMachineFailed);
  const auto summary = summary_of(options.out, sweep, *outcome);
  if (!summary) return fail(summary.error(), kMachineFailed);
  return print(text_of(*summary, options.format), outcome->complete() ? kDone : kInterrupted);
}

// Runs as one of the processes that a launcher has started.
int run_launched(const SweepCommand& options, const Sweep& sweep, int processes) {
  if (options.ranks > 0) {
    return fail({"command line",
                 fmt::format("found --ranks in one of {} processes of a launcher; allowed: the "
                             "launcher's processes alone",
                             processes)});
  }
  auto pool = share_sweep(sweep, processes);
  if (!pool) return fail(pool.error(), kMachineFailed);
  if (!*pool) return kDone;
  const auto workers = static_cast<int>((*pool)->workers().size());
  return run(options, sweep, std::move(*pool), workers);
}

int run(const SweepCommand& options) {
  const auto launcher = launcher_in_environment();
  if (!launcher) return fail(launcher.error());
  const bool first = launcher->rank == 0;  // reports for all
  if (const auto error = not_by_mpi(*launcher)) return first ? fail(*error) : kBadInput;
  const auto sweep = read_sweep(options.file);
  if (!sweep) return first ? fail(sweep.error()) : kBadInput;
  const auto workers = workers_of(options, *sweep, *launcher);
  if (!workers) return first ? fail(workers.error()) : kBadInput;
  if (launcher->has_started_several()) return run_launched(options, *sweep, launcher->ranks);
  auto ranks = start_ranks(options, *sweep);
  if (!ranks) return fail(ranks.error(), kMachineFailed);
  return run(options, *sweep, std::move(*ranks), *workers);
}

}  // namespace

void add_sweep(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "sweep", "many variations of a scenario, answered into one file; goes on where it stopped");
  auto options = std::make_shared<SweepCommand>();
  command->add_option("SWEEP", options->file, "sweep document (docs/sweeps.md)")->required();
  command->add_option("-o,--out", options->out, "results, an SQLite database; continued if there")
      ->required()
      ->check(names_a_file)
      ->type_name("RESULTS.sqlite");
  command->add_option("--threads", options->threads, "as many as processors if absent")
      ->check(whole_number(1, 1024))
      ->type_name("N");
  command
      ->add_option(
          "--ranks", options->ranks,
          "worker processes instead of threads; when one dies the others answer its points")
      ->check(whole_number(1, 1024))
      ->type_name("N");
  add_format(*command, options->format);
  add_example(*command,
              "trainyard sweep scenarios/examples/llama-3.1-70b-sweep.json -o results.sqlite");
  command->callback([&action, options] { action = [options] { return run(*options); }; });
}

}  // namespace trainyard

// trainyard calibrate --backend cpu -o DEVICE.json
#include "cli/text/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/provenance_date.h"
#include "cli/run/cuda_program.h"
#include "cli/text/layout/columns.h"
#include "executor/cpu/measure.h"
#include "executor/cpu/neighbours.h"
#include "executor/cuda/cuda_backend.h"
#include "executor/cuda/device_measure.h"
#include "executor/host/machine_memory.h"
#include "executor/launcher.h"
#include "executor/measure/calibration.h"
#include "executor/measure/collective_rank.h"
#include "executor/supervision/start.h"
#include "executor/supervision/supervisor.h"
#include "scenarios/json/output_file.h"
#include "scenarios/machine/device_document.h"
#include "scenarios/machine/machine_documents.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

struct CalibrateOptions {
  BackendKind backend = BackendKind::cpu;
  fs::path out;
  double time_limit = 600;  // s
#ifdef TRAINYARD_HAS_MPI
  static constexpr bool kHasPeers = true;
#else
  static constexpr bool kHasPeers = false;
#endif
  int ranks = kHasPeers ? 2 : 1;  // ranks on one host
  bool names_ranks = false;       // the user gave --ranks
  int hosts = 1;                  // hosts on which a launcher has started ranks
  bool watch = false;
  Format format = Format::text;

  int all_ranks() const { return ranks * hosts; }

  ProgressForm progress_form() const { return watch ? ProgressForm::lines : ProgressForm::bar; }
};
constexpr BytesPerSecond kAssumedNic(1.25e9);

// Shares of the time limit; the rest is for single operations.
constexpr double kCollectiveShare = 0.2, kStepShare = 0.3;

// ---- Measuring ----------------------------------------------------------------------------

std::vector<CollectiveSample> samples_of(std::span<const TimedCollective> timed) {
  std::vector<CollectiveSample> list;
  list.reserve(timed.size());
  for (const TimedCollective& of : timed) list.push_back(of.sample);
  return list;
}

Expected<GroupSamples> measured_groups(const CalibrateOptions& options, Progress& progress) {
  if (options.ranks < 2) return GroupSamples{};
  std::error_code error;
  RankLaunch what;
  what.command = {fs::read_symlink("/proc/self/exe", error).string(),
                  "calibrate",
                  "--backend",
                  std::string(name_of(options.backend)),
                  "-o",
                  options.out.string(),
                  "--time-limit",
                  fmt::format("{}", options.time_limit)};
  what.ranks = options.ranks;
  what.timeout = Seconds(std::max(60.0, options.time_limit));
  what.words.described = [](int, std::int64_t) { return std::string("collectives"); };
  what.interrupted = was_interrupted;
  what.progress = [&progress](double fraction) { progress.show(kCollectiveShare * fraction); };
  auto launched = launch(what);
  if (!launched) return tl::unexpected(launched.error());
  if (!launched->failure.empty()) return failure("", launched->failure);
  if (launched->interrupted) return GroupSamples{};
  return written_samples(*launched->boards.front());
}

std::optional<double> measured_slowdown(const CalibrateOptions& options,
                                        const GroupSamples& groups) {
  return options.all_ranks() > 1 ? std::optional(groups.overlap_slowdown) : std::nullopt;
}

// What was measured of the backend, and what is known without measuring.
struct Subject {
  HostSamples samples;
  GroupSamples groups;                  // among ranks of one host
  std::vector<TimedCollective> across;  // among ranks of several hosts
  DeviceFrame frame;

  std::vector<CollectiveSample> collectives() const { return samples_of(groups.collectives); }
};

// Measures collectives, among the ranks that a launcher has started or among ranks of our own.
// Nothing on a launcher's ranks other than the first, which are done then.
Expected<std::optional<Subject>> with_collectives(CalibrateOptions& options,
                                                  const Launcher& launcher, Progress& progress) {
  Subject subject;
  if (!launcher.has_started_several()) {
    auto groups = measured_groups(options, progress);
    if (!groups) return tl::unexpected(groups.error());
    subject.groups = *std::move(groups);
    return subject;
  }
  const bool first = launcher.rank == 0;
  auto found =
      measure_launched(options.backend, launcher, Seconds(options.time_limit * kCollectiveShare),
                       [&](double fraction) {
                         if (first) progress.show(kCollectiveShare * fraction);
                       });
  if (!found) return tl::unexpected(found.error());
  if (found->rank != 0) return std::nullopt;
  options.hosts = found->hosts;
  subject.groups = std::move(found->groups);
  std::vector<TimedCollective>& all = subject.groups.collectives;
  const auto spans_hosts = std::stable_partition(
      all.begin(), all.end(),
      [&](const TimedCollective& of) { return of.sample.gpus <= options.ranks; });
  subject.across.assign(spans_hosts, all.end());
  all.erase(spans_hosts, all.end());
  return subject;
}

// The limits of a part of the work that begins at fraction `from` and has `share` of time and
// progress.
MeasureLimits limits_of(const CalibrateOptions& options, Progress& progress, double from,
                        double share) {
  return {Seconds(options.time_limit * share),
          [&progress, from, share](double fraction) { progress.show(from + share * fraction); },
          was_interrupted};
}

Expected<void> add_steps(const CalibrateOptions& options, Progress& progress, Subject& subject) {
  const MeasureLimits rest = limits_of(options, progress, 1 - kStepShare, kStepShare);
  auto steps = measure_steps({rest.budget, rest.progress, rest.interrupted, options.backend});
  if (!steps) return tl::unexpected(steps.error());
  subject.samples.steps = *std::move(steps);
  return {};
}

// Adds the host's measurements to `subject`, which has the collectives.
Expected<Subject> measured_host(const CalibrateOptions& options, Subject subject,
                                Progress& progress) {
  const Neighbours neighbours(options.ranks - 1);
  const double alone = 1 - kCollectiveShare - kStepShare;
  subject.samples = measure_host(limits_of(options, progress, kCollectiveShare, alone));
  if (auto done = add_steps(options, progress, subject); !done) {
    return tl::unexpected(done.error());
  }
  subject.frame.memory = machine_memory() / std::max(1, options.ranks);
  subject.frame.overlap_slowdown = measured_slowdown(options, subject.groups);
  return subject;
}

Expected<Subject> measured_device(const CalibrateOptions& options, Subject subject,
                                  Progress& progress) {
  const double alone = 1 - kCollectiveShare - kStepShare;
  auto measured = measure_device(limits_of(options, progress, kCollectiveShare, alone));
  if (!measured) return tl::unexpected(measured.error());
  subject.samples = std::move(measured->samples);
  subject.frame = {.memory = measured->memory,
                   .multiprocessors = measured->multiprocessors,
                   .host = measured->link,
                   .overlap_slowdown = measured_slowdown(options, subject.groups),
                   .generation = generation_of(measured->compute_major, measured->compute_minor)};
  if (was_interrupted()) return subject;
  if (auto done = add_steps(options, progress, subject); !done) {
    return tl::unexpected(done.error());
  }
  return subject;
}

// ---- Writing ------------------------------------------------------------------------------

// What every document says of its origin: where, when and with what it was measured.
std::string provenance(const CalibrateOptions& options) {
  const std::string begin =
      fmt::format("measured by trainyard calibrate on {}, {}", host_name(), provenance_date({}));
  if (options.backend == BackendKind::cuda) return fmt::format("{}: {}", begin, cuda_provenance());
  return fmt::format("{}: {}, {} threads; one thread while {} others train", begin,
                     host_provenance(), std::thread::hardware_concurrency(), options.ranks - 1);
}

// "cpu.node.json" of "cpu.json" and "node".
fs::path beside(const fs::path& device, std::string_view kind) {
  fs::path path = device;
  return path.replace_extension(fmt::format(".{}{}", kind, device.extension().string()));
}

// A note where ranks shared a GPU: ranks with GPUs of their own would give other figures.
std::string_view staged_line(const Subject& subject) {
  return subject.groups.staged ? "; ranks shared a GPU: through the host's memory, not by NCCL"
                               : "";
}

// Sources of the figures in the device's document that are not from single operations.
FigureSources device_figures(const CalibrateOptions& options, const Subject& subject) {
  const bool cuda = options.backend == BackendKind::cuda;
  FigureSources sources = {
      {"/sources/host_bandwidth",
       cuda ? "copies from the host's memory"
            : "half of what copies read and write: it computes in that memory"}};
  if (subject.samples.sustained_clock < 1) {
    sources.emplace_back(
        "/rates/sources/sustained_clock",
        "pace of one large product for seconds over its pace when it was measured");
  }
  if (!subject.frame.overlap_slowdown) return sources;
  sources.emplace_back(
      "/sources/overlap_slowdown",
      cuda ? fmt::format("pace that products lose while another stream reduces 64 MiB among all "
                         "ranks{}",
                         staged_line(subject))
           : "pace that products lose while another thread reduces 1 MiB among all ranks");
  return sources;
}

std::string device_text(const CalibrateOptions& options, Device& device, const Subject& subject) {
  const bool cuda = options.backend == BackendKind::cuda;
  device.name = fmt::format("{} of {}", cuda ? cuda_device_name() : "one thread", host_name());
  device.source = fmt::format("{}; {}", provenance(options),
                              cuda ? "GEMMs in bf16, fp32 and, where the GPU has it, fp8"
                                   : "bf16 and experts are derived from fp32 GEMMs");
  return device_document(device, {}, device_figures(options, subject));
}

std::string node_text(const CalibrateOptions& options, const Device& device, const Subject& subject,
                      const InterNode& between) {
  const bool cuda = options.backend == BackendKind::cuda;
  const bool linked = !subject.groups.collectives.empty();
  const std::string links = linked ? fmt::format(
                                         "links from messages between two ranks there and "
                                         "back{}",
                                         staged_line(subject))
                                   : "no second rank: the device's link";
  return node_document(
      {.name = fmt::format("{} x {}", options.ranks, device.name),
       .source = fmt::format("{}; {}; {}", provenance(options), links,
                             options.hosts > 1
                                 ? "the NIC is the most that a host was seen to receive"
                                 : "the NIC is assumed, nothing was measured between hosts"),
       .device = options.out.filename().string(),
       .devices = options.ranks,
       .intra = fitted_links(subject.collectives(), device),
       .nic_bandwidth = options.hosts > 1 ? between.bandwidth : kAssumedNic,
       .host_memory_bandwidth = cuda ? Cluster{}.host_memory_bandwidth : subject.samples.copy});
}

std::string stack_text(const CalibrateOptions& options, const Device& device,
                       const Subject& subject) {
  Stack stack = fitted_stack(subject.samples, device);
  stack.name = fmt::format("trainyard executor on {}", host_name());
  stack.source = provenance(options);
  const std::string steps = "fitted to operations inside steps of eight small networks";
  const bool cuda = options.backend == BackendKind::cuda;
  FigureSources sources = {{"attention_backward", steps},
                           {"memory_traffic", steps},
                           {"cross_entropy_forward_bytes", steps},
                           {"cross_entropy_backward_bytes", steps}};
  if (!cuda) {
    sources.push_back({"overlap", "a rank of the CPU backend is one thread: nothing overlaps"});
  }
  return measured_stack_document(stack, sources);
}

std::string fabric_text(const CalibrateOptions& options, const Subject& subject,
                        const InterNode& between) {
  return fabric_document(
      {.name = fmt::format("between {} hosts like {}", options.hosts, host_name()),
       .source = provenance(options),
       .inter = between,
       .figures = fmt::format("fitted to {} collectives among all ranks of 2 to {} hosts{}",
                              subject.across.size(), options.hosts, staged_line(subject))});
}

std::vector<fs::path> files_of(const CalibrateOptions& options) {
  std::vector<fs::path> files = {options.out, beside(options.out, "node"),
                                 beside(options.out, "stack")};
  if (options.hosts > 1) files.push_back(beside(options.out, "fabric"));
  return files;
}

Expected<void> check_files(const CalibrateOptions& options) {
  for (const fs::path& file : files_of(options)) {
    if (auto writable = check_writable(file); !writable) return writable;
  }
  return {};
}

Expected<void> write_documents(const CalibrateOptions& options, Device& device,
                               const Subject& subject, const InterNode& between) {
  std::vector<std::string> contents = {device_text(options, device, subject),
                                       node_text(options, device, subject, between),
                                       stack_text(options, device, subject)};
  if (options.hosts > 1) contents.push_back(fabric_text(options, subject, between));
  const std::vector<fs::path> files = files_of(options);
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (auto written = write_file(files[i], contents[i]); !written) return written;
  }
  return {};
}

// "a, b and c"
std::string listed(const std::vector<fs::path>& files) {
  std::string list = files.front().string();
  for (std::size_t i = 1; i < files.size(); ++i) {
    list += (i + 1 < files.size() ? ", " : " and ") + files[i].string();
  }
  return list;
}

std::string text_of(const CalibrateOptions& options, const Device& device, const Subject& subject,
                    std::span<const ScoredPoint> points) {
  const HostSamples& host = subject.samples;
  std::string overlap;
  if (options.all_ranks() > 1) {
    overlap = fmt::format("Beside an all-reduce arithmetic loses {} % of its pace. ",
                          percent(subject.groups.overlap_slowdown));
  }
  return fmt::format(
      "{}\n{}\nBest GEMM {} GFLOP/s, copies {} GB/s, attention's gradient takes {} times as long "
      "as attention.\n{}{}Written: {}\n",
      device.name, calibration_table(points, style_for(stdout)),
      number(device.peak_of(Dtype::bf16).value() * 1e-9), number(host.copy.value() * 1e-9),
      number(host.attention_backward, 3), overlap,
      subject.groups.staged ? "Ranks shared a GPU: collectives went through the host's memory, not "
                              "by NCCL.\n"
                            : "",
      listed(files_of(options)));
}

// A host as the fitted documents describe it.
Cluster host_of(const CalibrateOptions& options, const Device& device, const Subject& subject) {
  Cluster host;
  host.device = device;
  host.devices_per_node = host.nvlink_domain = options.ranks;
  host.nodes = 1;
  host.intra = fitted_links(subject.collectives(), device);
  return host;
}

int answer(const CalibrateOptions& options, Device& device, const Subject& subject) {
  Cluster host = host_of(options, device, subject);
  if (options.hosts > 1) {
    auto between = fitted_fabric(samples_of(subject.across), host);
    if (!between) return fail(between.error(), kMachineFailed);
    host.inter = *std::move(between);
  }
  const auto written = write_documents(options, device, subject, host.inter);
  if (!written) return fail(written.error(), kMachineFailed);
  auto points = scored_points(device, subject.samples, subject.groups.collectives);
  add_points_across(host, subject.across, points);
  switch (options.format) {
    case Format::json:
      return print(device_document(device, {}, {}), kDone);
    case Format::csv:
      return print(calibration_csv(points), kDone);
    case Format::text:
      break;
  }
  return print(text_of(options, device, subject, points), kDone);
}

// Takes a rank for each GPU, unless a number was given. The error: why no GPU can be measured.
std::optional<Error> prepare_gpus(CalibrateOptions& options, const Launcher& launcher) {
  if (auto error = become_cuda_program()) return error;
  if (auto error = not_available(options.backend)) return error;
  const bool chooses = !options.names_ranks && !launcher.has_started_several();
  if (chooses) options.ranks = options.kHasPeers ? cuda_devices() : 1;
  return std::nullopt;
}

// Notes a launcher's ranks and hosts in `options`. The error: why they cannot be measured.
std::optional<Error> prepare_launched(CalibrateOptions& options, const Launcher& launcher) {
  if (!launcher.has_started_several()) return std::nullopt;
  if (auto error = not_by_mpi(launcher)) return error;
  const int ranks = launcher.ranks, here = launcher.local_ranks;
  if (options.names_ranks) {
    return Error{"--ranks",
                 fmt::format("found {}; allowed under a launcher: its {} ranks are measured, so "
                             "the option is left out",
                             options.ranks, ranks)};
  }
  if (ranks % here != 0) {
    return Error{"", fmt::format("found {} ranks, {} of them on this host; allowed: as many on "
                                 "every host",
                                 ranks, here)};
  }
  options.ranks = here;
  options.hosts = ranks / here;
  return std::nullopt;
}

Expected<std::optional<Subject>> measured(CalibrateOptions& options, const Launcher& launcher) {
  Progress progress("measuring", options.progress_form());
  if (launcher.rank == 0) progress.show(0);
  auto subject = with_collectives(options, launcher, progress);
  if (!subject || !*subject || was_interrupted()) return subject;
  auto all = options.backend == BackendKind::cuda
                 ? measured_device(options, **std::move(subject), progress)
                 : measured_host(options, **std::move(subject), progress);
  if (!all) return tl::unexpected(all.error());
  return *std::move(all);
}

// Runs one of the ranks that the supervisor has started.
int run_rank(const CalibrateOptions& options, const fs::path& folder) {
  const auto done =
      run_collective_rank(folder, options.backend, Seconds(options.time_limit * kCollectiveShare));
  return done ? kDone : fail(done.error(), kMachineFailed);
}

int fit_and_answer(const CalibrateOptions& options, const Subject& subject) {
  auto device = fitted_device(subject.samples, subject.collectives(), subject.frame);
  if (!device) return fail(device.error(), kMachineFailed);
  return answer(options, *device, subject);
}

int run(CalibrateOptions options) {
  const auto started = started_as_rank();
  if (!started) return fail(started.error());
  if (*started && (*started)->folder) return run_rank(options, *(*started)->folder);
  const Launcher launcher = *started ? (*started)->launcher : Launcher{};
  const bool first = launcher.rank == 0;  // the first rank of a launcher reports for all
  if (const auto error = prepare_launched(options, launcher)) {
    return first ? fail(*error) : kBadInput;
  }
  if (first) {
    if (const auto writable = check_files(options); !writable) return fail(writable.error());
  }
  const bool cuda = options.backend == BackendKind::cuda;
  if (const auto error = cuda ? prepare_gpus(options, launcher) : std::nullopt) {
    return fail(*error, kMachineFailed);
  }
  const TerminationGuard guard;
  const auto subject = measured(options, launcher);
  if (was_interrupted()) return kInterrupted;
  if (!subject) return fail(subject.error(), kMachineFailed);
  return *subject ? fit_and_answer(options, **subject) : kDone;
}

}  // namespace

void add_calibrate(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "calibrate", "measures this machine and writes it as a device, a node and a stack");
  auto options = std::make_shared<CalibrateOptions>();
  add_backend(*command, options->backend, "what is measured: a thread and its ranks, or a GPU");
  command
      ->add_option(
          "-o,--out,--output", options->out,
          "the device/1 document; beside it FILE.node and FILE.stack of the same extension")
      ->required()
      ->check(names_a_file)
      ->type_name("FILE");
  command
      ->add_option("--time-limit", options->time_limit,
                   "seconds after which nothing is measured that is not needed for the fits; less "
                   "where all is precise enough")
      ->check(positive_seconds)
      ->type_name("S")
      ->capture_default_str();
  command
      ->add_option(
          "--ranks", options->ranks,
          "ranks that run together: collectives among 2 to N, kernels while N - 1 others train. "
          "GPUs: all of them unless it is given. Under mpirun or srun: those that were started, on "
          "several hosts too, and FILE.fabric is written too")
      ->check(whole_number(1, 1024))
      ->type_name("N")
      ->capture_default_str();
  command->add_flag("--watch", options->watch,
                    "a line of JSON on stderr, five times a second, that says how far it is");
  add_format(*command, options->format);
  add_example(*command, "trainyard calibrate --backend cpu -o this-machine.json");
  command->callback([&action, command, options] {
    options->names_ranks = command->count("--ranks") > 0;
    action = [options] { return run(*options); };
  });
}

}  // namespace trainyard

// trainyard calibrate --backend cpu -o DEVICE.json
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <memory>
#include <thread>

#include "cli/command.h"
#include "cli/csv.h"
#include "cli/cuda_program.h"
#include "cli/plan_search.h"
#include "cli/progress.h"
#include "cli/provenance_date.h"
#include "cli/table.h"
#include "cli/text.h"
#include "executor/calibration.h"
#include "executor/collective_rank.h"
#include "executor/cuda/cuda_backend.h"
#include "executor/cuda/device_measure.h"
#include "executor/start.h"
#include "executor/supervisor.h"
#include "model/calibration/fit_collectives.h"
#include "model/calibration/fit_gemm.h"
#include "model/cost/kernels/attention.h"
#include "scenarios/device_document.h"
#include "scenarios/output.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

struct CalibrateOptions {
  BackendKind backend = BackendKind::cpu;
  fs::path out;
  double time_limit = 600;  // s
  int ranks = 2;
  Format format = Format::text;
};

constexpr double kCollectiveShare = 0.2;  // of the time

// Fitted beside measured, of one family of operations.
struct FamilyScore {
  std::string name;
  std::size_t samples = 0;
  double mape = 0;
};

template <typename Sample, typename Predict>
FamilyScore score_of(const std::string& name, const std::vector<Sample>& samples,
                     const Predict& predict) {
  FamilyScore score{name, samples.size(), 0};
  for (const Sample& sample : samples) {
    score.mape += std::abs(predict(sample) / sample.time - 1) / static_cast<double>(samples.size());
  }
  return score;
}

std::vector<FamilyScore> scores_of(const Device& device, const HostSamples& host,
                                   const std::vector<CollectiveSample>& collectives) {
  return {
      score_of("GEMM", host.gemm, [&](const GemmSample& s) { return gemm_sample_time(device, s); }),
      score_of("attention", host.attention,
               [&](const AttentionSample& s) { return attention_prefill_time(device, s.shape); }),
      score_of("collectives", collectives,
               [&](const CollectiveSample& s) { return collective_sample_time(device, s); })};
}

std::string text_of(const CalibrateOptions& options, const Device& device, const HostSamples& host,
                    const std::vector<FamilyScore>& scores, const Style& style) {
  Table table({{"operations", "", Align::left}, {"measured", "shapes"}, {"mean error", "%"}});
  for (const FamilyScore& score : scores) {
    table.add_row({score.name, fmt::format("{}", score.samples), percent(score.mape)});
  }
  return fmt::format(
      "{}\n{}\nBest GEMM {} GFLOP/s, copies {} GB/s, attention's gradient takes {} times as long "
      "as attention.\nwritten to {}\n",
      device.name, table.render(style), number(device.peak_of(Dtype::bf16).value() * 1e-9),
      number(host.copy.value() * 1e-9), number(host.attention_backward, 3), options.out.string());
}

std::vector<CsvRow> rows_of(const std::vector<FamilyScore>& scores) {
  std::vector<CsvRow> rows;
  rows.reserve(scores.size());
  for (const FamilyScore& score : scores) {
    rows.push_back({{"operations", score.name},
                    {"samples", fmt::format("{}", score.samples)},
                    {"mape", csv_number(score.mape)}});
  }
  return rows;
}

Expected<std::vector<CollectiveSample>> measured_collectives(const CalibrateOptions& options) {
  if (options.ranks < 2) return std::vector<CollectiveSample>{};
  std::error_code error;
  RankLaunch what;
  what.command = {fs::read_symlink("/proc/self/exe", error).string(),
                  "calibrate",
                  "-o",
                  options.out.string(),
                  "--time-limit",
                  fmt::format("{}", options.time_limit)};
  what.ranks = options.ranks;
  what.timeout = Seconds(std::max(60.0, options.time_limit));
  what.described = [](int, std::int64_t) { return std::string("collectives"); };
  what.interrupted = was_interrupted;
  what.progress = [](double) {};
  auto launched = launch(what);
  if (!launched) return tl::unexpected(launched.error());
  if (!launched->failure.empty()) return failure("", launched->failure);
  if (launched->interrupted) return std::vector<CollectiveSample>{};
  return collective_samples(*launched->boards.front(), options.ranks);
}

void describe(const CalibrateOptions& options, Device& device) {
  std::array<char, 64> host{};
  gethostname(host.data(), host.size() - 1);
  if (options.backend == BackendKind::cuda) {
    device.name = fmt::format("GPU of {}", host.data());
    device.source =
        fmt::format("measured by trainyard calibrate on {}, {}: {}; GEMMs in bf16 and fp32",
                    host.data(), provenance_date({}), cuda_provenance());
    return;
  }
  device.name = fmt::format("one thread of {}", host.data());
  device.source = fmt::format(
      "measured by trainyard calibrate on {} ({} threads), {}: {}, collectives among {} ranks; "
      "bf16 "
      "and experts are derived from fp32 GEMMs",
      host.data(), std::thread::hardware_concurrency(), provenance_date({}), built_with(),
      options.ranks);
}

// What is measured of the backend, with what is known of it.
struct Subject {
  HostSamples samples;
  std::vector<CollectiveSample> collectives;
  DeviceFrame frame;
};

MeasureLimits limits_of(const CalibrateOptions& options, Progress& progress, double share) {
  return {Seconds(options.time_limit * share),
          [&progress](double fraction) { progress.show(fraction); }, was_interrupted};
}

Expected<Subject> measured_host(const CalibrateOptions& options) {
  auto collectives = measured_collectives(options);
  if (!collectives) return tl::unexpected(collectives.error());
  Subject subject{.samples = {}, .collectives = *std::move(collectives), .frame = {}};
  if (was_interrupted()) return subject;
  Progress progress("measuring");
  subject.samples = measure_host(limits_of(options, progress, 1 - kCollectiveShare));
  const auto pages = static_cast<double>(sysconf(_SC_PHYS_PAGES));
  const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
  subject.frame.memory = Bytes(pages * page / std::max(1, options.ranks));
  return subject;
}

Expected<Subject> measured_device(const CalibrateOptions& options) {
  Progress progress("measuring");
  auto measured = measure_device(limits_of(options, progress, 1));
  if (!measured) return tl::unexpected(measured.error());
  return Subject{std::move(measured->samples),
                 {},
                 {measured->memory, measured->multiprocessors, measured->link}};
}

int run(const CalibrateOptions& options) {
  if (const auto started = started_as_rank(); started && started->folder) {
    const auto done =
        run_collective_rank(*started->folder, Seconds(options.time_limit * kCollectiveShare));
    return done ? kDone : fail(done.error(), kMachineFailed);
  }
  const bool cuda = options.backend == BackendKind::cuda;
  if (cuda) {
    if (const auto error = become_cuda_program()) return fail(*error, kMachineFailed);
    if (const auto error = not_available(options.backend)) return fail(*error, kMachineFailed);
  }
  const InterruptGuard guard;
  const auto subject = cuda ? measured_device(options) : measured_host(options);
  if (was_interrupted()) return kInterrupted;
  if (!subject) return fail(subject.error(), kMachineFailed);
  auto device = fitted_device(subject->samples, subject->collectives, subject->frame);
  if (!device) return fail(device.error(), kMachineFailed);
  describe(options, *device);
  const auto written = write_file(options.out, device_document(*device, {}, {}));
  if (!written) return fail(written.error(), kMachineFailed);
  const std::vector<FamilyScore> scores =
      scores_of(*device, subject->samples, subject->collectives);
  switch (options.format) {
    case Format::json:
      return print(device_document(*device, {}, {}), kDone);
    case Format::csv:
      return print(csv_text(rows_of(scores)), kDone);
    case Format::text:
      break;
  }
  return print(text_of(options, *device, subject->samples, scores, style_for(stdout)), kDone);
}

}  // namespace

void add_calibrate(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "calibrate", "measures this machine's kernels and collectives and writes it as a device");
  auto options = std::make_shared<CalibrateOptions>();
  add_backend(*command, options->backend, "what is measured: a thread and its ranks, or a GPU");
  command->add_option("-o,--output", options->out, "a device/1 document that a scenario can name")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--time-limit", options->time_limit,
                   "seconds at most; less where all is precise enough")
      ->check(CLI::PositiveNumber)
      ->type_name("S")
      ->capture_default_str();
  command->add_option("--ranks", options->ranks, "among which collectives are measured; 1: none")
      ->check(CLI::Range(1, 1024))
      ->type_name("N")
      ->capture_default_str();
  add_format(*command, options->format);
  add_example(*command, "trainyard calibrate --backend cpu -o this-machine.json");
  command->callback([&action, options] { action = [options] { return run(*options); }; });
}

}  // namespace trainyard

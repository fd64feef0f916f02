#include "gui/presenters/timeline/step_play.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "gui/presenters/answer.h"
#include "gui/presenters/text.h"
#include "gui/presenters/timeline/timeline_scene.h"
#include "scenarios/question.h"
#include "scenarios/read_trace.h"
#include "scenarios/text/readable.h"
#include "simulator/reading/critical_path.h"
#include "simulator/step.h"

namespace trainyard {
namespace {

QString summary_of_play(const PlayedStep& played, const QString& misfit) {
  const StepSimulation& found = *played.simulation;
  const QString memory = misfit.isEmpty() ? misfit : StepPlay::tr("; does not fit: ") + misfit;
  const Estimate before = estimate(played.question->job, played.plan);
  const QString ranks = found.step.plays_stages() ? StepPlay::tr("a rank for each stage")
                        : found.step.folded()     ? StepPlay::tr("a rank for all that are alike")
                                                  : StepPlay::tr("every rank");
  const QString times = StepPlay::tr("%1 simulated, %2 estimated (%3)")
                            .arg(qt(with_unit(found.step_time)), qt(with_unit(before.step_time)),
                                 qt(signed_percent(before.step_time / found.step_time - 1) + " %"));
  return StepPlay::tr("%1: %2%3; %4 operations of %5, %6 events")
      .arg(plan_text(played.plan), times, memory, qt(count(found.operations)), ranks,
           qt(count(found.timeline.events)));
}

constexpr std::size_t kSharesShown = 12;

// The last line has what the step takes beside its operations, so that the lines sum to the step.
std::vector<QString> path_shares_of(const StepSimulation& found, Seconds fixed) {
  std::vector<QString> lines;
  const auto shares = path_shares(found.step, critical_path(found.step, found.timeline));
  Seconds whole;
  for (const PathShare& share : shares) whole += share.time;
  const auto add = [&](const PathShare& share) {
    lines.push_back(StepPlay::tr("%1, %2: %3 (%4\u00a0×)")
                        .arg(qt(with_unit(share.time)), percent_text(share.time / whole),
                             qt(share.operation), qt(count(share.tasks))));
  };
  const std::size_t shown = std::min(shares.size(), kSharesShown);
  std::for_each_n(shares.begin(), shown, add);
  PathShare rest{.operation = StepPlay::tr("everything else").toStdString()};
  for (std::size_t i = shown; i < shares.size(); ++i) {
    rest.tasks += shares[i].tasks;
    rest.time += shares[i].time;
  }
  if (rest.tasks > 0) add(rest);
  if (fixed > Seconds(0)) {
    lines.push_back(
        StepPlay::tr("%1 beside the path: fixed times of the step").arg(qt(with_unit(fixed))));
  }
  return lines;
}

std::shared_ptr<const PlayedStep> played_plan(std::shared_ptr<const Question> question,
                                              const Plan& plan, const StepOptions& options,
                                              StepSimulation simulation) {
  auto played = std::make_shared<PlayedStep>();
  played->question = std::move(question);
  played->plan = plan;
  played->grain = options.grain;
  played->fold = options.fold;
  played->simulation = std::make_shared<const StepSimulation>(std::move(simulation));
  const PreparedJob& job = played->question->job;
  const Cluster& cluster = job.job.cluster;
  played->scene = TimelineScene::of(played->simulation, cluster.device.memory);
  const QString misfit = misfit_text(as_estimate(job, plan, *played->simulation), cluster);
  played->misfits = !misfit.isEmpty();
  played->summary = summary_of_play(*played, misfit);
  played->shares_title = StepPlay::tr("Critical path by operation");
  played->shares = path_shares_of(*played->simulation, job.job.training.stack.step_overhead);
  return played;
}

std::vector<QString> sums_of(const TimelineScene& scene) {
  std::vector<QString> lines;
  for (const TimelineSum& sum : scene.sums(kSharesShown)) {
    const QString predicted = sum.predicted > Seconds(0)
                                  ? StepPlay::tr(", predicted %1").arg(qt(with_unit(sum.predicted)))
                                  : QString();
    lines.push_back(StepPlay::tr("%1 %2 (%3 ×%4)%5")
                        .arg(qt(with_unit(sum.time)), sum.name, qt(count(sum.operations)),
                             predicted,
                             sum.waits ? StepPlay::tr(", waiting included") : QString()));
  }
  return lines;
}

QString summary_of_trace(const std::filesystem::path& file, const SavedTrace& trace,
                         const TimelineScene& scene) {
  const QString text = StepPlay::tr("%1: %2 operations on %3 tracks over %4")
                           .arg(path_text(file.filename()), qt(count(std::ssize(trace.times))),
                                qt(count(std::ssize(scene.tracks()))),
                                qt(with_unit(to_seconds(Picoseconds(std::llround(scene.end()))))));
  return scene.compares()
             ? StepPlay::tr("%1; in a track above what was measured, below what was predicted")
                   .arg(text)
             : text;
}

std::shared_ptr<const PlayedStep> played_trace(const std::filesystem::path& file,
                                               SavedTrace trace) {
  auto kept = std::make_shared<const SavedTrace>(std::move(trace));
  auto played = std::make_shared<PlayedStep>();
  played->scene = TimelineScene::of(kept);
  played->summary = summary_of_trace(file, *kept, *played->scene);
  played->shares_title = StepPlay::tr("Longest operations");
  played->shares = sums_of(*played->scene);
  return played;
}

}  // namespace

StepPlay::StepPlay(QObject* parent)
    : QObject(parent), work_(*this, [this](const QString& why) { failed(why)(); }) {}
StepPlay::~StepPlay() = default;

void StepPlay::start(std::shared_ptr<const Question> question, const Plan& plan,
                     const StepOptions& options) {
  Q_EMIT started();
  work_.start([this, question = std::move(question), plan, options](const std::atomic<bool>& stop) {
    StepOptions watched = options;
    watched.interrupted = &stop;
    watched.progress = teller();
    auto simulated = simulate(question->job, plan, watched);
    if (!simulated) return stop ? cancelled() : failed(qt(simulated.error()));
    return shown(played_plan(question, plan, options, *std::move(simulated)));
  });
}

Background::Done StepPlay::shown(std::shared_ptr<const PlayedStep> step) {
  return [this, step = std::move(step)] {
    step_ = step;
    problem_.clear();
    Q_EMIT finished();
  };
}

// The step that was shown stays.
Background::Done StepPlay::failed(const QString& problem) {
  return [this, problem] {
    problem_ = problem;
    Q_EMIT finished();
  };
}

Background::Done StepPlay::cancelled() { return failed(tr("Cancelled.")); }

std::function<void(double fraction)> StepPlay::teller() {
  return [this, percent = -1](double fraction) mutable {
    const int now = static_cast<int>(100 * fraction);
    if (now == std::exchange(percent, now)) return;
    const auto emitted = [this, fraction] { Q_EMIT progressed(fraction); };
    QMetaObject::invokeMethod(this, emitted, Qt::QueuedConnection);
  };
}

void StepPlay::open(const std::filesystem::path& trace) {
  Q_EMIT started();
  work_.start([this, trace](const std::atomic<bool>& stop) {
    auto saved = read_trace(trace, {&stop, teller()});
    if (stop) return cancelled();
    if (!saved) return failed(qt(saved.error()));
    return shown(played_trace(trace, *std::move(saved)));
  });
}

}  // namespace trainyard

#include "gui/presenters/sweep/sweep_run.h"

#include <QElapsedTimer>
#include <QSysInfo>
#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "gui/presenters/text.h"
#include "scenarios/json/output_file.h"
#include "scenarios/sweep/point_reader.h"
#include "scenarios/sweep/results/store.h"
#include "scenarios/sweep/run_sweep.h"
#include "scenarios/text/readable.h"

namespace trainyard {
namespace {

constexpr int kCheckAfter = 150;      // ms after the last change
constexpr qint64 kFillAfter = 400;    // ms between two readings of a file that fills
constexpr qint64 kTryFor = 300;       // ms for which points are checked
constexpr double kSeenShare = 0.002;  // smallest visible step of a progress bar

const std::atomic<bool> kToTheEnd = false;

Expected<Sweep> sweep_of(const SweepQuestion& question) {
  return drafted_sweep(question.scenario, question.file, question.draft);
}

// Why a point would be refused; nothing if it can be read and its plan, if it has one, is legal.
std::optional<Error> why_refused(const Expected<PointQuestion>& point) {
  if (!point) return point.error();
  const auto& plan = point->settings->plan;
  if (!plan || point->question->scenario.unlike) return std::nullopt;
  const Job& job = point->job().job;
  const auto made = make_plan(*plan, job.model, job.cluster, job.training);
  return made ? std::nullopt : std::optional(made.error());
}

// How many points there are, and how many of them would be refused. Of a long sweep only as many
// points are tried as there is time for.
QString verdict_of(const Sweep& sweep, const std::atomic<bool>& stop) {
  QString all = SweepRun::tr("%1 points").arg(qt(count(sweep.points)));
  if (sweep.document.evaluate == Evaluation::plan) return all;  // a search needs no legal plan
  QElapsedTimer timer;
  timer.start();
  PointReader reader(sweep);
  std::vector<SweepValue> values;
  std::int64_t tried = 0;
  std::int64_t refused = 0;
  QString first;
  for (; tried < sweep.points && timer.elapsed() < kTryFor && !stop; ++tried) {
    values_at(sweep, tried, values);
    if (!is_asked_for(sweep, values)) continue;
    const auto why = why_refused(reader.read(values));
    if (!why) continue;
    if (++refused == 1) first = qt(*why);
  }
  if (refused == 0) return all;
  const QString of =
      tried < sweep.points ? SweepRun::tr("of the first %1 ").arg(qt(count(tried))) : QString();
  return SweepRun::tr("%1, %2%3 refused; the first one: %4")
      .arg(all, of, qt(count(refused)), first);
}

Expected<SweepOutcome> answer_into(const std::filesystem::path& file, const Sweep& sweep,
                                   const SweepOptions& options) {
  auto store = SweepStore::open(file, sweep,
                                {.version = TRAINYARD_VERSION,
                                 .host = QSysInfo::machineHostName().toStdString(),
                                 .workers = options.workers});
  if (!store) return tl::unexpected(store.error());
  auto outcome = run_sweep(sweep, *store, options);
  return outcome ? outcome : failure(file.string(), outcome.error().message);
}

}  // namespace

SweepRun::SweepRun(QObject* parent)
    : QObject(parent),
      status_(tr("Every point is answered into a result file, which goes on where it stopped; "
                 "drop one on the window to open it.")),
      checking_(*this, [this](const QString& why) { show_verdict(why); }),
      work_(*this,
            [this](const QString& why) {
              end({nullptr, why});
            }),
      reading_(*this, [this](const QString& why) { say(why); }),
      saving_(*this, [this](const QString& why) { say(why); }) {
  typed_.setSingleShot(true);
  typed_.setInterval(kCheckAfter);
  connect(&typed_, &QTimer::timeout, this, [this] {
    checking_.start([this, question = question_](const std::atomic<bool>& stop) {
      const auto sweep = sweep_of(question);
      const QString verdict = sweep ? verdict_of(*sweep, stop) : qt(sweep.error());
      return Background::Done([this, verdict] { show_verdict(verdict); });
    });
  });
  fills_.setSingleShot(true);
  connect(&fills_, &QTimer::timeout, this, &SweepRun::read_so_far);
}
SweepRun::~SweepRun() = default;

void SweepRun::show_verdict(const QString& verdict) {
  verdict_ = verdict;
  Q_EMIT checked();
}

void SweepRun::check(SweepQuestion question) {
  question_ = std::move(question);
  typed_.start();
}

void SweepRun::post_progress(double share, double& posted) {
  if (share < 1 && share - posted < kSeenShare) return;
  posted = share;
  QMetaObject::invokeMethod(
      this, [this, share] { Q_EMIT progressed(share); }, Qt::QueuedConnection);
}

// Runs on a background thread.
SweepRun::Ended SweepRun::answer(const SweepQuestion& question,
                                 const std::filesystem::path& results,
                                 const std::atomic<bool>& stop) {
  const auto sweep = sweep_of(question);
  if (!sweep) return {nullptr, qt(sweep.error())};
  // One processor is left to the window.
  SweepOptions options{
      .workers = std::max(1, static_cast<int>(std::thread::hardware_concurrency()) - 1),
      .interrupted = &stop};
  options.progress = [this, posted = 0.0](double share) mutable { post_progress(share, posted); };
  const auto outcome = answer_into(results, *sweep, options);
  if (!outcome) return {nullptr, qt(outcome.error())};
  auto points = read_points(results, kToTheEnd);
  if (!points) return {nullptr, qt(points.error())};
  const QString summary = points->summary();
  return {std::make_shared<const SweepPoints>(*std::move(points)),
          outcome->complete()
              ? summary
              : tr("Cancelled. %1. Running it into the same file goes on.").arg(summary)};
}

void SweepRun::start(SweepQuestion question, const std::filesystem::path& results) {
  if (busy()) return;
  reading_.stop();
  file_ = results;
  running_ = question.scenario;
  say(tr("Answering …"));
  Q_EMIT started();
  work_.start([this, question = std::move(question), results](const std::atomic<bool>& stop) {
    Ended ended = answer(question, results, stop);
    ended.scenario = question.scenario;
    return Background::Done([this, ended = std::move(ended)] { end(ended); });
  });
  fills_.start(static_cast<int>(kFillAfter));
}

void SweepRun::end(const Ended& ended) {
  fills_.stop();
  show(ended);
  Q_EMIT finished();
}

// Errors are not shown: a new file may not be readable yet, and the end reports what stays wrong.
// The longer a reading takes, the later is the next one.
void SweepRun::read_so_far() {
  reading_.start([this, file = file_, scenario = running_](const std::atomic<bool>& stop) {
    QElapsedTimer timer;
    timer.start();
    auto points = read_points(file, stop);
    const qint64 took = timer.elapsed();
    Ended ended;
    if (points) {
      ended.status = tr("Answering … %1").arg(points->summary());
      ended.points = std::make_shared<const SweepPoints>(*std::move(points));
      ended.scenario = scenario;
    }
    return Background::Done([this, file, took, ended = std::move(ended)] {
      if (!busy() || file != file_) return;
      if (ended.points) show(ended);
      fills_.start(static_cast<int>(std::max(kFillAfter, 3 * took)));
    });
  });
}

void SweepRun::open(const std::filesystem::path& results) {
  if (busy()) {
    say(tr("A sweep is running; cancel it before other results are opened."));
    return;
  }
  reading_.start([this, results](const std::atomic<bool>& stop) {
    auto points = read_points(results, stop);
    Ended ended{nullptr, points ? points->summary() : qt(points.error())};
    if (points) ended.points = std::make_shared<const SweepPoints>(*std::move(points));
    return Background::Done([this, ended = std::move(ended)] {
      if (!busy()) show(ended);
    });
  });
}

void SweepRun::save(SweepQuestion question, const std::filesystem::path& file) {
  saving_.start([this, question = std::move(question), file](const std::atomic<bool>& /*stop*/) {
    const auto written = sweep_of(question).and_then(
        [&](const Sweep& sweep) { return write_file(file, sweep.text); });
    const QString status =
        written ? tr("Written to %1.").arg(path_text(file)) : qt(written.error());
    return Background::Done([this, status] { say(status); });
  });
}

void SweepRun::show(const Ended& ended) {
  if (ended.points) {
    points_ = ended.points;
    scenario_ = ended.scenario;
    Q_EMIT points_changed();
  }
  say(ended.status, ended.points != nullptr);
}

void SweepRun::say(const QString& status, bool of_points) {
  status_ = status;
  tells_of_points_ = of_points;
  Q_EMIT said();
}

}  // namespace trainyard

#include "gui/presenters/execution/execution.h"

#include <sys/prctl.h>
#include <sys/types.h>

#include <QCoreApplication>
#include <QFileInfo>
#include <QStandardPaths>
#include <algorithm>
#include <csignal>
#include <limits>
#include <utility>

#include "executor/host/machine_memory.h"
#include "gui/presenters/text.h"
#include "planner/planner.h"
#include "scenarios/json/file.h"
#include "scenarios/json/output_file.h"
#include "scenarios/text/readable.h"

namespace trainyard {
namespace {

constexpr int kPatience = 10000;     // ms from telling the child to end until it is killed
constexpr int kLastPatience = 5000;  // ms, the same when this program ends
constexpr int kAnswerIsNo = 1;       // exit status of a run whose numbers differ from one rank's

QString found_program() {
  QString beside = QCoreApplication::applicationDirPath() + QStringLiteral("/trainyard");
  if (QFileInfo(beside).isExecutable()) return beside;
  return QStandardPaths::findExecutable(QStringLiteral("trainyard"));
}

// Sends SIGINT, like Ctrl-C: the child then ends its ranks, saves what it has and exits.
void ask_to_end(const QProcess& process) {
  if (process.processId() > 0) ::kill(static_cast<pid_t>(process.processId()), SIGINT);
}

std::int64_t steps_of_all(const std::vector<RankStatus>& ranks) {
  std::int64_t done = ranks.empty() ? 0 : ranks.front().steps_done;
  for (const RankStatus& status : ranks) done = std::min(done, status.steps_done);
  return done;
}

}  // namespace

QString expected_run(const Candidate& candidate, int ranks) {
  const int planned = candidate.plan.devices();
  QString text = Execution::tr("The plan of the Explore page has %1 ranks").arg(qt(count(planned)));
  text += ranks < planned ? Execution::tr(
                                "; %1 run a smaller one: fewer replicas, then fewer stages of the "
                                "same layers.")
                                .arg(qt(count(ranks)))
                          : QStringLiteral(".");
  const Bytes machine = machine_memory();
  const Bytes each = candidate.estimate.peak_allocated;
  if (machine > Bytes(0) && each * std::min(ranks, planned) > machine) {
    text += Execution::tr(" A rank of it holds about %1, and this machine has %2.")
                .arg(qt(with_unit(each)), qt(with_unit(machine)));
  }
  return text;
}

Execution::Execution(QObject* parent) : QObject(parent), program_(found_program()) {
  process_.setStandardInputFile(QProcess::nullDevice());
  process_.setChildProcessModifier([] { ::prctl(PR_SET_PDEATHSIG, SIGINT); });
  patience_.setSingleShot(true);
  patience_.setInterval(kPatience);
  connect(&patience_, &QTimer::timeout, &process_, &QProcess::kill);
  connect(&process_, &QProcess::readyReadStandardError, this, &Execution::read_errors);
  connect(&process_, &QProcess::readyReadStandardOutput, this, &Execution::read_output);
  connect(&process_, &QProcess::finished, this, &Execution::end);
  connect(&process_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
    if (error == QProcess::FailedToStart) fail_with(process_.errorString());
  });
}

Execution::~Execution() {
  process_.disconnect(this);
  if (!busy()) return;
  ask_to_end(process_);
  if (process_.waitForFinished(kLastPatience)) return;
  process_.kill();
  process_.waitForFinished(kLastPatience);
}

QString Execution::lacking() const {
  if (program_.isEmpty()) {
    return tr("The program trainyard is neither beside this one nor on the path.");
  }
  return has_mpi() ? QString()
                   : tr("There is no MPI (mpirun) on this machine: runs have one rank here.");
}

bool Execution::has_mpi() const {
  return !QStandardPaths::findExecutable(QStringLiteral("mpirun")).isEmpty();
}

std::filesystem::path Execution::in_folder(const char* name) const {
  return path_of(folder_.path()) / name;
}

std::filesystem::path Execution::if_there(const char* name) const {
  std::error_code error;
  const std::filesystem::path file = in_folder(name);
  return !busy() && std::filesystem::exists(file, error) ? file : std::filesystem::path();
}

Expected<void> Execution::save(const std::filesystem::path& file) const {
  const std::filesystem::path from = profile().empty() ? device() : profile();
  const auto text = read_file(from, std::numeric_limits<std::size_t>::max());
  if (!text) return failure(from.string(), text.error().message);
  return write_file(file, *text);
}

void Execution::run(std::string_view scenario, const RunOrder& order) {
  if (!can_start()) return;
  QStringList arguments = {QStringLiteral("run"),       path_text(scenario_file()),
                           QStringLiteral("--backend"), order.backend,
                           QStringLiteral("--steps"),   QString::number(order.steps),
                           QStringLiteral("--warmup"),  QString::number(order.warmup),
                           QStringLiteral("-o"),        path_text(in_folder("profile.json")),
                           QStringLiteral("--trace"),   path_text(in_folder("trace.json")),
                           QStringLiteral("--watch")};
  if (order.ranks > 0) {
    arguments << QStringLiteral("--ranks") << QString::number(order.ranks)
              << QStringLiteral("--scale-down");
  }
  if (order.verify) arguments << QStringLiteral("--verify");
  is_run_ = true;
  begin(arguments, order.name);
  const auto written = write_file(scenario_file(), scenario);
  if (!written) {
    fail_with(qt(written.error()));
    return;
  }
  process_.start(program_, arguments);
}

void Execution::calibrate(const CalibrationOrder& order) {
  if (!can_start()) return;
  const QStringList arguments = {QStringLiteral("calibrate"),
                                 QStringLiteral("--backend"),
                                 order.backend,
                                 QStringLiteral("--ranks"),
                                 QString::number(order.ranks),
                                 QStringLiteral("--time-limit"),
                                 QString::number(order.time_limit),
                                 QStringLiteral("--watch"),
                                 QStringLiteral("-o"),
                                 path_text(in_folder("device.json"))};
  is_run_ = false;
  begin(arguments, tr("the calibration"));
  process_.start(program_, arguments);
}

void Execution::begin(const QStringList& arguments, const QString& name) {
  std::error_code ignored;
  for (const char* file : {"profile.json", "trace.json", "device.json"}) {
    std::filesystem::remove(in_folder(file), ignored);
  }
  watch_ = {};
  calibrated_ = -1;
  steps_logged_ = 0;
  name_ = name;
  last_complaint_.clear();
  summary_.clear();
  cancelled_ = failed_ = false;
  since_.start();
  Q_EMIT started();
  QString words = arguments.join(QLatin1Char(' ')).replace(path_text(scenario_file()), name_);
  words.remove(folder_.path() + QLatin1Char('/'));
  Q_EMIT logged(QStringLiteral("trainyard ") + words);
}

void Execution::cancel() {
  if (!busy()) return;
  cancelled_ = true;
  ask_to_end(process_);
  patience_.start();
}

double Execution::progress() const {
  if (!is_run_) return calibrated_;
  double done = 0, all = 0;
  for (const RankStatus& status : watch_.ranks()) {
    done += static_cast<double>(status.steps_done);
    all += static_cast<double>(status.steps);
  }
  return all > 0 ? done / all : -1;
}

void Execution::read_errors() {
  process_.setReadChannel(QProcess::StandardError);
  while (process_.canReadLine()) {
    const QByteArray line = process_.readLine().trimmed();
    const std::string_view text(line.constData(), static_cast<std::size_t>(line.size()));
    if (auto ranks = read_rank_status(text)) {
      take_status(*std::move(ranks));
    } else if (const auto progress = read_progress(text)) {
      calibrated_ = *progress;
      Q_EMIT looked();
    } else {
      take_line(QString::fromUtf8(line));
    }
  }
}

void Execution::read_output() {
  process_.setReadChannel(QProcess::StandardOutput);
  while (process_.canReadLine()) {
    QString line = QString::fromUtf8(process_.readLine());
    while (line.endsWith(QLatin1Char('\n'))) line.chop(1);
    Q_EMIT logged(line);
  }
}

// Logs a line of the error stream, in which the user's name of the scenario replaces our file's.
void Execution::take_line(const QString& line) {
  if (line.isEmpty()) return;
  last_complaint_ = line;
  last_complaint_.replace(path_text(scenario_file()), name_);
  Q_EMIT logged(last_complaint_);
}

void Execution::take_status(std::vector<RankStatus> ranks) {
  const bool was_well = watch_.alert().isEmpty();
  watch_.look(static_cast<double>(since_.elapsed()) / 1000, std::move(ranks));
  if (was_well && !watch_.alert().isEmpty()) Q_EMIT logged(watch_.alert());
  const std::int64_t done = steps_of_all(watch_.ranks());
  if (done > steps_logged_) {
    steps_logged_ = done;
    Seconds time;
    for (const RankStatus& status : watch_.ranks()) time = std::max(time, status.step_time);
    Q_EMIT logged(
        tr("step %1: %2, loss %3")
            .arg(qt(count(done)), qt(with_unit(time)), qt(number(watch_.ranks().front().loss, 6))));
  }
  Q_EMIT looked();
}

void Execution::fail_with(const QString& problem) {
  failed_ = true;
  summary_ = problem;
  Q_EMIT logged(problem);
  Q_EMIT finished();
}

void Execution::end(int status, QProcess::ExitStatus how) {
  patience_.stop();
  read_errors();
  read_output();
  const QString time = qt(with_unit(Seconds(static_cast<double>(since_.elapsed()) / 1000)));
  if (cancelled_) {
    summary_ =
        is_run_ ? tr("Cancelled after %1; %2 steps were done.").arg(time, qt(count(steps_logged_)))
                : tr("Cancelled after %1.").arg(time);
  } else if (how == QProcess::CrashExit) {
    failed_ = true;
    summary_ = tr("The program ended by itself after %1.").arg(time);
  } else if (status == 0) {
    summary_ = tr("Done in %1.").arg(time);
  } else if (status == kAnswerIsNo) {
    failed_ = true;
    summary_ = tr("The numbers differ from those of one rank: see the log.");
  } else {
    failed_ = true;
    summary_ = last_complaint_;
  }
  Q_EMIT finished();
}

}  // namespace trainyard

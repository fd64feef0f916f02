// Runs `trainyard run` and `trainyard calibrate` as child processes: starts them, reads what they
// write line by line, and ends them. The child supervises its ranks and leaves none running when it
// is interrupted (SIGINT). The kernel interrupts it too if this program dies.
#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <QProcess>
#include <QString>
#include <QTemporaryDir>
#include <QTimer>
#include <filesystem>
#include <string_view>

#include "gui/presenters/execution/rank_watch.h"
#include "model/expected.h"

namespace trainyard {

struct RunOrder {
  QString name;  // how messages call the scenario
  QString backend = QStringLiteral("cpu");
  int ranks = 0;  // 0: all ranks of the plan; fewer than the plan has: a run that is scaled down
  int steps = 3, warmup = 1;
  bool verify = false;
};

struct CalibrationOrder {
  QString backend = QStringLiteral("cpu");
  int ranks = 2;
  double time_limit = 60;  // s
};

struct Candidate;
// How a run of the plan on `ranks` ranks would be scaled down, and whether this machine's memory
// suffices.
QString expected_run(const Candidate& candidate, int ranks);

class Execution : public QObject {
  Q_OBJECT
 public:
  explicit Execution(QObject* parent = nullptr);
  ~Execution() override;  // ends the child

  // What this machine lacks for a run, in a line; empty: nothing.
  QString lacking() const;
  bool has_mpi() const;
  bool can_start() const { return !busy() && !program_.isEmpty(); }

  // The file that run() writes the scenario to. Relative paths in its text must suit this place.
  std::filesystem::path scenario_file() const { return in_folder("scenario.json"); }
  void run(std::string_view scenario, const RunOrder& order);
  void calibrate(const CalibrationOrder& order);
  void cancel();

  bool busy() const { return process_.state() != QProcess::NotRunning; }
  double progress() const;  // fraction of the steps or of the calibration; below 0: unknown
  const RankWatch& watch() const { return watch_; }
  // How the last run or calibration ended, in a line.
  const QString& summary() const { return summary_; }
  bool failed() const { return failed_; }
  bool is_complete() const { return !summary_.isEmpty() && !failed_ && !cancelled_; }
  // The files that the child wrote; empty: it did not write that one.
  std::filesystem::path profile() const { return if_there("profile.json"); }
  std::filesystem::path trace() const { return if_there("trace.json"); }
  std::filesystem::path device() const { return if_there("device.json"); }
  // Saves the profile of a run, or the device of a calibration. On an error the file is unchanged.
  Expected<void> save(const std::filesystem::path& file) const;

 Q_SIGNALS:
  void started();
  void logged(const QString& line);
  void looked();  // new status of the ranks or progress of a calibration
  void finished();

 private:
  std::filesystem::path in_folder(const char* name) const;
  std::filesystem::path if_there(const char* name) const;
  void begin(const QStringList& arguments, const QString& name);
  void read_errors();
  void read_output();
  void take_line(const QString& line);
  void take_status(std::vector<RankStatus> ranks);
  void fail_with(const QString& problem);
  void end(int status, QProcess::ExitStatus how);

  QString program_;  // the command `trainyard`, beside this program or on PATH; empty: not found
  QTemporaryDir folder_;
  QProcess process_;
  QTimer patience_;  // time until a child that was told to end is killed
  QElapsedTimer since_;
  RankWatch watch_;
  double calibrated_ = -1;
  std::int64_t steps_logged_ = 0;
  QString name_, last_complaint_, summary_;
  bool is_run_ = false, cancelled_ = false, failed_ = false;
};

}  // namespace trainyard

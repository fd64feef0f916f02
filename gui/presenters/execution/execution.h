// `trainyard run` and `trainyard calibrate` as child processes: started, watched line by line, and
// ended. The program supervises its ranks itself and leaves none over when it is told to end, which
// it also is when this program dies.
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
  QString name;  // of the scenario, for messages
  QString backend = QStringLiteral("cpu");
  int ranks = 0;  // fewer than the plan has: a smaller run; 0: all
  int steps = 3, warmup = 1;
  bool verify = false;
};

struct CalibrationOrder {
  QString backend = QStringLiteral("cpu");
  int ranks = 2;
  double time_limit = 60;  // s
};

struct Candidate;
// What a run of a plan on `ranks` of this machine would be, in a line or two.
QString expected_run(const Candidate& candidate, int ranks);

class Execution : public QObject {
  Q_OBJECT
 public:
  explicit Execution(QObject* parent = nullptr);
  ~Execution() override;  // ends what runs

  // What the machine lacks, in a line; empty: nothing.
  QString lacking() const;
  bool has_mpi() const;
  bool can_start() const { return !busy() && !program_.isEmpty(); }

  // Where the scenario of the next run will lie: what its text must be written for.
  std::filesystem::path scenario_file() const { return in_folder("scenario.json"); }
  void run(std::string_view scenario, const RunOrder& order);
  void calibrate(const CalibrationOrder& order);
  void cancel();

  bool busy() const { return process_.state() != QProcess::NotRunning; }
  double progress() const;  // share of the steps, or of a calibration; below 0: unknown
  const RankWatch& watch() const { return watch_; }
  // How it ended, in a line.
  const QString& summary() const { return summary_; }
  bool failed() const { return failed_; }
  bool is_complete() const { return !summary_.isEmpty() && !failed_ && !cancelled_; }
  // What it wrote; empty: nothing.
  std::filesystem::path profile() const { return if_there("profile.json"); }
  std::filesystem::path trace() const { return if_there("trace.json"); }
  std::filesystem::path device() const { return if_there("device.json"); }
  // The profile, or the device where that is what it wrote: whole, or the file stays as it was.
  Expected<void> save(const std::filesystem::path& file) const;

 Q_SIGNALS:
  void started();
  void logged(const QString& line);
  void looked();  // at the ranks
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

  QString program_;  // beside this one or on the path; empty: neither
  QTemporaryDir folder_;
  QProcess process_;
  QTimer patience_;  // with a process that is told to end
  QElapsedTimer since_;
  RankWatch watch_;
  double calibrated_ = -1;
  std::int64_t steps_logged_ = 0;
  QString name_, last_complaint_, summary_;
  bool is_run_ = false, cancelled_ = false, failed_ = false;
};

}  // namespace trainyard

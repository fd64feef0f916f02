// A sweep from what is typed to its points: checked while it is typed, answered into a result file
// by threads beside the window, and the points of a result file as they come.
#pragma once

#include <QObject>
#include <QString>
#include <QTimer>
#include <filesystem>
#include <memory>

#include "gui/presenters/background.h"
#include "gui/presenters/sweep/sweep_axes.h"
#include "gui/presenters/sweep/sweep_points.h"

namespace trainyard {

class SweepRun : public QObject {
  Q_OBJECT
 public:
  explicit SweepRun(QObject* parent = nullptr);
  ~SweepRun() override;

  // How many points it has, how many of them are refused, or what is wrong with it; a moment after
  // the last of them.
  void check(SweepQuestion question);
  const QString& verdict() const { return verdict_; }
  // The verdict is of a question before.
  bool is_checking() const { return typed_.isActive() || checking_.busy(); }

  // Into a new file, or on where the file stopped.
  void start(SweepQuestion question, const std::filesystem::path& results);
  // What is complete stays in the file.
  void cancel() { work_.stop(); }
  bool busy() const { return work_.busy(); }
  // A result file that is there; not while a sweep runs.
  void open(const std::filesystem::path& results);
  // The sweep as a document, complete in itself.
  void save(SweepQuestion question, const std::filesystem::path& file);

  // nullptr: none yet.
  const std::shared_ptr<const SweepPoints>& points() const { return points_; }
  // The document's text that the points are of; empty: of a file that was opened.
  const std::string& scenario() const { return scenario_; }
  // What is shown, or the one line that says what is wrong.
  const QString& status() const { return status_; }

 Q_SIGNALS:
  void checked();
  void started();
  void progressed(double share);
  void points_changed();
  void finished();
  void said();  // there is another status

 private:
  struct Ended {
    std::shared_ptr<const SweepPoints> points;  // nullptr: status says why
    QString status;
    std::string scenario;  // see scenario()
  };
  Ended answer(const SweepQuestion& question, const std::filesystem::path& results,
               const std::atomic<bool>& stop);
  void post_progress(double share, double& posted);
  void read_so_far();
  void show_verdict(const QString& verdict);
  void end(const Ended& ended);
  void show(const Ended& ended);
  void say(const QString& status);

  SweepQuestion question_;  // to be checked
  QString verdict_;
  std::filesystem::path file_;  // that is filled
  std::string running_;         // the document's text of what fills it
  std::string scenario_;
  std::shared_ptr<const SweepPoints> points_;
  QString status_;
  QTimer typed_, fills_;
  Background checking_, work_, reading_, saving_;
};

}  // namespace trainyard

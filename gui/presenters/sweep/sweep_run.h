// A sweep from its form to its points. It is checked while it is typed, then answered into a result
// file by background threads; the points are read from that file while it fills.
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

  // Finds the verdict: how many points there are and how many are refused, or what is wrong. Starts
  // a moment after the last call, not at every keystroke.
  void check(SweepQuestion question);
  const QString& verdict() const { return verdict_; }
  // Whether verdict() is still that of an earlier question.
  bool is_checking() const { return typed_.isActive() || checking_.busy(); }

  // Answers the sweep into a new file, or goes on with an incomplete file of the same sweep.
  void start(SweepQuestion question, const std::filesystem::path& results);
  // Points that are complete stay in the file.
  void cancel() { work_.stop(); }
  bool busy() const { return work_.busy(); }
  // Shows an existing result file. While a sweep runs it only says that it cannot.
  void open(const std::filesystem::path& results);
  // Writes the sweep as a document that needs no other.
  void save(SweepQuestion question, const std::filesystem::path& file);

  // nullptr: there are none yet.
  const std::shared_ptr<const SweepPoints>& points() const { return points_; }
  // The document's text when the points were answered; empty: they come from an opened file.
  const std::string& scenario() const { return scenario_; }
  // What the points are, or what is wrong, in a line.
  const QString& status() const { return status_; }
  // Whether status() is about points(); else it is about what was asked for last, as a file that
  // cannot be opened.
  bool tells_of_points() const { return tells_of_points_; }

 Q_SIGNALS:
  void checked();
  void started();
  void progressed(double share);
  void points_changed();
  void finished();
  void said();  // status() has changed

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
  void say(const QString& status, bool of_points = false);

  SweepQuestion question_;  // the one to be checked
  QString verdict_;
  std::filesystem::path file_;  // the result file that the running sweep fills
  std::string running_;         // the document's text of the running sweep
  std::string scenario_;
  std::shared_ptr<const SweepPoints> points_;
  QString status_;
  bool tells_of_points_ = false;
  QTimer typed_, fills_;
  Background checking_, work_, reading_, saving_;
};

}  // namespace trainyard

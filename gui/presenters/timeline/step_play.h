// A plan's step played by the simulator, or a saved trace, on a thread of its own, and what the
// timeline shows of it.
#pragma once

#include <QObject>
#include <QString>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "gui/presenters/background.h"
#include "model/plan/plan.h"

namespace trainyard {

class TimelineScene;
struct Question;
struct StepOptions;
struct StepSimulation;

struct PlayedStep {
  std::shared_ptr<const Question> question;  // null: of a trace, as plan and simulation
  Plan plan;
  std::shared_ptr<const StepSimulation> simulation;
  std::shared_ptr<const TimelineScene> scene;
  QString summary;       // in a line
  bool misfits = false;  // the simulated plan, by the memory that it needs
  QString shares_title;
  std::vector<QString> shares;  // of the critical path, or operations; the longest first
};

class StepPlay : public QObject {
  Q_OBJECT
 public:
  explicit StepPlay(QObject* parent = nullptr);
  ~StepPlay() override;

  void start(std::shared_ptr<const Question> question, const Plan& plan,
             const StepOptions& options);
  void open(const std::filesystem::path& trace);
  // What was there before stays, and a problem says so.
  void cancel() { work_.stop(); }
  bool busy() const { return work_.busy(); }
  // nullptr: none yet, or the last one failed.
  const std::shared_ptr<const PlayedStep>& step() const { return step_; }
  const QString& problem() const { return problem_; }

 Q_SIGNALS:
  void started();
  void progressed(double fraction);
  void finished();

 private:
  // Told by the work, for the window: once for each part of a hundred.
  std::function<void(double fraction)> teller();
  // What the window is told when the work is done.
  Background::Done shown(std::shared_ptr<const PlayedStep> step, const QString& problem);
  Background::Done cancelled();

  std::shared_ptr<const PlayedStep> step_;
  QString problem_;
  Background work_;
};

}  // namespace trainyard

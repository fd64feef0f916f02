// A plan's step played by the simulator on a thread of its own, and what the timeline shows of it.
#pragma once

#include <QObject>
#include <QString>
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
  std::shared_ptr<const Question> question;
  Plan plan;
  std::shared_ptr<const StepSimulation> simulation;
  std::shared_ptr<const TimelineScene> scene;
  QString summary;                   // in a line
  std::vector<QString> path_shares;  // of the critical path, the longest first
};

class StepPlay : public QObject {
  Q_OBJECT
 public:
  explicit StepPlay(QObject* parent = nullptr);
  ~StepPlay() override;

  void start(std::shared_ptr<const Question> question, const Plan& plan,
             const StepOptions& options);
  bool busy() const { return work_.busy(); }
  // nullptr: none yet, or the last one failed.
  const std::shared_ptr<const PlayedStep>& step() const { return step_; }
  const QString& problem() const { return problem_; }

 Q_SIGNALS:
  void started();
  void finished();

 private:
  std::shared_ptr<const PlayedStep> step_;
  QString problem_;
  Background work_;
};

}  // namespace trainyard

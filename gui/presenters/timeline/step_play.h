// Simulates the step of a plan, or reads a saved trace, on a background thread, and prepares what
// the Timeline page shows of it.
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
enum class Fold;
enum class NetworkGrain;
struct Question;
struct StepOptions;
struct StepSimulation;

struct PlayedStep {
  std::shared_ptr<const Question> question;  // null for a trace, which has no plan or simulation
  Plan plan;
  std::shared_ptr<const StepSimulation> simulation;
  NetworkGrain grain{};  // of a simulation, as it was asked for
  Fold fold{};
  std::shared_ptr<const TimelineScene> scene;
  QString summary;       // one line
  bool misfits = false;  // the simulated plan needs more memory than the device has
  QString shares_title;
  // Lines with the operations that take longest: on the critical path, or in the whole trace. Then
  // the fixed times of a simulated step.
  std::vector<QString> shares;
};

class StepPlay : public QObject {
  Q_OBJECT
 public:
  explicit StepPlay(QObject* parent = nullptr);
  ~StepPlay() override;

  void start(std::shared_ptr<const Question> question, const Plan& plan,
             const StepOptions& options);
  void open(const std::filesystem::path& trace);
  // The earlier step stays, as where work fails, and problem() says that the work was cancelled.
  void cancel() { work_.stop(); }
  bool busy() const { return work_.busy(); }
  // The last one that succeeded; nullptr: there is none yet.
  const std::shared_ptr<const PlayedStep>& step() const { return step_; }
  const QString& problem() const { return problem_; }

 Q_SIGNALS:
  void started();
  void progressed(double fraction);
  void finished();

 private:
  // A function by which the background thread reports progress, at most once per percent.
  std::function<void(double fraction)> teller();
  // What runs on the window's thread when the work is done.
  Background::Done shown(std::shared_ptr<const PlayedStep> step);
  Background::Done failed(const QString& problem);
  Background::Done cancelled();

  std::shared_ptr<const PlayedStep> step_;
  QString problem_;
  Background work_;
};

}  // namespace trainyard

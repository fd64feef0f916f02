#include "gui/presenters/step_play.h"

#include <algorithm>
#include <utility>

#include "gui/presenters/answer.h"
#include "gui/presenters/text.h"
#include "gui/presenters/timeline_scene.h"
#include "scenarios/question.h"
#include "scenarios/readable.h"
#include "simulator/critical_path.h"
#include "simulator/step.h"

namespace trainyard {
namespace {

QString summary_of_play(const PlayedStep& played) {
  const StepSimulation& found = *played.simulation;
  const Estimate before = estimate(played.question->job, played.plan);
  const QString ranks =
      found.step.folded() ? StepPlay::tr("a rank for each stage") : StepPlay::tr("every rank");
  return StepPlay::tr("%1 simulated, %2 estimated (%3); %4 operations of %5, %6 events")
      .arg(qt(with_unit(found.step_time)), qt(with_unit(before.step_time)),
           qt(signed_percent(before.step_time / found.step_time - 1) + " %"),
           qt(count(found.operations)), ranks, qt(count(found.timeline.events)));
}

std::vector<QString> shares_of(const StepSimulation& found) {
  std::vector<QString> lines;
  constexpr std::size_t kShown = 12;
  const auto shares = path_shares(found.step, critical_path(found.step, found.timeline));
  for (const PathShare& share : shares) {
    if (lines.size() == kShown) break;
    lines.push_back(StepPlay::tr("%1 %2 (%3 ×)")
                        .arg(qt(with_unit(share.time)), qt(share.operation))
                        .arg(share.tasks));
  }
  return lines;
}

}  // namespace

StepPlay::StepPlay(QObject* parent) : QObject(parent), work_(*this) {}
StepPlay::~StepPlay() = default;

void StepPlay::start(std::shared_ptr<const Question> question, const Plan& plan,
                     const StepOptions& options) {
  Q_EMIT started();
  work_.start([this, question = std::move(question), plan, options](const std::atomic<bool>&) {
    auto simulated = simulate(question->job, plan, options);
    auto played = std::make_shared<PlayedStep>();
    QString problem;
    if (simulated) {
      played->question = question;
      played->plan = plan;
      played->simulation = std::make_shared<const StepSimulation>(*std::move(simulated));
      played->scene = TimelineScene::of(played->simulation);
      played->summary = summary_of_play(*played);
      played->path_shares = shares_of(*played->simulation);
    } else {
      problem = qt(simulated.error());
      played = nullptr;
    }
    return Background::Done([this, played = std::move(played), problem] {
      step_ = played;
      problem_ = problem;
      Q_EMIT finished();
    });
  });
}

}  // namespace trainyard

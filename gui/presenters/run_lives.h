// Many lives of the whole run, on a thread of their own: where its time goes and when it ends. Then
// the interval between checkpoints that would be the best, which takes longer.
#pragma once

#include <QObject>
#include <QString>
#include <memory>
#include <optional>
#include <vector>

#include "gui/presenters/answer.h"
#include "gui/presenters/background.h"
#include "gui/presenters/loss_tree.h"
#include "simulator/life/tuning.h"

namespace trainyard {

struct Question;

struct LivesAnswer {
  std::shared_ptr<const Question> question;
  Plan plan;
  std::vector<BarPart> parts;    // of the run's time, mean, seconds
  std::vector<LossNode> losses;  // the same as a tree
  std::vector<double> days;      // that each life takes
  // What the lives differ in: days, or their goodput where all have the same duration.
  std::vector<double> spread;
  QString spread_unit, spread_name;
  QString summary;
  bool misfits = false;  // the plan, by its memory
  LifeSettings settings;
  Seconds young, daly;   // intervals of the closed form
  Seconds around;        // where the best one is looked for
  bool is_whole = true;  // false: cancelled before all lives
};

class RunLives : public QObject {
  Q_OBJECT
 public:
  explicit RunLives(QObject* parent = nullptr);
  ~RunLives() override;

  void start(std::shared_ptr<const Question> question, const Candidate& candidate);
  // With the lives that have ended; before the first one the answer from before stays, and a
  // problem says so.
  void cancel();
  bool busy() const { return work_.busy(); }
  // nullptr: none yet, or the last one failed.
  const std::shared_ptr<const LivesAnswer>& answer() const { return answer_; }
  const QString& problem() const { return problem_; }
  // Between checkpoints, of the answer; nothing: not found yet, or not at all.
  const std::optional<BestInterval>& best_interval() const { return best_; }
  bool gains() const;  // it is better than the interval that was taken
  bool is_tuning() const { return tuning_.busy(); }
  // The interval that was taken beside others, in a line; empty: there is no answer.
  QString interval_text() const;

 Q_SIGNALS:
  void started();
  void progressed(double share);
  void finished();
  void tuned();  // the best interval is found, or never will be

 private:
  Background::Done cancelled();
  void tune();
  void show(std::shared_ptr<const LivesAnswer> answer, const QString& problem);

  std::shared_ptr<const LivesAnswer> answer_;
  QString problem_;
  std::optional<BestInterval> best_;
  Background work_, tuning_;
};

}  // namespace trainyard

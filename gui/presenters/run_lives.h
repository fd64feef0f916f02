// Simulates many lives of the whole run on a background thread: where its time goes and when it
// ends. Then a second search, which takes longer, finds the best interval between checkpoints.
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
  std::vector<BarPart> parts;    // parts of the run's time in seconds, means over the lives
  std::vector<LossNode> losses;  // the same as a tree
  std::vector<double> days;      // [life]: how long it takes
  // [life]: its duration in days, or, if all lives last equally long, its goodput in %.
  std::vector<double> spread;
  QString spread_unit, spread_name;
  QString summary;
  bool misfits = false;  // the plan needs more memory than the device has
  LifeSettings settings;
  Seconds young, daly;   // the best intervals in closed form (Young, Daly)
  Seconds around;        // the search for the best interval starts here
  bool is_whole = true;  // false: cancelled before all lives had ended
};

class RunLives : public QObject {
  Q_OBJECT
 public:
  explicit RunLives(QObject* parent = nullptr);
  ~RunLives() override;

  void start(std::shared_ptr<const Question> question, const Candidate& candidate);
  // Ends with an answer from the lives that have ended by then. If none has, the earlier answer
  // stays and problem() says that the simulation was cancelled.
  void cancel();
  bool busy() const { return work_.busy(); }
  // nullptr: there is no answer yet, or the last simulation failed.
  const std::shared_ptr<const LivesAnswer>& answer() const { return answer_; }
  const QString& problem() const { return problem_; }
  // The best interval between checkpoints for the answer; nothing: not found yet, or none found.
  const std::optional<BestInterval>& best_interval() const { return best_; }
  bool gains() const;  // whether it gives a better goodput than the answer's own interval
  bool is_tuning() const { return tuning_.busy(); }
  // The answer's interval beside Young's, Daly's and the best one; empty: there is no answer.
  QString interval_text() const;

 Q_SIGNALS:
  void started();
  void progressed(double share);
  void finished();
  void tuned();  // the search for the best interval has begun, or has ended

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

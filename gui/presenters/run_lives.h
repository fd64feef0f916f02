// Many lives of the whole run, on a thread of their own: where its time goes and when it ends.
#pragma once

#include <QObject>
#include <QString>
#include <memory>
#include <vector>

#include "gui/presenters/answer.h"
#include "gui/presenters/background.h"
#include "gui/presenters/loss_tree.h"

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
};

class RunLives : public QObject {
  Q_OBJECT
 public:
  explicit RunLives(QObject* parent = nullptr);
  ~RunLives() override;

  void start(std::shared_ptr<const Question> question, const Candidate& candidate);
  void cancel() { work_.stop(); }
  bool busy() const { return work_.busy(); }
  // nullptr: none yet, or the last one failed.
  const std::shared_ptr<const LivesAnswer>& answer() const { return answer_; }
  const QString& problem() const { return problem_; }

 Q_SIGNALS:
  void started();
  void progressed(double share);
  void finished();

 private:
  void show(std::shared_ptr<const LivesAnswer> answer, const QString& problem);

  std::shared_ptr<const LivesAnswer> answer_;
  QString problem_;
  Background work_;
};

}  // namespace trainyard

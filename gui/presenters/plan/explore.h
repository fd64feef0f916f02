// One plan of a job, changed key by key, and its estimate. Every control has the values that are
// legal with all others as they are (the core says which); data parallelism fills the cluster.
// A change is answered before the function returns; what would help is looked for beside it.
#pragma once

#include <QObject>
#include <QString>
#include <QStringList>
#include <memory>
#include <optional>
#include <vector>

#include "gui/presenters/background.h"
#include "planner/findings/explain.h"

namespace trainyard {

struct Question;

struct ExploreControl {
  QString key;  // as documents spell it
  QString label, help;
  std::vector<int> values;  // legal ones
  QStringList names;        // of the values
  int at = 0;               // in values
  bool is_degree = true;    // else one of a few names
};

struct Remedies {
  std::vector<Remedy> plans, hardware;
  std::optional<Remedy> closest;  // to fitting, where no neighbouring plan does
};

class Explore : public QObject {
  Q_OBJECT
 public:
  explicit Explore(QObject* parent = nullptr);
  ~Explore() override;

  // Its plan, or what the rule of thumb makes of a job without one; `why_none` is the problem where
  // there is no question.
  void set_question(std::shared_ptr<const Question> question, const QString& why_none = {});
  const std::shared_ptr<const Question>& question() const { return question_; }

  const std::vector<ExploreControl>& controls() const { return controls_; }
  void choose(const QString& key, int at);
  void set_request(const PlanRequest& request);

  // Nothing: there is no question, or no legal plan; `problem` says which.
  const std::optional<Candidate>& candidate() const { return candidate_; }
  const QString& problem() const { return problem_; }
  // Where the plan is from, if it is neither the scenario's nor the user's.
  QString origin() const;
  // What the documents leave open and the answer stands on, a line each.
  QString assumed() const;
  // Before an answer of that plan where it is another by now; plans are the same where a document
  // would have them so.
  QString age_of(const Plan& plan) const;
  const Remedies& remedies() const { return remedies_; }

 Q_SIGNALS:
  void changed();           // controls, candidate, problem
  void remedies_changed();  // later

 private:
  void answer();
  void find_remedies();

  std::shared_ptr<const Question> question_;
  PlanRequest request_;
  bool is_rule_of_thumb_ = false;
  std::vector<ExploreControl> controls_;
  std::optional<Candidate> candidate_;
  QString why_no_question_;
  QString problem_;
  Remedies remedies_;
  Background work_;
};

}  // namespace trainyard

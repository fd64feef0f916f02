// One plan of a job, which the user changes key by key, and its estimate. A control offers the
// values that give a legal plan while all other keys stay as they are (make_plan decides); data
// parallelism always takes the devices that are left. A change is priced before the function
// returns. Remedies, the changes that would help, are searched on a background thread.
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
  QString key;  // as it is spelt in documents
  QString label, help;
  std::vector<int> values;  // the legal ones
  QStringList names;        // what each value is called
  int at = 0;               // index of the present value
  bool is_degree = true;    // a number on a slider; false: a list of names
};

struct Remedies {
  std::vector<Remedy> plans, hardware;
  std::optional<Remedy> closest;  // neither the plan nor a neighbour fits; this one comes closest
};

class Explore : public QObject {
  Q_OBJECT
 public:
  explicit Explore(QObject* parent = nullptr);
  ~Explore() override;

  // Starts from the question's plan, or from the rule of thumb if the scenario has none. `why_none`
  // becomes the problem if there is no question.
  void set_question(std::shared_ptr<const Question> question, const QString& why_none = {});
  // The next question is of another document, which has no plan of the user's to lose.
  void leave_document();
  const std::shared_ptr<const Question>& question() const { return question_; }

  const std::vector<ExploreControl>& controls() const { return controls_; }
  void choose(const QString& key, int at);
  void set_request(const PlanRequest& request);
  // What the candidate is the plan of: keys that are left to the program, as `auto`, stay so here.
  const PlanRequest& request() const { return request_; }

  // Nothing if there is no question or no legal plan; problem() says which.
  const std::optional<Candidate>& candidate() const { return candidate_; }
  const QString& problem() const { return problem_; }
  // Says that the plan comes from the rule of thumb; empty: the scenario or the user gave it.
  QString origin() const;
  // Says that an edit of the scenario replaced the plan that the user had chosen here, until the
  // user chooses again; else empty.
  QString replaced() const;
  // The assumptions made where the documents leave something open, one a line.
  QString assumed() const;
  // A prefix for an answer about `plan`: empty if the present plan would be written to a document
  // alike, else that it is of another plan.
  QString age_of(const Plan& plan) const;
  const Remedies& remedies() const { return remedies_; }

 Q_SIGNALS:
  void changed();           // controls, candidate and problem
  void remedies_changed();  // comes later, when the search for remedies ends

 private:
  void answer();
  void find_remedies();

  std::shared_ptr<const Question> question_;
  PlanRequest request_;
  bool is_rule_of_thumb_ = false;
  bool is_chosen_ = false;        // by the user, not by the scenario
  std::optional<Plan> replaced_;  // the plan that was chosen before the last edits
  std::vector<ExploreControl> controls_;
  std::optional<Candidate> candidate_;
  QString why_no_question_;
  QString problem_;
  Remedies remedies_;
  Background work_;
};

}  // namespace trainyard

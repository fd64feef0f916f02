// Runs the planner's search on a background thread. It reports progress and the best plan so far,
// and in the end the plans that the search kept. A cancelled search ends with what it has found.
#pragma once

#include <QObject>
#include <QString>
#include <QTimer>
#include <memory>
#include <optional>

#include "gui/presenters/background.h"
#include "planner/planner.h"

namespace trainyard {

struct Question;

struct SearchProgress {
  double fraction = 0;
  std::int64_t priced = 0;  // plans priced so far
  double best = 0;          // objective of the incumbent, the best plan that fits; infinite: none
  double gap = 1;           // fraction by which a lower bound on all plans lies below `best`
};

// The result of a search, with the question and the options that it was asked with.
struct SearchAnswer {
  std::shared_ptr<const Question> question;
  SearchOptions options;
  SearchResult result;
  bool cancelled = false;

  const std::vector<Candidate>& candidates() const { return result.plans_or_closest(); }
};

class PlanSearch : public QObject {
  Q_OBJECT
 public:
  explicit PlanSearch(QObject* parent = nullptr);
  ~PlanSearch() override;

  void start(std::shared_ptr<const Question> question, Objective objective, int top);
  void cancel();
  bool busy() const { return work_.busy(); }
  const std::shared_ptr<const SearchAnswer>& answer() const { return answer_; }
  // Why the last search failed (answer() is then an earlier one, or null); empty: it did not.
  const QString& problem() const { return problem_; }

 Q_SIGNALS:
  void started();
  void progressed(const trainyard::SearchProgress& progress);
  void finished();

 private:
  struct Live;

  void report();
  void end(std::shared_ptr<const SearchAnswer> answer, const QString& problem);

  std::shared_ptr<Live> live_;
  std::shared_ptr<const SearchAnswer> answer_;
  QString problem_;
  QTimer reports_;
  Background work_;
};

}  // namespace trainyard

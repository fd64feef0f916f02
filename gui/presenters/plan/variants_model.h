// Compares pinned variants of a plan side by side: a column for each variant and a last one for the
// present plan, and a row for each figure and key of plan_figures(). Differences are relative to
// the first column.
#pragma once

#include <QAbstractTableModel>
#include <QStringList>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "planner/planner.h"

namespace trainyard {

struct Question;

class VariantsModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  explicit VariantsModel(QObject* parent = nullptr) : QAbstractTableModel(parent) {}

  // `request`: what the candidate's plan was made from, for the way back to it.
  void set_now(const std::optional<Candidate>& candidate,
               std::shared_ptr<const Question> question = nullptr, PlanRequest request = {});
  enum class Age { present, before_a_change, of_another_document };
  // Marks the variants whose question no longer is that of the document.
  void mark(const std::function<Age(const std::shared_ptr<const Question>&)>& age_of);
  void pin();  // keeps the present plan as the next of A, B, C, …
  void unpin(int column);
  void clear();
  int pinned() const { return static_cast<int>(pinned_.size()); }
  const Candidate& at(int column) const {
    return pinned_[static_cast<std::size_t>(column)].candidate;
  }
  const PlanRequest& request_at(int column) const {
    return pinned_[static_cast<std::size_t>(column)].request;
  }

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation,
                      int role = Qt::DisplayRole) const override;

 private:
  const Candidate* column(int index) const;
  QString name_of(int column) const;

  struct Pinned {
    Candidate candidate;
    std::shared_ptr<const Question> question;
    PlanRequest request;
    int letter = 0;  // 0 is A
    Age age = Age::present;
  };
  std::vector<Pinned> pinned_;
  int next_letter_ = 0;
  std::optional<Candidate> now_;
  std::shared_ptr<const Question> question_;
  PlanRequest request_;
};

}  // namespace trainyard

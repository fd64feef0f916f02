// The plans that a search kept, as a table: first the figures of the estimate, then the keys of the
// plan. Numeric columns sort by value. Figures of which less is better can be axes of a scatter.
#pragma once

#include <QAbstractTableModel>
#include <QSortFilterProxyModel>
#include <memory>
#include <vector>

#include "planner/planner.h"

namespace trainyard {

struct SearchAnswer;

class CandidateModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Role {
    sort_role = Qt::UserRole,  // a number, or the text itself
  };

  explicit CandidateModel(QObject* parent = nullptr) : QAbstractTableModel(parent) {}

  void set_answer(std::shared_ptr<const SearchAnswer> answer);
  const std::shared_ptr<const SearchAnswer>& answer() const { return answer_; }
  const Candidate& at(int row) const;

  // The axes that a scatter can have, from 0 to axes() − 1; of each, less is better.
  static int axes();
  static QString axis_name(int axis);
  static QString axis_text(int axis, double value);
  static double axis_unit(int axis);  // ticks are round multiples of it: 1 GiB for memory
  double axis_value(int row, int axis) const;
  // [row]: whether the plan is on the Pareto front: no other is at least as good in both axes. Of
  // equal plans the first is on it.
  std::vector<bool> pareto(int axis_x, int axis_y) const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation,
                      int role = Qt::DisplayRole) const override;

 private:
  QVariant more_data(int row, int column, int role) const;
  QString choice_text(const Plan& plan, int column) const;  // counts columns after the figures

  std::shared_ptr<const SearchAnswer> answer_;
  std::vector<int> choices_;          // choices in which the plans differ; each has a column
  std::vector<double> over_goodput_;  // [row]: step time over goodput, in seconds
};

// Keeps the rows that match every word of a filter. "tp=8" asks for a value in a column; any other
// word may stand anywhere in the row.
class CandidateFilter : public QSortFilterProxyModel {
  Q_OBJECT
 public:
  explicit CandidateFilter(QObject* parent = nullptr);
  void set_filter(const QString& text);

 protected:
  bool filterAcceptsRow(int row, const QModelIndex& parent) const override;

 private:
  QStringList words_;
};

}  // namespace trainyard

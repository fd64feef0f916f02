// The plans that a search kept, as a table: figures first, then the keys of the plan. Numeric
// columns sort by value and can be the axes of a scatter.
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

  // Columns that are figures, for axes, and the value of one.
  static int axes();
  static QString axis_name(int axis);
  static QString axis_text(int axis, double value);
  static double axis_unit(int axis);  // in which numbers are round
  double axis_value(int row, int axis) const;
  // Of the plans, those that no other one beats in both.
  std::vector<bool> pareto(int axis_x, int axis_y) const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation,
                      int role = Qt::DisplayRole) const override;

 private:
  QVariant more_data(int row, int column, int role) const;
  QString choice_text(const Plan& plan, int column) const;  // after the figures

  std::shared_ptr<const SearchAnswer> answer_;
  std::vector<int> choices_;          // those in which plans differ: each has a column
  std::vector<double> over_goodput_;  // seconds: a step over the share of time that failures leave
};

// Rows that hold every word of a filter: "tp=8" names a column and its value, any other word is
// looked for in the whole row.
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

// The points of a sweep as a table: the keys that vary, whether the point fits or was refused, its
// figures, and why it was refused. The model sorts its rows itself, by value, so that a hundred
// thousand of them are sorted without a wait.
#pragma once

#include <QAbstractTableModel>
#include <memory>
#include <vector>

#include "gui/presenters/sweep/sweep_points.h"

namespace trainyard {

class SweepTable : public QAbstractTableModel {
  Q_OBJECT
 public:
  explicit SweepTable(QObject* parent = nullptr) : QAbstractTableModel(parent) {}

  // Shows these points, sorted as before.
  void set_points(std::shared_ptr<const SweepPoints> points);
  int point_at(int row) const { return order_[static_cast<std::size_t>(row)]; }
  int row_of(int point) const;  // −1: there is no such point

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation,
                      int role = Qt::DisplayRole) const override;
  void sort(int column, Qt::SortOrder order = Qt::AscendingOrder) override;  // −1: sweep order

 private:
  int keys() const { return static_cast<int>(points_->keys.size()); }
  QString text_at(const SweptPoint& point, int column) const;
  double size_at(const SweptPoint& point, int column) const;
  std::vector<int> sorted() const;

  std::shared_ptr<const SweepPoints> points_;
  std::vector<int> order_;  // [row]: index of its point
  int sorted_by_ = -1;
  Qt::SortOrder direction_ = Qt::AscendingOrder;
};

}  // namespace trainyard

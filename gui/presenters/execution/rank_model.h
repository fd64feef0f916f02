// The ranks of a run as a table. Each rank has a row that says where in the program it is, in which
// call it waits and how long its last step took.
#pragma once

#include <QAbstractTableModel>

#include "gui/presenters/execution/rank_watch.h"

namespace trainyard {

class RankModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  explicit RankModel(QObject* parent = nullptr) : QAbstractTableModel(parent) {}

  // Shows the ranks of the watch as they are now.
  void set_watch(RankWatch watch);

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation,
                      int role = Qt::DisplayRole) const override;

 private:
  RankWatch watch_;
};

}  // namespace trainyard

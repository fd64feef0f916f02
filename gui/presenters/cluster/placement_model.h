// Where a plan's ranks are: a row for each stage and context rank, a column for each replica, and
// in the cell the nodes of the tensor-parallel group that is there.
#pragma once

#include <QAbstractTableModel>
#include <memory>

namespace trainyard {

class ClusterMap;

class PlacementModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Role { rank_role = Qt::UserRole };  // the first of the group

  explicit PlacementModel(QObject* parent = nullptr) : QAbstractTableModel(parent) {}
  void set_map(std::shared_ptr<const ClusterMap> map);
  QModelIndex index_of(int rank) const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation,
                      int role = Qt::DisplayRole) const override;

 private:
  int contexts() const;

  std::shared_ptr<const ClusterMap> map_;
};

}  // namespace trainyard

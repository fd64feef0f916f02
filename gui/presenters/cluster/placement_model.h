// A table of where a plan's ranks are. It has a row for each pair of stage and context-parallel
// rank and a column for each data-parallel replica. A cell names the nodes of the tensor-parallel
// group with these coordinates.
#pragma once

#include <QAbstractTableModel>
#include <memory>

namespace trainyard {

class ClusterMap;

class PlacementModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Role { rank_role = Qt::UserRole };  // the first rank of the cell's group

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

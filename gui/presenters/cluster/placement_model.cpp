#include "gui/presenters/cluster/placement_model.h"

#include <utility>

#include "gui/presenters/cluster/cluster_map.h"

namespace trainyard {

void PlacementModel::set_map(std::shared_ptr<const ClusterMap> map) {
  beginResetModel();
  map_ = std::move(map);
  endResetModel();
}

int PlacementModel::contexts() const { return map_->places(MapColour::context); }

QModelIndex PlacementModel::index_of(int rank) const {
  if (!map_ || rank < 0 || rank >= map_->ranks()) return {};
  const int row = map_->place_of(rank, MapColour::stage) * contexts() +
                  map_->place_of(rank, MapColour::context);
  return index(row, map_->place_of(rank, MapColour::data));
}

int PlacementModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() || !map_ ? 0 : map_->places(MapColour::stage) * contexts();
}

int PlacementModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() || !map_ ? 0 : map_->places(MapColour::data);
}

QVariant PlacementModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const int stage = index.row() / contexts();
  const int context = index.row() % contexts();
  switch (role) {
    case Qt::DisplayRole:
      return map_->nodes_at(stage, context, index.column());
    case rank_role:
      return map_->rank_at(stage, context, index.column());
    case Qt::ToolTipRole:
      return map_->describe(map_->rank_at(stage, context, index.column()));
    case Qt::TextAlignmentRole:
      return QVariant(Qt::AlignCenter);
    default:
      return {};
  }
}

QVariant PlacementModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role != Qt::DisplayRole || !map_) return {};
  if (orientation == Qt::Horizontal) return tr("replica %1").arg(section);
  const int stage = section / contexts();
  return contexts() == 1 ? tr("stage %1").arg(stage)
                         : tr("stage %1, context %2").arg(stage).arg(section % contexts());
}

}  // namespace trainyard

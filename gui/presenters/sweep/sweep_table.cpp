#include "gui/presenters/sweep/sweep_table.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "gui/presenters/sweep/sweep_figures.h"
#include "gui/presenters/text.h"

namespace trainyard {

void SweepTable::set_points(std::shared_ptr<const SweepPoints> points) {
  beginResetModel();
  points_ = std::move(points);
  if (points_ && sorted_by_ >= columnCount()) sorted_by_ = -1;
  order_ = sorted();
  endResetModel();
}

int SweepTable::row_of(int point) const {
  const auto found = std::ranges::find(order_, point);
  return found == order_.end() ? -1 : static_cast<int>(found - order_.begin());
}

int SweepTable::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(order_.size());
}

int SweepTable::columnCount(const QModelIndex& parent) const {
  return parent.isValid() || !points_ ? 0 : keys() + static_cast<int>(points_->figures.size()) + 2;
}

QString SweepTable::text_at(const SweptPoint& point, int column) const {
  if (column < keys()) {
    const auto key = static_cast<std::size_t>(column);
    return points_->keys[key].values[point.places[key]];
  }
  if (column == keys()) {
    switch (point.row.status) {
      case PointStatus::done:
        return tr("fits");
      case PointStatus::too_large:
        return tr("does not fit");
      case PointStatus::refused:
        return tr("refused");
    }
  }
  const auto at = static_cast<std::size_t>(column - keys() - 1);
  if (at == points_->figures.size()) return qt(point.row.note);
  const std::size_t figure = points_->figures[at];
  return sweep_figure_text(figure, point.row.figures[figure]);
}

// The number that a column sorts by. Points without the figure come last in either direction;
// reasons keep the order of the points.
double SweepTable::size_at(const SweptPoint& point, int column) const {
  if (column < keys()) {
    const auto key = static_cast<std::size_t>(column);
    const auto place = static_cast<std::size_t>(point.places[key]);
    return points_->keys[key].rank[place];
  }
  if (column == keys()) return static_cast<double>(point.row.status);
  const auto at = static_cast<std::size_t>(column - keys() - 1);
  if (at == points_->figures.size()) return point.row.note.empty() ? 1 : 0;
  const double value = point.row.figures[points_->figures[at]];
  const double last = std::numeric_limits<double>::infinity();
  if (!std::isnan(value)) return value;
  return direction_ == Qt::AscendingOrder ? last : -last;
}

std::vector<int> SweepTable::sorted() const {
  if (!points_) return {};
  std::vector<int> order(points_->points.size());
  std::iota(order.begin(), order.end(), 0);
  if (sorted_by_ < 0) return order;
  std::vector<double> sizes;
  sizes.reserve(order.size());
  for (const SweptPoint& point : points_->points) sizes.push_back(size_at(point, sorted_by_));
  const auto size_of = [&sizes](int point) { return sizes[static_cast<std::size_t>(point)]; };
  if (direction_ == Qt::AscendingOrder) {
    std::ranges::stable_sort(order, std::less(), size_of);
  } else {
    std::ranges::stable_sort(order, std::greater(), size_of);
  }
  return order;
}

QVariant SweepTable::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const SweptPoint& point = points_->points[static_cast<std::size_t>(point_at(index.row()))];
  const bool is_note = index.column() + 1 == columnCount();
  if (role == Qt::TextAlignmentRole) {
    const bool is_figure = index.column() > keys() && !is_note;
    return QVariant(Qt::AlignVCenter | (is_figure ? Qt::AlignRight : Qt::AlignLeft));
  }
  // The column with the reason may be far to the right, so every cell of the row shows it.
  if (role == Qt::ToolTipRole && !point.row.note.empty()) return qt(point.row.note);
  if (role == Qt::DisplayRole) return text_at(point, index.column());
  return {};
}

QVariant SweepTable::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role != Qt::DisplayRole || !points_) return {};
  if (orientation == Qt::Vertical) {
    const auto point = static_cast<std::size_t>(point_at(section));
    return static_cast<qlonglong>(points_->points[point].row.point);
  }
  if (section < keys()) return points_->keys[static_cast<std::size_t>(section)].name;
  if (section == keys()) return tr("Answer");
  const auto at = static_cast<std::size_t>(section - keys() - 1);
  return at == points_->figures.size() ? tr("Why it was refused")
                                       : sweep_figure_name(points_->figures[at]);
}

void SweepTable::sort(int column, Qt::SortOrder order) {
  sorted_by_ = column;
  direction_ = order;
  Q_EMIT layoutAboutToBeChanged({}, QAbstractItemModel::VerticalSortHint);
  const QModelIndexList before = persistentIndexList();
  const std::vector<int> was = std::exchange(order_, sorted());
  std::vector<int> row_now(order_.size());
  for (std::size_t row = 0; row < order_.size(); ++row) {
    row_now[static_cast<std::size_t>(order_[row])] = static_cast<int>(row);
  }
  QModelIndexList after;
  for (const QModelIndex& at : before) {
    const int point = was[static_cast<std::size_t>(at.row())];
    after.append(index(row_now[static_cast<std::size_t>(point)], at.column()));
  }
  changePersistentIndexList(before, after);
  Q_EMIT layoutChanged({}, QAbstractItemModel::VerticalSortHint);
}

}  // namespace trainyard

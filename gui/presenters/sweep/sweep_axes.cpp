#include "gui/presenters/sweep/sweep_axes.h"

#include <algorithm>
#include <utility>

#include "gui/presenters/emphasis.h"
#include "gui/presenters/text.h"

namespace trainyard {
namespace {

constexpr int kUsualSteps = 5;
constexpr int kMostSteps = 10000;

}  // namespace

SweepAxes::SweepAxes(QObject* parent) : QAbstractTableModel(parent) {
  for (const SweepKey& key : sweep_keys()) keys_.append(qt(key.name));
}

void SweepAxes::set_axes(std::vector<DraftAxis> axes) {
  beginResetModel();
  axes_ = std::move(axes);
  endResetModel();
}

void SweepAxes::add_axis() {
  const int at = rowCount();
  beginInsertRows({}, at, at);
  axes_.emplace_back();
  endInsertRows();
}

void SweepAxes::remove_axis(int row) {
  if (row < 0 || row >= rowCount()) return;
  beginRemoveRows({}, row, row);
  axes_.erase(axes_.begin() + row);
  endRemoveRows();
}

int SweepAxes::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(axes_.size());
}

int SweepAxes::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : columns;
}

bool SweepAxes::checked(int row, int column) const {
  const DraftAxis& axis = axes_[static_cast<std::size_t>(row)];
  return column == scale_column ? axis.scale == Scale::geometric : axis.with_previous;
}

// An empty cell shows an example, except while it is edited.
QVariant SweepAxes::text_at(const DraftAxis& axis, int column, bool edited) const {
  switch (column) {
    case key_column:
      return axis.key.empty() && !edited ? tr("plan.tensor_parallel") : qt(axis.key);
    case values_column:
      return axis.values.empty() && !edited ? tr("1, 2, 4   or   100 Gbit/s .. 800 Gbit/s")
                                            : qt(axis.values);
    case steps_column:
      return is_range(axis.values) && (axis.steps > 0 || edited) ? QVariant(axis.steps)
                                                                 : QVariant();
    default:
      return {};
  }
}

QString SweepAxes::help_of(const DraftAxis& axis, int column) const {
  if (column == scale_column) return tr("Values of a range in equal ratios, not in equal steps");
  if (column == together_column) {
    return tr("Takes its values in step with the key above, as many as that has");
  }
  if (column == steps_column) return tr("Number of values of a range; 0 where points are drawn");
  const auto found = std::ranges::find(sweep_keys(), axis.key, &SweepKey::name);
  if (found == sweep_keys().end()) return {};
  return qt(found->name + ": " + found->doc + "\n" + found->allowed);
}

bool SweepAxes::shows_example(const DraftAxis& axis, int column) {
  return (column == key_column && axis.key.empty()) ||
         (column == values_column && axis.values.empty());
}

QVariant SweepAxes::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const DraftAxis& axis = axes_[static_cast<std::size_t>(index.row())];
  const int column = index.column();
  const bool is_box = column > steps_column && (flags(index) & Qt::ItemIsUserCheckable);
  if (is_box && role == Qt::DisplayRole) return checked(index.row(), column) ? tr("yes") : tr("no");
  if (is_box && role == Qt::CheckStateRole) {
    return checked(index.row(), column) ? Qt::Checked : Qt::Unchecked;
  }
  switch (role) {
    case Qt::DisplayRole:
    case Qt::EditRole:
      return text_at(axis, column, role == Qt::EditRole);
    case muted_role:
      return shows_example(axis, column);
    case Qt::ToolTipRole:
      return help_of(axis, column);
    case choices_role:
      return column == key_column ? keys_ : QStringList();
    default:
      return {};
  }
}

bool SweepAxes::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (!index.isValid()) return false;
  DraftAxis& axis = axes_[static_cast<std::size_t>(index.row())];
  const bool on = value.toInt() == Qt::Checked;
  const std::string typed = value.toString().trimmed().toStdString();
  switch (index.column()) {
    case key_column:
      axis.key = typed;
      break;
    case values_column:
      if (is_range(typed) && !is_range(axis.values)) axis.steps = kUsualSteps;
      axis.values = typed;
      break;
    case steps_column:
      axis.steps = std::clamp(value.toInt(), 0, kMostSteps);
      break;
    case scale_column:
      if (role != Qt::CheckStateRole) return false;
      axis.scale = on ? Scale::geometric : Scale::linear;
      break;
    default:
      if (role != Qt::CheckStateRole) return false;
      axis.with_previous = on;
  }
  Q_EMIT dataChanged(index.siblingAtColumn(0), index.siblingAtColumn(columns - 1));
  return true;
}

// Steps and scale can be set for a range only: a list of values has no use for them.
Qt::ItemFlags SweepAxes::flags(const QModelIndex& index) const {
  if (!index.isValid()) return {};
  const Qt::ItemFlags shown = Qt::ItemIsEnabled | Qt::ItemIsSelectable;
  const bool ranges = is_range(axes_[static_cast<std::size_t>(index.row())].values);
  switch (index.column()) {
    case steps_column:
      return ranges ? shown | Qt::ItemIsEditable : shown;
    case scale_column:
      return ranges ? shown | Qt::ItemIsUserCheckable : shown;
    case together_column:
      return index.row() > 0 ? shown | Qt::ItemIsUserCheckable : shown;
    default:
      return shown | Qt::ItemIsEditable;
  }
}

QVariant SweepAxes::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role != Qt::DisplayRole) return {};
  if (orientation == Qt::Vertical) return section + 1;
  switch (section) {
    case key_column:
      return tr("Key that varies");
    case values_column:
      return tr("Values, or the ends of a range");
    case steps_column:
      return tr("Steps");
    case scale_column:
      return tr("Equal ratios");
    default:
      return tr("With the key above");
  }
}

}  // namespace trainyard

#include "gui/presenters/execution/rank_model.h"

#include <utility>

#include "gui/presenters/emphasis.h"
#include "gui/presenters/text.h"
#include "scenarios/text/readable.h"

namespace trainyard {
namespace {

struct RankColumn {
  const char* label;
  QString (*text)(const RankWatch& watch, const RankStatus& status, std::size_t row);
  bool is_number;
};

struct StateName {
  const char* state;
  const char* label;
};
constexpr StateName kStates[] = {
    {"absent", QT_TRANSLATE_NOOP("trainyard::RankModel", "not there yet")},
    {"starting", QT_TRANSLATE_NOOP("trainyard::RankModel", "starting")},
    {"unsharded", QT_TRANSLATE_NOOP("trainyard::RankModel", "trains on one rank, to compare")},
    {"running", QT_TRANSLATE_NOOP("trainyard::RankModel", "running")},
    {"comparing", QT_TRANSLATE_NOOP("trainyard::RankModel", "comparing weights")},
    {"done", QT_TRANSLATE_NOOP("trainyard::RankModel", "done")},
    {"failed", QT_TRANSLATE_NOOP("trainyard::RankModel", "failed")},
    {"terminated", QT_TRANSLATE_NOOP("trainyard::RankModel", "was ended")},
};

QString state_text(const std::string& state) {
  for (const StateName& known : kStates) {
    if (state == known.state) return RankModel::tr(known.label);
  }
  return qt(state);
}

QString operation_text(const RankStatus& status) {
  if (status.at.empty()) return {};
  return RankModel::tr("%1 of %2: %3")
      .arg(qt(count(status.operation + 1)), qt(count(status.operations)), qt(status.at));
}

constexpr RankColumn kRankColumns[] = {
    {QT_TRANSLATE_NOOP("trainyard::RankModel", "Rank"),
     [](const RankWatch&, const RankStatus& status, std::size_t) { return qt(count(status.rank)); },
     true},
    {QT_TRANSLATE_NOOP("trainyard::RankModel", "Host"),
     [](const RankWatch&, const RankStatus& status, std::size_t) { return qt(status.host); },
     false},
    {QT_TRANSLATE_NOOP("trainyard::RankModel", "State"),
     [](const RankWatch&, const RankStatus& status, std::size_t) {
       return state_text(status.state);
     },
     false},
    {QT_TRANSLATE_NOOP("trainyard::RankModel", "Steps done"),
     [](const RankWatch&, const RankStatus& status, std::size_t) {
       return status.steps == 0 ? QString()
                                : RankModel::tr("%1 of %2")
                                      .arg(qt(count(status.steps_done)), qt(count(status.steps)));
     },
     true},
    {QT_TRANSLATE_NOOP("trainyard::RankModel", "Last step"),
     [](const RankWatch&, const RankStatus& status, std::size_t) {
       return status.step_time > Seconds(0) ? qt(with_unit(status.step_time)) : QString();
     },
     true},
    {QT_TRANSLATE_NOOP("trainyard::RankModel", "Memory"),
     [](const RankWatch&, const RankStatus& status, std::size_t) {
       return status.peak_memory > Bytes(0) ? qt(with_unit(status.peak_memory)) : QString();
     },
     true},
    {QT_TRANSLATE_NOOP("trainyard::RankModel", "Others wait for it"),
     [](const RankWatch& watch, const RankStatus& status, std::size_t row) {
       return status.state == "running" ? qt(percent(watch.share(row)) + " %") : QString();
     },
     true},
    {QT_TRANSLATE_NOOP("trainyard::RankModel", "Waits in"),
     [](const RankWatch&, const RankStatus& status, std::size_t) { return qt(status.call); },
     false},
    {QT_TRANSLATE_NOOP("trainyard::RankModel", "Operation"),
     [](const RankWatch&, const RankStatus& status, std::size_t) { return operation_text(status); },
     false},
};

}  // namespace

void RankModel::set_watch(RankWatch watch) {
  if (watch.ranks().size() != watch_.ranks().size()) {
    beginResetModel();
    watch_ = std::move(watch);
    endResetModel();
    return;
  }
  watch_ = std::move(watch);
  if (rowCount() > 0) {
    Q_EMIT dataChanged(index(0, 0), index(rowCount() - 1, columnCount() - 1));
  }
}

int RankModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(watch_.ranks().size());
}

int RankModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(std::size(kRankColumns));
}

QVariant RankModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const RankColumn& column = kRankColumns[index.column()];
  const auto row = static_cast<std::size_t>(index.row());
  switch (role) {
    case Qt::DisplayRole:
      return column.text(watch_, watch_.ranks()[row], row);
    case Qt::ToolTipRole:
      return watch_.behind() == index.row() ? watch_.alert() : QVariant();
    case strong_role:
      return watch_.behind() == index.row();
    case Qt::TextAlignmentRole:
      return QVariant((column.is_number ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
    default:
      return {};
  }
}

QVariant RankModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role != Qt::DisplayRole || orientation != Qt::Horizontal) return {};
  return tr(kRankColumns[section].label);
}

}  // namespace trainyard

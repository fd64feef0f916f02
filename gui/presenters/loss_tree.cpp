#include "gui/presenters/loss_tree.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "gui/presenters/answer.h"
#include "gui/presenters/text.h"
#include "scenarios/text/readable.h"
#include "simulator/life/campaign.h"

namespace trainyard {
namespace {

struct LossKind {
  int parent;
  const char* label;
  std::optional<Spent> spent = std::nullopt;  // nothing: an inner node, the sum of its children
};

constexpr int kRun = 0, kFailures = 3, kRestarts = 5;
constexpr std::array kLossKinds = {
    LossKind{-1, QT_TRANSLATE_NOOP("trainyard::LossModel", "The run")},
    LossKind{kRun, QT_TRANSLATE_NOOP("trainyard::LossModel", "useful training"), Spent::useful},
    LossKind{kRun, QT_TRANSLATE_NOOP("trainyard::LossModel", "checkpoints"), Spent::checkpoint},
    LossKind{kRun, QT_TRANSLATE_NOOP("trainyard::LossModel", "failures")},
    LossKind{kFailures, QT_TRANSLATE_NOOP("trainyard::LossModel", "work done again"), Spent::lost},
    LossKind{kFailures, QT_TRANSLATE_NOOP("trainyard::LossModel", "restarts")},
    LossKind{kRestarts, QT_TRANSLATE_NOOP("trainyard::LossModel", "detection"), Spent::detection},
    LossKind{kRestarts, QT_TRANSLATE_NOOP("trainyard::LossModel", "diagnosis"), Spent::diagnosis},
    LossKind{kRestarts, QT_TRANSLATE_NOOP("trainyard::LossModel", "another node"),
             Spent::rescheduling},
    LossKind{kRestarts, QT_TRANSLATE_NOOP("trainyard::LossModel", "starting processes"),
             Spent::starting},
    LossKind{kRestarts, QT_TRANSLATE_NOOP("trainyard::LossModel", "loading"), Spent::loading},
    LossKind{kRestarts, QT_TRANSLATE_NOOP("trainyard::LossModel", "warm-up"), Spent::warming_up},
    LossKind{kFailures, QT_TRANSLATE_NOOP("trainyard::LossModel", "waiting for a repair"),
             Spent::waiting},
    LossKind{kRun, QT_TRANSLATE_NOOP("trainyard::LossModel", "maintenance"), Spent::maintenance},
    LossKind{kRun, QT_TRANSLATE_NOOP("trainyard::LossModel", "stragglers, missing replicas"),
             Spent::degraded},
};

}  // namespace

std::vector<LossNode> loss_tree(const Campaign& campaign) {
  std::array<double, kLossKinds.size()> seconds{};
  for (std::size_t i = kLossKinds.size(); i-- > 0;) {
    if (kLossKinds[i].spent) seconds[i] = campaign.of(*kLossKinds[i].spent).value();
    if (kLossKinds[i].parent >= 0)
      seconds[static_cast<std::size_t>(kLossKinds[i].parent)] += seconds[i];
  }
  std::array<int, kLossKinds.size()> place{};
  std::vector<LossNode> nodes;
  for (std::size_t i = 0; i < kLossKinds.size(); ++i) {
    place[i] = static_cast<int>(nodes.size());
    if (seconds[i] <= 0) continue;
    const int parent = kLossKinds[i].parent;
    nodes.push_back({parent < 0 ? -1 : place[static_cast<std::size_t>(parent)],
                     LossModel::tr(kLossKinds[i].label), seconds[i], seconds[i] / seconds[kRun]});
  }
  return nodes;
}

void LossModel::set_nodes(std::vector<LossNode> nodes) {
  beginResetModel();
  nodes_ = std::move(nodes);
  below_.assign(nodes_.size() + 1, {});
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    below_[static_cast<std::size_t>(nodes_[i].parent + 1)].push_back(static_cast<int>(i));
  }
  endResetModel();
}

int LossModel::node_of(const QModelIndex& index) {
  return index.isValid() ? static_cast<int>(index.internalId()) : -1;
}

const std::vector<int>& LossModel::below(int node) const {
  return below_[static_cast<std::size_t>(node + 1)];
}

QModelIndex LossModel::index(int row, int column, const QModelIndex& parent) const {
  if (!hasIndex(row, column, parent)) return {};
  const int node = below(node_of(parent))[static_cast<std::size_t>(row)];
  return createIndex(row, column, static_cast<quintptr>(node));
}

QModelIndex LossModel::parent(const QModelIndex& child) const {
  const int node = node_of(child);
  if (node < 0) return {};
  const int above = nodes_[static_cast<std::size_t>(node)].parent;
  if (above < 0) return {};
  const std::vector<int>& beside = below(nodes_[static_cast<std::size_t>(above)].parent);
  const auto row = std::ranges::find(beside, above) - beside.begin();
  return createIndex(static_cast<int>(row), 0, static_cast<quintptr>(above));
}

int LossModel::rowCount(const QModelIndex& parent) const {
  return parent.column() > 0 ? 0 : static_cast<int>(below(node_of(parent)).size());
}

int LossModel::columnCount(const QModelIndex& /*parent*/) const { return columns; }

QVariant LossModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const LossNode& node = nodes_[static_cast<std::size_t>(node_of(index))];
  if (role == Qt::TextAlignmentRole && index.column() != label_column) {
    return QVariant(Qt::AlignRight | Qt::AlignVCenter);
  }
  if (role != Qt::DisplayRole) return {};
  switch (index.column()) {
    case label_column:
      return node.label;
    case time_column:
      return qt(duration(Seconds(node.seconds)));
    default:
      return percent_text(node.share);
  }
}

QVariant LossModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role != Qt::DisplayRole || orientation != Qt::Horizontal) return {};
  switch (section) {
    case label_column:
      return tr("Where the time goes");
    case time_column:
      return tr("Time");
    default:
      return tr("Share");
  }
}

}  // namespace trainyard

// Where the time of a whole run goes, as a tree: useful training, and what is lost to checkpoints,
// failures (work done again, the phases of restarts), maintenance and stragglers.
#pragma once

#include <QAbstractItemModel>
#include <QString>
#include <vector>

namespace trainyard {

struct Campaign;

// Times are means over the simulated lives of the run. An inner node has the sum of its children.
struct LossNode {
  int parent = -1;  // index of an earlier node; −1: this is the first node, the whole run
  QString label;
  double seconds = 0;
  double share = 0;  // fraction of the run's time
};
// Leaves out nodes that take no time.
std::vector<LossNode> loss_tree(const Campaign& campaign);

class LossModel : public QAbstractItemModel {
  Q_OBJECT
 public:
  enum Column { label_column, time_column, share_column, columns };

  explicit LossModel(QObject* parent = nullptr) : QAbstractItemModel(parent) {}
  void set_nodes(std::vector<LossNode> nodes);

  QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
  QModelIndex parent(const QModelIndex& child) const override;
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation,
                      int role = Qt::DisplayRole) const override;

 private:
  // The node of an index; −1: the index is invalid, as the parent of the whole run is.
  static int node_of(const QModelIndex& index);
  const std::vector<int>& below(int node) const;

  std::vector<LossNode> nodes_;
  std::vector<std::vector<int>> below_ = {{}};  // [node + 1]
};

}  // namespace trainyard

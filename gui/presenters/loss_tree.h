// Where the time of a run goes, as a tree: what went into the work, and what was lost by what.
#pragma once

#include <QAbstractItemModel>
#include <QString>
#include <vector>

namespace trainyard {

struct Campaign;

// Mean over the lives of a run. Time of inner nodes is that of the nodes below.
struct LossNode {
  int parent = -1;  // a place before this one; the first is the whole run
  QString label;
  double seconds = 0;
  double share = 0;  // of the run
};
// Without what takes no time.
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
  // Of what is above everything −1.
  static int node_of(const QModelIndex& index);
  const std::vector<int>& below(int node) const;

  std::vector<LossNode> nodes_;
  std::vector<std::vector<int>> below_ = {{}};  // [node + 1]
};

}  // namespace trainyard

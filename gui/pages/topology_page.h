// Shows the cluster from above, where the plan of the Explore page places its ranks, the rings of
// its process groups, and the load of the links in the simulated step.
#pragma once

#include <QWidget>
#include <memory>

#include "gui/presenters/background.h"

class QComboBox;
class QLabel;
class QSplitter;
class QTableView;

namespace trainyard {

class ClusterChart;
struct ClusterLoad;
class ClusterMap;
class Explore;
class PlacementModel;

class TopologyPage : public QWidget {
  Q_OBJECT
 public:
  explicit TopologyPage(Explore& explore, QWidget* parent = nullptr);

  ClusterChart& chart() { return *chart_; }

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  QWidget* make_side();
  void show_cluster();
  void show_map(std::shared_ptr<const ClusterMap> map);
  void show_failure(const QString& why);
  void find_load(std::shared_ptr<const ClusterMap> map);
  void show_unknown_load(const QString& why);
  void show_load(std::shared_ptr<const ClusterLoad> load);
  void show_group();

  Explore& explore_;
  Background work_, playing_;
  ClusterChart* chart_;
  QComboBox* colour_;
  QLabel *summary_, *loads_, *group_;
  PlacementModel* placement_;
  QTableView* table_;
  QSplitter* splitter_;
  bool is_stale_ = true;  // the map is made only when the page is shown
};

}  // namespace trainyard

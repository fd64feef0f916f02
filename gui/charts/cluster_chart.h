// Draws a cluster from above: racks, the devices of their nodes, and the links between racks. The
// colour of a device shows its place in one kind of process group, its memory, or its load. The
// colour of a link shows its load in the simulated step, once that is known; until then it is grey.
// The group of the selected device is outlined, and its ring is drawn.
#pragma once

#include <QPolygonF>
#include <memory>
#include <optional>
#include <vector>

#include "gui/charts/chart.h"
#include "gui/presenters/cluster/cluster_load.h"
#include "gui/presenters/cluster/cluster_map.h"

namespace trainyard {

class ClusterChart : public Chart {
  Q_OBJECT
 public:
  explicit ClusterChart(QWidget* parent = nullptr);

  void set_map(std::shared_ptr<const ClusterMap> map);  // forgets the load of the map before
  void set_load(std::shared_ptr<const ClusterLoad> load);
  void set_colour(MapColour colour);
  void select(int rank);  // −1: none
  void choose(int rank);  // like a click: selects the rank and emits chosen()
  const ClusterMap* map() const { return map_.get(); }
  const ClusterLoad* load() const { return load_.get(); }
  int selected() const { return selected_; }
  QRectF box_of(int device) const;
  QPolygonF way_of(const MapLink& link) const;  // the line that is drawn for the link

  QString data_text() const override;
  QSize sizeHint() const override { return {640, 420}; }
  QSize minimumSizeHint() const override { return {320, 220}; }

 Q_SIGNALS:
  void chosen(int rank);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool event(QEvent* event) override;

 private:
  void place_racks();
  QColor colour_of_device(int device) const;
  int device_at(QPointF point) const;
  std::optional<std::size_t> link_at(QPointF point) const;
  QString help_at(QPointF point) const;
  void paint_links(QPainter& painter) const;
  void paint_spines(QPainter& painter) const;
  void paint_group(QPainter& painter) const;
  void paint_legend(QPainter& painter) const;
  void paint_load_scale(QPainter& painter) const;
  double load_scale_left() const;
  double full_load() const;

  std::shared_ptr<const ClusterMap> map_;
  std::shared_ptr<const ClusterLoad> load_;
  std::vector<std::size_t> links_by_load_;  // the links that are drawn, the busiest last
  MapColour colour_ = MapColour::stage;
  int selected_ = -1;
  std::vector<int> members_;
  // The grid of racks, in pixels.
  std::vector<std::pair<int, int>> place_of_node_;  // [node]: its rack, and its place in the rack
  std::vector<QRectF> racks_;
  int columns_of_rack_ = 1;  // a rack has a column for each node, with the node's devices in it
  double cell_wide_ = 1, cell_high_ = 1;
};

}  // namespace trainyard

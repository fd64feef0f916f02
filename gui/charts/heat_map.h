// A grid of cells coloured by their value, which is also written in a cell if there is room. A dash
// marks a cell whose points have no value; a cell that is not answered yet is empty.
#pragma once

#include "gui/charts/cell_chart.h"

namespace trainyard {

class HeatMap : public CellChart {
  Q_OBJECT
 public:
  using CellChart::CellChart;

  QPointF centre_of(CellPlace place) const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
  std::optional<CellPlace> cell_at(QPointF place) const override;
  void cells_changed() override { range_ = cells().range(); }

 private:
  QRectF plot() const;
  QRectF box_of(CellPlace place) const;
  QColor colour_of_share(double share) const;
  void paint_cell(QPainter& painter, CellPlace place) const;
  void paint_rows(QPainter& painter) const;
  void paint_scale(QPainter& painter) const;

  std::optional<std::pair<double, double>> range_;
};

}  // namespace trainyard

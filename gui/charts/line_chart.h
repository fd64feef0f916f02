// A line for each row of the cells, over the names of the columns. A missing value breaks its line.
#pragma once

#include "gui/charts/cell_chart.h"

namespace trainyard {

class LineChart : public CellChart {
  Q_OBJECT
 public:
  using CellChart::CellChart;

  QPointF centre_of(CellPlace place) const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
  std::optional<CellPlace> cell_at(QPointF place) const override;
  void cells_changed() override;

 private:
  QRectF plot() const;
  QColor colour_of_row(int row) const;
  void paint_axes(QPainter& painter) const;
  void paint_row(QPainter& painter, int row) const;
  void paint_legend(QPainter& painter) const;

  double low_ = 0, high_ = 1;
};

}  // namespace trainyard

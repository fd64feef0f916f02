// The common base of HeatMap and LineChart: values over two lists of names, with at most one
// selected cell. A cell is selected by a click, by the arrow keys, or by select().
#pragma once

#include <QStringList>
#include <optional>
#include <vector>

#include "gui/charts/scatter.h"

namespace trainyard {

struct ChartCells {
  QString x_name, y_name;  // y_name empty: one row
  QStringList x, y;
  std::vector<std::vector<double>> values;  // [y][x]; NaN: no value
  std::vector<std::vector<int>> points;     // [y][x]: index of the point; −1: not answered yet
  PlotAxis value;                           // name, text and unit of the values
  bool some_unread = false;                 // a cell without a point may be answered, but unread

  QString why_none;  // is shown if there are no cells, or none with a value

  // The least and the largest value; nothing if there are no values.
  std::optional<std::pair<double, double>> range() const;
};

struct CellPlace {
  int column = 0, row = 0;
  friend bool operator==(const CellPlace&, const CellPlace&) = default;
};

class CellChart : public Chart {
  Q_OBJECT
 public:
  explicit CellChart(QWidget* parent = nullptr);

  void set_cells(ChartCells cells);
  const ChartCells& cells() const { return cells_; }
  void select(std::optional<CellPlace> place);
  virtual QPointF centre_of(CellPlace place) const = 0;

  QString data_text() const override;
  QSize sizeHint() const override { return {480, 320}; }
  QSize minimumSizeHint() const override { return {260, 180}; }

 Q_SIGNALS:
  void chosen(int column, int row);

 protected:
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool event(QEvent* event) override;

  virtual std::optional<CellPlace> cell_at(QPointF place) const = 0;
  virtual void cells_changed() {}
  int columns() const { return static_cast<int>(cells_.x.size()); }
  int rows() const { return static_cast<int>(cells_.values.size()); }
  double value_at(CellPlace place) const;
  bool is_answered(CellPlace place) const;
  const std::optional<CellPlace>& selected() const { return selected_; }
  // Paints the names of the columns below the plot, as many as fit, and the name of the axis.
  void paint_columns(QPainter& painter, const QRectF& area) const;

 private:
  void choose(CellPlace place);
  QString text_of(CellPlace place) const;

  ChartCells cells_;
  std::optional<CellPlace> selected_;
};

}  // namespace trainyard

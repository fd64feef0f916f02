// Points over two axes. A line may join the points of the Pareto front, or mark where both axes are
// equal. A point is selected by mouse or keyboard, or by select().
#pragma once

#include <functional>
#include <vector>

#include "gui/charts/chart.h"

namespace trainyard {

struct PlotPoint {
  double x = 0, y = 0;
  bool is_best = false;  // on the Pareto front
  QString label;
};

struct PlotAxis {
  QString name;
  std::function<QString(double)> text;
  bool logarithmic = false;
  double unit = 1;  // ticks are round multiples of it

  // From a value to its place on the axis (the log10 of it if logarithmic), and back. Only values
  // above zero have a place on a logarithmic axis.
  double place_of(double value) const;
  double value_at(double place) const;
  // A few round values between two places.
  std::vector<double> ticks(double low, double high) const;
};

enum class ScatterLine {
  none,
  front,     // joins the points of the Pareto front
  diagonal,  // both axes have the same value
};

class Scatter : public Chart {
  Q_OBJECT
 public:
  explicit Scatter(QWidget* parent = nullptr);

  void set_points(std::vector<PlotPoint> points, PlotAxis x, PlotAxis y);
  // Requires: is called before set_points().
  void set_line(ScatterLine line) { line_ = line; }
  void select(int point);  // −1: none
  int selected() const { return selected_; }
  QPointF position(int point) const;

  QString data_text() const override;
  QSize sizeHint() const override { return {420, 320}; }
  QSize minimumSizeHint() const override { return {220, 160}; }

 Q_SIGNALS:
  void chosen(int point);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool event(QEvent* event) override;

 private:
  QRectF plot() const;
  int nearest(QPointF place) const;  // −1: no point is near
  void paint_axes(QPainter& painter, const QRectF& area) const;
  void paint_x_axis(QPainter& painter, const QRectF& area) const;
  void paint_y_axis(QPainter& painter, const QRectF& area) const;
  void paint_front(QPainter& painter) const;
  void choose(int point);
  QPointF place_of(const PlotPoint& point) const;
  bool has_place(const PlotPoint& point) const;
  QString reason_for_none() const;

  std::vector<PlotPoint> points_;
  bool is_empty_ = true;  // no point has a place
  PlotAxis x_, y_;
  AxisEnds range_x_, range_y_;
  ScatterLine line_ = ScatterLine::front;
  int selected_ = -1;
};

}  // namespace trainyard

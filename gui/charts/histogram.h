// A histogram: bars show how many values fall into each of several equal ranges.
#pragma once

#include <vector>

#include "gui/charts/chart.h"

namespace trainyard {

class Histogram : public Chart {
  Q_OBJECT
 public:
  explicit Histogram(QWidget* parent = nullptr);

  // `what`: what is counted, such as "lives".
  void set_values(std::vector<double> values, QString unit, QString what);
  const std::vector<int>& counts() const { return counts_; }
  // The range and the count of the bar at this place; empty: there is no bar.
  QString text_at(QPointF place) const;
  QString data_text() const override;
  QSize sizeHint() const override { return {520, 240}; }
  QSize minimumSizeHint() const override { return {240, 140}; }

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool event(QEvent* event) override;

 private:
  QRectF plot() const;
  void paint_counts(QPainter& painter, const QRectF& area) const;
  void paint_values(QPainter& painter, const QRectF& area) const;
  int most() const;
  double high() const { return low_ + bin_ * static_cast<double>(counts_.size()); }

  std::vector<double> values_;
  std::vector<int> counts_;
  double low_ = 0, bin_ = 1;
  QString unit_, what_;
};

}  // namespace trainyard

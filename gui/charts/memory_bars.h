// A bar for each pipeline stage: its memory by purpose, against the capacity of the device.
#pragma once

#include <vector>

#include "gui/charts/chart.h"
#include "gui/charts/legend.h"
#include "gui/presenters/answer.h"

namespace trainyard {

class MemoryBars : public Chart {
  Q_OBJECT
 public:
  explicit MemoryBars(QWidget* parent = nullptr);

  void set_stages(std::vector<StageBar> stages, double capacity_bytes);
  QString data_text() const override;
  QSize sizeHint() const override { return {520, 220}; }
  QSize minimumSizeHint() const override { return {240, 140}; }

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool event(QEvent* event) override;

 private:
  QRectF plot() const;
  double top() const;  // bytes at the upper edge
  int stage_at(QPoint point) const;
  void paint_axis(QPainter& painter, const QRectF& area) const;
  void paint_stages(QPainter& painter, const QRectF& area) const;
  std::vector<LegendEntry> legend() const;
  QRect legend_area() const;

  std::vector<StageBar> stages_;
  double capacity_ = 0;
};

}  // namespace trainyard

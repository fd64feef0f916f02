// One bar cut into labelled parts, with a legend below: where a step's time goes.
#pragma once

#include <vector>

#include "gui/charts/chart.h"
#include "gui/charts/legend.h"
#include "gui/presenters/answer.h"

namespace trainyard {

class BreakdownBar : public Chart {
  Q_OBJECT
 public:
  explicit BreakdownBar(QWidget* parent = nullptr);

  void set_parts(std::vector<BarPart> parts);
  QString data_text() const override;
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;
  bool hasHeightForWidth() const override { return true; }
  int heightForWidth(int width) const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool event(QEvent* event) override;

 private:
  std::vector<LegendEntry> legend() const;
  const BarPart* part_at(QPoint point) const;

  std::vector<BarPart> parts_;
  double whole_ = 0;
};

}  // namespace trainyard

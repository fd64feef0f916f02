// How often a value comes up: bars over equal ranges.
#pragma once

#include <vector>

#include "gui/charts/chart.h"

namespace trainyard {

class Histogram : public Chart {
  Q_OBJECT
 public:
  explicit Histogram(QWidget* parent = nullptr);

  void set_values(std::vector<double> values, QString unit);
  QString data_text() const override;
  QSize sizeHint() const override { return {520, 240}; }
  QSize minimumSizeHint() const override { return {240, 140}; }

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  std::vector<double> values_;
  std::vector<int> counts_;
  double low_ = 0, bin_ = 1;
  QString unit_;
};

}  // namespace trainyard

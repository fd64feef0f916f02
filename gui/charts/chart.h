// A picture of values, drawn with QPainter. Every chart can be copied as a picture and as data
// (tab-separated), by its menu and by the keyboard.
#pragma once

#include <QPixmap>
#include <QWidget>

namespace trainyard {

// Of legends, pixels.
inline constexpr int kChartGap = 6;
inline constexpr int kSwatch = 10;

// 1, 2 or 5 times a power of ten, at least `least`: the step between ticks.
double round_step(double least);

// Significant digits that tell a tick, a whole number of steps, from its neighbours.
int digits_of_tick(double value, double step);

// The ends of an axis for values from `low` to `high`: a little beyond them, and far enough apart
// that its ticks are different numbers.
struct AxisEnds {
  double low = 0, high = 1;
};
AxisEnds ends_around(double low, double high);

class Chart : public QWidget {
  Q_OBJECT
 public:
  explicit Chart(QWidget* parent = nullptr);

  virtual QString data_text() const = 0;
  // Without the frame of the focus.
  QPixmap picture();
  void copy_picture();
  void copy_data() const;
  // A sentence that stands where there is nothing to draw.
  void set_why_none(const QString& why);

 protected:
  const QString& why_none() const { return why_none_; }
  void paint_none(QPainter& painter, const QRectF& area, const QString& why) const;
  bool event(QEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  void paint_focus();

  QString why_none_;
  bool shows_focus_ = true;
};

}  // namespace trainyard

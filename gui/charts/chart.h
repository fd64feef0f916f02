// A picture of values, drawn with QPainter. Every chart can be copied as a picture and as data
// (tab-separated), by its menu and by the keyboard.
#pragma once

#include <QPixmap>
#include <QWidget>

namespace trainyard {

// Sizes in legends, in pixels.
inline constexpr int kChartGap = 6;
inline constexpr int kSwatch = 10;

// The step between ticks: the smallest 1, 2 or 5 times a power of ten that is at least `least`.
double round_step(double least);

// Significant digits that tell a tick from its neighbours. Requires: `value` is a multiple of
// `step`.
int digits_of_tick(double value, double step);

// The ends of an axis for values from `low` to `high`. They lie a little beyond the values, and far
// enough apart that neighbouring ticks are different numbers.
struct AxisEnds {
  double low = 0, high = 1;
};
AxisEnds ends_around(double low, double high);

class Chart : public QWidget {
  Q_OBJECT
 public:
  explicit Chart(QWidget* parent = nullptr);

  virtual QString data_text() const = 0;
  // The chart as an image, without the frame that marks the keyboard focus.
  QPixmap picture();
  void copy_picture();
  void copy_data() const;
  // A sentence that is shown if there is nothing to draw.
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

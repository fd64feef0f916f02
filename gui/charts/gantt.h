// A timeline scene drawn as a Gantt chart: tracks below each other, time to the right. Zoom is at
// the cursor; W and S zoom, A and D and the arrows move, F shows all, as trace viewers do. Only
// what is visible is painted. Of a measured track the upper part is what was measured, the lower
// what was predicted.
#pragma once

#include <QPolygonF>
#include <memory>
#include <optional>

#include "gui/charts/chart.h"
#include "gui/charts/gantt_drawing.h"
#include "gui/charts/legend.h"
#include "gui/presenters/timeline/timeline_scene.h"

class QScrollBar;

namespace trainyard {

// A tick of an axis on which they are `step` apart, both in picoseconds: with the digits that tell
// it from its neighbours.
QString tick_text(double time, double step);

class Gantt : public Chart {
  Q_OBJECT
 public:
  explicit Gantt(QWidget* parent = nullptr);

  void set_scene(std::shared_ptr<const TimelineScene> scene);
  const TimelineScene* scene() const { return scene_.get(); }
  void show_all();
  void zoom(double factor, double x);  // below 1: closer
  void pan(double pixels);
  void show_slice(std::uint32_t slice);
  void highlight_critical(bool shown);
  std::optional<std::uint32_t> selected() const { return selected_; }
  TimelineView view() const { return {from_, per_pixel_, plot_width()}; }

  QString data_text() const override;
  // What the colours of the slices mean.
  std::vector<LegendEntry> legend() const;
  // What is shown, as vectors.
  GanttDrawing drawing() const;
  QSize sizeHint() const override { return {900, 480}; }
  QSize minimumSizeHint() const override { return {320, 240}; }

 Q_SIGNALS:
  void pointed(const QString& details);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;

 private:
  int label_width() const;
  int plot_width() const;
  int track_height() const;
  int tracks_bottom() const;
  QRect legend_area() const;  // below the tracks
  int first_track() const;
  const TimelineTrack* track_at(int y) const;
  TaskTimes times_of(const SliceRun& run) const;
  const std::uint32_t* slice_at(QPoint point) const;
  double time_at(double x) const;
  void keep_in_scene();
  void place_scroll_bar();
  void paint_axis(QPainter& painter) const;
  void paint_track(QPainter& painter, const TimelineTrack& track, int y) const;
  void paint_slices(QPainter& painter, const TimelineTrack& track, int y, bool predicted) const;
  QPolygonF outline(const std::vector<CurvePoint>& points, const QRectF& area, double most) const;
  void paint_curve(QPainter& painter, const TimelineCurve& curve, int y) const;
  void choose_rank(int rank);  // whose curves are shown

  std::shared_ptr<const TimelineScene> scene_;
  QScrollBar* scroll_;
  double from_ = 0;  // picoseconds
  double per_pixel_ = 1;
  bool shows_all_ = true;  // and goes on to when its size changes
  double scrolled_ = 0;    // tracks, less than one
  bool only_critical_ = false;
  std::optional<std::uint32_t> selected_;
  int rank_ = 0;
  std::vector<TimelineCurve> curves_;  // of the rank
  int label_width_ = 0;                // pixels
  QPoint pressed_;
  double from_when_pressed_ = 0;
};

}  // namespace trainyard

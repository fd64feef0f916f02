// Draws a timeline scene as a Gantt chart: tracks below each other, time from left to right. Ctrl
// with the wheel zooms at the cursor. As in other trace viewers W and S zoom, A, D and the arrows
// move, and F shows all. Only what is visible is painted. A track that compares shows measured
// slices in its upper part and predicted ones in its lower part.
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

// The text of a tick at `time` on an axis with a tick every `step`, both in picoseconds. It has
// just the digits that tell it from its neighbours.
QString tick_text(double time, double step);

class Gantt : public Chart {
  Q_OBJECT
 public:
  explicit Gantt(QWidget* parent = nullptr);

  void set_scene(std::shared_ptr<const TimelineScene> scene);
  const TimelineScene* scene() const { return scene_.get(); }
  void show_all();
  void zoom(double factor, double x);  // about pixel `x`; a factor below 1 zooms in
  void pan(double pixels);
  void show_slice(std::uint32_t slice);
  void highlight_critical(bool shown);
  std::optional<std::uint32_t> selected() const { return selected_; }
  TimelineView view() const { return {from_, per_pixel_, plot_width()}; }

  QString data_text() const override;
  // What the colours of the slices mean.
  std::vector<LegendEntry> legend() const;
  // What is shown now, as vector graphics.
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
  void choose_rank(int rank);  // shows the curves of this rank

  std::shared_ptr<const TimelineScene> scene_;
  QScrollBar* scroll_;
  double from_ = 0;  // picoseconds at the left edge
  double per_pixel_ = 1;
  bool shows_all_ = true;  // the whole step stays visible after a resize
  double scrolled_ = 0;    // the part of a track that a touchpad has scrolled
  bool only_critical_ = false;
  std::optional<std::uint32_t> selected_;
  int rank_ = 0;
  std::vector<TimelineCurve> curves_;  // those of rank_
  int label_width_ = 0;                // pixels
  QPoint pressed_;
  double from_when_pressed_ = 0;
};

}  // namespace trainyard

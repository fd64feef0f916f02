#include "gui/charts/gantt.h"

#include <QImage>
#include <QKeyEvent>
#include <QPainter>
#include <QPainterPath>
#include <QScrollBar>
#include <QWheelEvent>
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "gui/charts/colours.h"
#include "gui/presenters/text.h"
#include "scenarios/text/readable.h"

namespace trainyard {
namespace {

constexpr double kPerSecond = 1e12;  // picoseconds
constexpr double kClosest = 100;     // picoseconds per pixel at the closest zoom
constexpr double kZoomStep = 0.8;    // factor for a key or a notch of the wheel
constexpr int kCurveHeight = 64;
constexpr double kLabelFrom = 40;  // width in pixels from which a slice shows its name

// [SliceKind]: the colour of a slice, and a faded one for slices off the critical path.
struct Inks {
  std::array<QColor, kSliceKinds> plain, faded;

  explicit Inks(bool dark) {
    for (std::size_t i = 0; i < plain.size(); ++i) {
      plain[i] = faded[i] = colour_of(key_of(static_cast<SliceKind>(i)), dark);
      faded[i].setAlphaF(0.18F);
    }
  }
};

bool is_in_pixels(const SliceRun& run) {
  return run.x == std::floor(run.x) && run.width == std::floor(run.width);
}

// Paints all runs that cover whole pixels as one image, one pixel high, that is stretched over the
// row: a track may have a thousand of them.
template <typename Colour>
void paint_pixels(QPainter& painter, QRect row, const std::vector<SliceRun>& runs,
                  const Colour& colour_of_run) {
  if (std::ranges::none_of(runs, is_in_pixels)) return;
  QImage line(row.width(), 1, QImage::Format_ARGB32_Premultiplied);
  line.fill(0);
  auto* pixels = reinterpret_cast<QRgb*>(line.scanLine(0));
  for (const SliceRun& run : runs) {
    if (!is_in_pixels(run)) continue;
    std::fill_n(pixels + static_cast<int>(run.x), static_cast<int>(run.width),
                qPremultiply(colour_of_run(run).rgba()));
  }
  painter.drawImage(row, line);
}

}  // namespace

QString tick_text(double time, double step) {
  if (time == 0) return QStringLiteral("0");
  constexpr std::pair<double, const char*> kUnits[] = {
      {kPerSecond, "s"}, {kPerSecond / 1e3, "ms"}, {kPerSecond / 1e6, "µs"}};
  const auto* unit = std::begin(kUnits);
  while (unit->first > time && std::next(unit) != std::end(kUnits)) ++unit;
  const int digits = digits_of_tick(time, step);
  return QStringLiteral("%1 %2").arg(qt(number(time / unit->first, digits)), qt(unit->second));
}

Gantt::Gantt(QWidget* parent) : Chart(parent), scroll_(new QScrollBar(Qt::Vertical, this)) {
  setAccessibleName(tr("Timeline of the step"));
  setMouseTracking(true);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
  connect(scroll_, &QScrollBar::valueChanged, this, qOverload<>(&QWidget::update));
}

void Gantt::set_scene(std::shared_ptr<const TimelineScene> scene) {
  scene_ = std::move(scene);
  selected_.reset();
  choose_rank(0);
  label_width_ = fontMetrics().averageCharWidth() * 12;
  constexpr std::size_t kLookedAt = 200;  // the names of further tracks are about as long
  for (std::size_t i = 0; scene_ && i < std::min(kLookedAt, scene_->tracks().size()); ++i) {
    const int wide = fontMetrics().horizontalAdvance(scene_->tracks()[i].name) + 12;
    label_width_ = std::max(label_width_, wide);
  }
  place_scroll_bar();
  show_all();
  if (scene_) setAccessibleDescription(tr("%1 tracks").arg(scene_->tracks().size()));
}

void Gantt::show_all() {
  from_ = 0;
  shows_all_ = true;
  if (scene_) per_pixel_ = std::max(kClosest, scene_->end() * 1.01 / std::max(1, plot_width()));
  update();
}

void Gantt::zoom(double factor, double x) {
  if (!scene_) return;
  const double at = time_at(x);
  const double widest = scene_->end() * 1.2 / std::max(1, plot_width());
  per_pixel_ = std::clamp(per_pixel_ * factor, kClosest, std::max(kClosest, widest));
  from_ = at - (x - label_width()) * per_pixel_;
  shows_all_ = false;
  keep_in_scene();
}

void Gantt::pan(double pixels) {
  from_ += pixels * per_pixel_;
  shows_all_ = false;
  keep_in_scene();
}

void Gantt::keep_in_scene() {
  if (!scene_) return;
  const double seen = per_pixel_ * plot_width();
  from_ = std::clamp(from_, -0.1 * seen, std::max(0.0, scene_->end() - 0.9 * seen));
  update();
}

void Gantt::show_slice(std::uint32_t slice) {
  if (!scene_) return;
  selected_ = slice;
  shows_all_ = false;
  const TaskTimes& times = scene_->times_of(slice);
  const auto start = static_cast<double>(times.start.count());
  const auto end = static_cast<double>(times.end.count());
  const double seen = per_pixel_ * plot_width();
  if (end - start < 8 * per_pixel_ || end - start > seen) {
    per_pixel_ = std::max(kClosest, (end - start) * 8 / std::max(1, plot_width()));
  }
  from_ = (start + end) / 2 - per_pixel_ * plot_width() / 2;
  if (const int track = scene_->track_of(slice); track >= 0) {
    const int shown = (tracks_bottom() - 2 * track_height()) / track_height();
    if (track < first_track() || track >= first_track() + shown) scroll_->setValue(track);
    choose_rank(scene_->tracks()[static_cast<std::size_t>(track)].rank);
  }
  keep_in_scene();
}

void Gantt::choose_rank(int rank) {
  rank_ = rank;
  curves_ = scene_ ? scene_->curves_of(rank) : std::vector<TimelineCurve>();
  place_scroll_bar();
}

void Gantt::highlight_critical(bool shown) {
  only_critical_ = shown;
  update();
}

QString Gantt::data_text() const {
  QString text = tr("track\toperation\tstart, s\tend, s") + QLatin1Char('\n');
  if (!scene_) return text;
  constexpr std::size_t kMost = 20000;  // lines of the visible part
  std::size_t written = 0;
  for (const TimelineTrack& track : scene_->tracks()) {
    for (const SliceRun& run : scene_->runs(track, view())) {
      if (++written > kMost) return text;
      const auto [start, end] = times_of(run);
      text += QStringLiteral("%1\t%2\t%3\t%4\n")
                  .arg(track.name, scene_->name_of(run))
                  .arg(to_seconds(start).value(), 0, 'g', 12)
                  .arg(to_seconds(end).value(), 0, 'g', 12);
    }
  }
  return text;
}

// The times of a run's only slice, or, if it has several, of the pixels that it covers.
TaskTimes Gantt::times_of(const SliceRun& run) const {
  if (run.is_one) return scene_->times_of(run.slice);
  const auto time = [this](double x) {
    return Picoseconds(static_cast<std::int64_t>(from_ + x * per_pixel_));
  };
  return {time(run.x), time(run.x + run.width)};
}

std::vector<LegendEntry> Gantt::legend() const {
  return scene_ ? legend_of(*scene_, is_dark(palette())) : std::vector<LegendEntry>();
}

GanttDrawing Gantt::drawing() const {
  return {scene_, view(), width(), label_width(), track_height()};
}

int Gantt::label_width() const { return std::min(label_width_, width() / 3); }
int Gantt::plot_width() const { return std::max(1, width() - label_width() - scroll_->width()); }
int Gantt::track_height() const {
  const int line = fontMetrics().height() + 6;
  return scene_ && scene_->compares() ? line * 5 / 3 : line;
}
int Gantt::tracks_bottom() const { return legend_area().top(); }
QRect Gantt::legend_area() const {
  const int wide = width() - 2 * kChartGap;
  const int high = legend_height(legend(), wide, fontMetrics());
  const int below = kCurveHeight * static_cast<int>(curves_.size());
  return {kChartGap, height() - below - high, wide, high};
}
int Gantt::first_track() const { return scroll_->value(); }

double Gantt::time_at(double x) const { return from_ + (x - label_width()) * per_pixel_; }

const TimelineTrack* Gantt::track_at(int y) const {
  if (!scene_ || y < track_height() || y >= tracks_bottom()) return nullptr;
  const auto at = static_cast<std::size_t>(first_track() + y / track_height() - 1);
  return at < scene_->tracks().size() ? &scene_->tracks()[at] : nullptr;
}

const std::uint32_t* Gantt::slice_at(QPoint point) const {
  const TimelineTrack* track = track_at(point.y());
  if (track == nullptr || point.x() < label_width()) return nullptr;
  const bool predicted = !track->predicted.empty() &&
                         point.y() % track_height() >= band_of(*track, true, track_height()).top;
  return scene_->slice_at(*track, time_at(point.x()), predicted);
}

void Gantt::place_scroll_bar() {
  scroll_->setGeometry(width() - scroll_->sizeHint().width(), 0, scroll_->sizeHint().width(),
                       tracks_bottom());
  const int shown = std::max(1, tracks_bottom() / track_height() - 1);
  const int tracks = scene_ ? static_cast<int>(scene_->tracks().size()) : 0;
  scroll_->setRange(0, std::max(0, tracks - shown));
  scroll_->setPageStep(shown);
}

void Gantt::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(this);
  painter.fillRect(rect(), palette().color(QPalette::Base));
  if (!scene_) {
    painter.setPen(muted_text(palette()));
    painter.drawText(rect(), Qt::AlignCenter, tr("Simulate a plan or open a trace to see a step."));
    return;
  }
  paint_axis(painter);  // first, so that bars and names are painted over its lines
  const int high = track_height();
  int y = high;
  for (auto at = static_cast<std::size_t>(first_track());
       at < scene_->tracks().size() && y + high <= tracks_bottom(); ++at, y += high) {
    paint_track(painter, scene_->tracks()[at], y);
  }
  painter.setPen(palette().color(QPalette::Text));
  paint_legend(painter, legend(), legend_area());
  int below = legend_area().top() + legend_area().height();
  for (const TimelineCurve& curve : curves_) {
    paint_curve(painter, curve, below);
    below += kCurveHeight;
  }
}

void Gantt::paint_axis(QPainter& painter) const {
  const int line = fontMetrics().height();
  const double step = round_step(per_pixel_ * 110);
  const double to = from_ + per_pixel_ * plot_width();
  for (double time = std::max(0.0, std::ceil(from_ / step) * step); time < to; time += step) {
    const double x = label_width() + (time - from_) / per_pixel_;
    painter.setPen(grid_colour(palette()));
    painter.drawLine(QPointF(x, 0), QPointF(x, tracks_bottom()));
    const QString text = tick_text(time, step);
    const int right = label_width() + plot_width();
    if (x + 3 + fontMetrics().horizontalAdvance(text) > right) continue;  // the edge would cut it
    painter.setPen(muted_text(palette()));
    painter.drawText(QPointF(x + 3, line - 2), text);
  }
}

void Gantt::paint_track(QPainter& painter, const TimelineTrack& track, int y) const {
  const int high = track_height();
  painter.setPen(palette().color(QPalette::Text));
  painter.drawText(QRect(4, y, label_width() - 8, high), Qt::AlignVCenter,
                   fontMetrics().elidedText(track.name, Qt::ElideMiddle, label_width() - 8));
  if (track.is_compute) {  // a grey ground: where no slice covers it, the device waits
    const double left = std::max(0.0, -from_ / per_pixel_);
    const double right = std::min<double>(plot_width(), (scene_->end() - from_) / per_pixel_);
    painter.fillRect(QRectF(label_width() + left, y + 1, right - left, high - 2),
                     waiting_colour(is_dark(palette())));
  }
  paint_slices(painter, track, y, false);
  if (!track.predicted.empty()) paint_slices(painter, track, y, true);
}

void Gantt::paint_slices(QPainter& painter, const TimelineTrack& track, int y,
                         bool predicted) const {
  const GanttBand band = band_of(track, predicted, track_height());
  const QRect row(label_width(), y + band.top, plot_width(), band.height);
  const std::vector<SliceRun> runs = scene_->runs(track, view(), predicted);
  const Inks inks(is_dark(palette()));
  const auto colour_of_run = [&](const SliceRun& run) {
    const bool fades = only_critical_ && !run.is_critical;
    return (fades ? inks.faded : inks.plain)[static_cast<std::size_t>(run.kind)];
  };
  paint_pixels(painter, row, runs, colour_of_run);
  for (const SliceRun& run : runs) {
    const QRectF box(row.left() + run.x, row.top(), run.width, row.height());
    const bool is_named = run.width > kLabelFrom && band.height >= fontMetrics().height();
    if (!is_in_pixels(run)) painter.fillRect(box, colour_of_run(run));
    if (is_named) {
      painter.setPen(text_on(colour_of_run(run)));
      painter.drawText(box.adjusted(3, 0, -3, 0), Qt::AlignVCenter,
                       fontMetrics().elidedText(scene_->name_of(run), Qt::ElideRight,
                                                static_cast<int>(run.width) - 6));
    }
    if (selected_ == run.slice) {
      painter.setPen(QPen(palette().color(QPalette::Text), 2));
      painter.drawRect(box.adjusted(1, 1, -1, -1));
    }
  }
}

// The outline of a curve: the largest value within each pixel, from the left edge to the end of the
// step or of the plot.
QPolygonF Gantt::outline(const std::vector<CurvePoint>& points, const QRectF& area,
                         double most) const {
  QPolygonF line;
  auto point = std::ranges::upper_bound(points, from_, {}, &CurvePoint::time);
  double value = point == points.begin() ? 0 : std::prev(point)->value;
  const double end = std::min<double>(plot_width(), (scene_->end() - from_) / per_pixel_);
  for (int x = 0; x < end; ++x) {
    const double to = from_ + (x + 1) * per_pixel_;
    double peak = value;  // the largest within the pixel
    for (; point != points.end() && point->time < to; ++point) {
      value = point->value;
      peak = std::max(peak, value);
    }
    line.append(QPointF(area.left() + x, area.bottom() - area.height() * peak / most));
  }
  return line;
}

// A measured or simulated curve is filled; the predicted one is a line over it.
void Gantt::paint_curve(QPainter& painter, const TimelineCurve& curve, int y) const {
  const QRectF area(label_width(), y + 4, plot_width(), kCurveHeight - 8);
  painter.setPen(grid_colour(palette()));
  painter.drawLine(QPointF(0, y), QPointF(width(), y));
  painter.setPen(palette().color(QPalette::Text));
  painter.drawText(QRectF(4, area.top(), label_width() - 8, area.height()),
                   Qt::AlignVCenter | Qt::TextWordWrap, curve.title);
  QPolygonF filled = outline(curve.points, area, curve.most);
  if (filled.isEmpty()) return;  // only time after the step is visible
  const double right = filled.last().x();
  filled.prepend(area.bottomLeft());
  filled.append(QPointF(right, area.bottom()));
  QColor fill = colour_of(curve.colour, is_dark(palette()));
  fill.setAlphaF(0.6F);
  QPainterPath path;
  path.addPolygon(filled);
  painter.fillPath(path, fill);
  if (curve.limit > 0) {
    const double limit = area.bottom() - area.height() * curve.limit / curve.most;
    painter.setPen(alarm_colour(palette()));
    painter.drawLine(QPointF(area.left(), limit), QPointF(area.right(), limit));
    painter.setPen(palette().color(QPalette::Text));
  }
  if (curve.predicted.empty()) return;
  painter.drawPolyline(outline(curve.predicted, area, curve.most));
}

void Gantt::resizeEvent(QResizeEvent* /*event*/) {
  place_scroll_bar();
  if (shows_all_) show_all();
  keep_in_scene();
}

void Gantt::wheelEvent(QWheelEvent* event) {
  const QPointF notches = event->angleDelta().toPointF() / 120;
  if ((event->modifiers() & Qt::ControlModifier) != 0) {
    zoom(std::pow(kZoomStep, notches.y()), event->position().x());
  } else if ((event->modifiers() & Qt::ShiftModifier) != 0) {
    pan(-notches.y() * 80);
  } else {
    if (notches.x() != 0) pan(-notches.x() * 80);
    // A touchpad sends small parts of a notch: they are added up until they make a whole track.
    scrolled_ -= notches.y() * 3;
    const double tracks = std::trunc(scrolled_);
    scrolled_ -= tracks;
    scroll_->setValue(first_track() + static_cast<int>(tracks));
  }
  event->accept();
}

void Gantt::keyPressEvent(QKeyEvent* event) {
  const double middle = label_width() + plot_width() / 2.0;
  const double under = mapFromGlobal(QCursor::pos()).x();
  const bool over = underMouse() && under > label_width();
  const double at = over ? under : middle;
  const double far = plot_width() / 8.0;
  switch (event->key()) {
    case Qt::Key_W:
    case Qt::Key_Plus:
      return zoom(kZoomStep, at);
    case Qt::Key_S:
    case Qt::Key_Minus:
      return zoom(1 / kZoomStep, at);
    case Qt::Key_A:
    case Qt::Key_Left:
      return pan(-far);
    case Qt::Key_D:
    case Qt::Key_Right:
      return pan(far);
    case Qt::Key_Up:
      return scroll_->setValue(first_track() - 1);
    case Qt::Key_Down:
      return scroll_->setValue(first_track() + 1);
    case Qt::Key_F:
    case Qt::Key_Home:
      return show_all();
    default:
      return Chart::keyPressEvent(event);
  }
}

void Gantt::mousePressEvent(QMouseEvent* event) {
  setFocus();
  pressed_ = event->pos();
  from_when_pressed_ = from_;
  const TimelineTrack* track = track_at(event->pos().y());
  const std::uint32_t* slice = slice_at(event->pos());
  selected_ = slice == nullptr ? std::nullopt : std::optional(*slice);
  if (track != nullptr && track->rank != rank_) choose_rank(track->rank);
  update();
}

void Gantt::mouseMoveEvent(QMouseEvent* event) {
  if ((event->buttons() & Qt::LeftButton) != 0) {
    from_ = from_when_pressed_ - (event->pos().x() - pressed_.x()) * per_pixel_;
    shows_all_ = false;
    keep_in_scene();
    return;
  }
  const std::uint32_t* slice = slice_at(event->pos());
  const QString details = slice == nullptr ? QString() : scene_->details_of(*slice);
  setToolTip(details);
  Q_EMIT pointed(details);
}

void Gantt::mouseDoubleClickEvent(QMouseEvent* event) {
  if (const std::uint32_t* slice = slice_at(event->pos())) show_slice(*slice);
}

}  // namespace trainyard

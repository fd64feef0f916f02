#include "gui/charts/scatter.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QPainter>
#include <QPainterPath>
#include <QToolTip>
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "gui/charts/colours.h"

namespace trainyard {
namespace {

constexpr double kRadius = 4;
constexpr double kNear = 12;  // pixels within which a click selects a point
constexpr int kTicks = 5;     // wanted; rounding of the step leaves at least two
constexpr int kMostTicks = 4 * kTicks;

}  // namespace

double PlotAxis::place_of(double value) const {
  if (!logarithmic) return value;
  return value > 0 ? std::log10(value) : std::numeric_limits<double>::quiet_NaN();
}

double PlotAxis::value_at(double place) const {
  return logarithmic ? std::pow(10.0, place) : place;
}

std::vector<double> PlotAxis::ticks(double low, double high) const {
  std::vector<double> values;
  if (!logarithmic) {
    const double step = round_step((high - low) / unit / kTicks) * unit;
    const double first = std::ceil(low / step);
    // The loop counts ticks: where values are huge against the step, adding a step changes nothing.
    for (int i = 0; i < kMostTicks && (first + i) * step <= high; ++i) {
      values.push_back((first + i) * step);
    }
    return values;
  }
  // If the range has few powers of ten, ticks are at 1, 2 and 5 times each.
  const bool dense = high - low < 2.5;
  for (double power = std::floor(low); power <= high; ++power) {
    for (const double lead : {1.0, 2.0, 5.0}) {
      const double place = power + std::log10(lead);
      if (place < low || place > high || (lead > 1 && !dense)) continue;
      values.push_back(std::pow(10.0, power) * lead);
    }
  }
  return values;
}

Scatter::Scatter(QWidget* parent) : Chart(parent) {
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
}

void Scatter::set_points(std::vector<PlotPoint> points, PlotAxis x, PlotAxis y) {
  points_ = std::move(points);
  x_ = std::move(x);
  y_ = std::move(y);
  selected_ = -1;
  const auto range = [this](qreal (QPointF::*coordinate)() const) {
    AxisEnds found{std::numeric_limits<double>::infinity(),
                   -std::numeric_limits<double>::infinity()};
    for (const PlotPoint& point : points_) {
      const QPointF place = place_of(point);
      const double value = (place.*coordinate)();
      if (!std::isfinite(value)) continue;
      found.low = std::min(found.low, value);
      found.high = std::max(found.high, value);
    }
    return found.low > found.high ? AxisEnds{} : ends_around(found.low, found.high);
  };
  range_x_ = range(&QPointF::x);
  range_y_ = range(&QPointF::y);
  if (line_ == ScatterLine::diagonal) {
    range_x_ =
        range_y_ = {std::min(range_x_.low, range_y_.low), std::max(range_x_.high, range_y_.high)};
  }
  is_empty_ = std::ranges::none_of(points_, [this](const auto& one) { return has_place(one); });
  setAccessibleDescription(
      is_empty_ ? reason_for_none()
                : tr("%1 points: %2 over %3").arg(points_.size()).arg(y_.name, x_.name));
  update();
}

void Scatter::select(int point) {
  selected_ = point;
  update();
}

QString Scatter::data_text() const {
  QString text =
      x_.name + QLatin1Char('\t') + y_.name + QLatin1Char('\t') + tr("point") + QLatin1Char('\n');
  for (const PlotPoint& point : points_) {
    text += QString::number(point.x, 'g', 17) + QLatin1Char('\t') +
            QString::number(point.y, 'g', 17) + QLatin1Char('\t') + point.label + QLatin1Char('\n');
  }
  return text;
}

QRectF Scatter::plot() const {
  const int line = fontMetrics().height();
  const double left = fontMetrics().horizontalAdvance(QStringLiteral("000.00 GiB")) + 8.0;
  return QRectF(left, line + 6.0, width() - left - 12, height() - 3.0 * line - 14);
}

QPointF Scatter::place_of(const PlotPoint& point) const {
  return {x_.place_of(point.x), y_.place_of(point.y)};
}

bool Scatter::has_place(const PlotPoint& point) const {
  const QPointF place = place_of(point);
  return std::isfinite(place.x()) && std::isfinite(place.y());
}

QString Scatter::reason_for_none() const {
  return points_.empty() ? why_none() : tr("Nothing has both %1 and %2.").arg(y_.name, x_.name);
}

QPointF Scatter::position(int point) const {
  const QRectF area = plot();
  const QPointF at = place_of(points_[static_cast<std::size_t>(point)]);
  const double x = (at.x() - range_x_.low) / (range_x_.high - range_x_.low);
  const double y = (at.y() - range_y_.low) / (range_y_.high - range_y_.low);
  return {area.left() + x * area.width(), area.bottom() - y * area.height()};
}

void Scatter::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const QRectF area = plot();
  paint_axes(painter, area);
  if (is_empty_) return paint_none(painter, area, reason_for_none());
  paint_front(painter);
  const bool dark = is_dark(palette());
  const QColor best = colour_of("compute", dark);
  const QColor plain = colour_of("bubble", dark);
  for (int i = 0; i < static_cast<int>(points_.size()); ++i) {
    const PlotPoint& point = points_[static_cast<std::size_t>(i)];
    const QPointF at = position(i);
    if (!std::isfinite(at.x()) || !std::isfinite(at.y())) continue;
    painter.setPen(QPen(palette().color(QPalette::Base), 1));
    painter.setBrush(point.is_best || line_ != ScatterLine::front ? best : plain);
    painter.drawEllipse(at, kRadius, kRadius);
  }
  const QPointF chosen_at = selected_ >= 0 ? position(selected_) : QPointF();
  if (selected_ >= 0 && std::isfinite(chosen_at.x()) && std::isfinite(chosen_at.y())) {
    painter.setPen(QPen(palette().color(QPalette::WindowText), 2));
    painter.setBrush(Qt::NoBrush);
    painter.drawEllipse(chosen_at, kRadius + 4, kRadius + 4);
  }
}

void Scatter::paint_axes(QPainter& painter, const QRectF& area) const {
  const int line = fontMetrics().height();
  painter.fillRect(area, palette().color(QPalette::Base));
  if (!is_empty_) {
    paint_y_axis(painter, area);
    paint_x_axis(painter, area);
  }
  painter.setPen(palette().color(QPalette::WindowText));
  painter.drawText(QRectF(0, 0, width(), line), Qt::AlignLeft, y_.name);
  painter.drawText(QRectF(area.left(), area.bottom() + line + 4, area.width(), line),
                   Qt::AlignRight, x_.name);
}

void Scatter::paint_y_axis(QPainter& painter, const QRectF& area) const {
  const int line = fontMetrics().height();
  for (const double tick : y_.ticks(range_y_.low, range_y_.high)) {
    const double share = (y_.place_of(tick) - range_y_.low) / (range_y_.high - range_y_.low);
    const double y = area.bottom() - share * area.height();
    painter.setPen(grid_colour(palette()));
    painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
    painter.setPen(muted_text(palette()));
    painter.drawText(QRectF(0, y - line / 2.0, area.left() - 6, line),
                     Qt::AlignRight | Qt::AlignVCenter, y_.text(tick));
  }
}

void Scatter::paint_x_axis(QPainter& painter, const QRectF& area) const {
  double free_from = 0;  // end of the last label: one that would touch it is left out
  for (const double tick : x_.ticks(range_x_.low, range_x_.high)) {
    const double share = (x_.place_of(tick) - range_x_.low) / (range_x_.high - range_x_.low);
    const double x = area.left() + share * area.width();
    painter.setPen(grid_colour(palette()));
    painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
    const QString text = x_.text(tick);
    const double wide = fontMetrics().horizontalAdvance(text) + 2.0;
    const double from = std::min(x - wide / 2, width() - wide);
    if (from < free_from) continue;
    free_from = from + wide + 8;
    painter.setPen(muted_text(palette()));
    painter.drawText(QRectF(from, area.bottom() + 3, wide, fontMetrics().height()), Qt::AlignCenter,
                     text);
  }
}

void Scatter::paint_front(QPainter& painter) const {
  if (line_ == ScatterLine::diagonal) {
    painter.setPen(QPen(muted_text(palette()), 1, Qt::DashLine));
    painter.drawLine(plot().bottomLeft(), plot().topRight());
  }
  if (line_ != ScatterLine::front) return;
  std::vector<QPointF> front;
  for (int i = 0; i < static_cast<int>(points_.size()); ++i) {
    if (points_[static_cast<std::size_t>(i)].is_best) front.push_back(position(i));
  }
  std::ranges::sort(front, {}, &QPointF::x);
  painter.setPen(QPen(colour_of("compute", is_dark(palette())), 1.5));
  for (std::size_t i = 1; i < front.size(); ++i) painter.drawLine(front[i - 1], front[i]);
}

int Scatter::nearest(QPointF place) const {
  int found = -1;
  double least = kNear;
  for (int i = 0; i < static_cast<int>(points_.size()); ++i) {
    const QPointF away = position(i) - place;
    const double distance = std::hypot(away.x(), away.y());
    if (distance < least) {
      least = distance;
      found = i;
    }
  }
  return found;
}

void Scatter::choose(int point) {
  if (point < 0 || point >= static_cast<int>(points_.size())) return;
  select(point);
  Q_EMIT chosen(point);
}

void Scatter::mousePressEvent(QMouseEvent* event) {
  if (event->button() == Qt::LeftButton) choose(nearest(event->position()));
}

void Scatter::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Right || event->key() == Qt::Key_Down) {
    choose(selected_ + 1);
  } else if (event->key() == Qt::Key_Left || event->key() == Qt::Key_Up) {
    choose(selected_ - 1);
  } else {
    Chart::keyPressEvent(event);
  }
}

bool Scatter::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return Chart::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const int point = nearest(help->pos());
  QString text;
  if (point >= 0) {
    const PlotPoint& at = points_[static_cast<std::size_t>(point)];
    text = tr("%1\n%2: %3\n%4: %5").arg(at.label, x_.name, x_.text(at.x), y_.name, y_.text(at.y));
  }
  QToolTip::showText(help->globalPos(), text, this);
  return true;
}

}  // namespace trainyard

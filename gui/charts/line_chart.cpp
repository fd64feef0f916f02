#include "gui/charts/line_chart.h"

#include <QPainter>
#include <algorithm>
#include <array>
#include <cmath>

#include "gui/charts/colours.h"

namespace trainyard {
namespace {

constexpr double kNearDot = 12;  // pixels within which a click selects a dot
constexpr double kDotRadius = 3;
constexpr std::array kRowColours = {"compute",       "tensor_parallel",  "optimizer",
                                    "data_parallel", "context_parallel", "pipeline",
                                    "launch",        "offload"};

}  // namespace

void LineChart::cells_changed() {
  const auto range = cells().range().value_or(std::pair{0.0, 1.0});
  const AxisEnds ends = ends_around(range.first, range.second);
  low_ = ends.low;
  high_ = ends.high;
}

// If there are more rows than kRowColours, their colours form a gradient that shows their order.
QColor LineChart::colour_of_row(int row) const {
  const bool dark = is_dark(palette());
  if (rows() <= static_cast<int>(kRowColours.size())) {
    return colour_of(kRowColours[static_cast<std::size_t>(row)], dark);
  }
  const double share = static_cast<double>(row) / (rows() - 1);
  return QColor::fromHsvF(static_cast<float>(0.6 * (1 - share)), 0.8F, dark ? 0.9F : 0.75F);
}

QRectF LineChart::plot() const {
  const int line = fontMetrics().height();
  const double left = fontMetrics().horizontalAdvance(QStringLiteral("000.00 GiB")) + 8.0;
  const double top = line + 2 * kChartGap;
  return QRectF(left, top, width() - left - 12, height() - top - 3.0 * line - 4 * kChartGap);
}

QPointF LineChart::centre_of(CellPlace place) const {
  const QRectF area = plot();
  const double share = (value_at(place) - low_) / (high_ - low_);
  return {area.left() + (place.column + 0.5) * area.width() / columns(),
          area.bottom() - share * area.height()};
}

std::optional<CellPlace> LineChart::cell_at(QPointF place) const {
  std::optional<CellPlace> found;
  double least = kNearDot;
  for (int row = 0; row < rows(); ++row) {
    for (int column = 0; column < columns(); ++column) {
      if (!std::isfinite(value_at({column, row}))) continue;
      const QPointF away = centre_of({column, row}) - place;
      const double distance = std::hypot(away.x(), away.y());
      if (distance >= least) continue;
      least = distance;
      found = {column, row};
    }
  }
  return found;
}

void LineChart::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.fillRect(rect(), palette().color(QPalette::Base));
  if (columns() == 0 || rows() == 0 || !cells().range()) {
    return paint_none(painter, rect(),
                      cells().why_none.isEmpty() ? tr("No values yet.") : cells().why_none);
  }
  paint_axes(painter);
  for (int row = 0; row < rows(); ++row) paint_row(painter, row);
  if (selected() && std::isfinite(value_at(*selected()))) {
    painter.setPen(QPen(palette().color(QPalette::WindowText), 2));
    painter.setBrush(Qt::NoBrush);
    painter.drawEllipse(centre_of(*selected()), 2 * kDotRadius + 1, 2 * kDotRadius + 1);
  }
  paint_legend(painter);
}

void LineChart::paint_axes(QPainter& painter) const {
  const QRectF area = plot();
  const int line = fontMetrics().height();
  for (const double tick : cells().value.ticks(low_, high_)) {
    const double y = area.bottom() - (tick - low_) / (high_ - low_) * area.height();
    painter.setPen(grid_colour(palette()));
    painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
    painter.setPen(muted_text(palette()));
    painter.drawText(QRectF(0, y - line / 2.0, area.left() - 6, line),
                     Qt::AlignRight | Qt::AlignVCenter, cells().value.text(tick));
  }
  painter.setPen(palette().color(QPalette::WindowText));
  painter.drawText(QRectF(kChartGap, 2, width(), line), Qt::AlignLeft, cells().value.name);
  paint_columns(painter, area);
}

void LineChart::paint_row(QPainter& painter, int row) const {
  const QColor colour = colour_of_row(row);
  painter.setBrush(colour);
  for (int column = 0; column < columns(); ++column) {
    if (!std::isfinite(value_at({column, row}))) continue;
    const QPointF at = centre_of({column, row});
    painter.setPen(QPen(colour, 2));
    if (column > 0 && std::isfinite(value_at({column - 1, row}))) {
      painter.drawLine(centre_of({column - 1, row}), at);
    }
    painter.setPen(Qt::NoPen);
    painter.drawEllipse(at, kDotRadius, kDotRadius);
  }
}

void LineChart::paint_legend(QPainter& painter) const {
  if (cells().y.isEmpty()) return;
  const int line = fontMetrics().height();
  const double top = height() - line - kChartGap;
  const double base = top + fontMetrics().ascent();
  double x = kChartGap;
  painter.setPen(muted_text(palette()));
  painter.drawText(QPointF(x, base), cells().y_name);
  x += fontMetrics().horizontalAdvance(cells().y_name) + 2 * kChartGap;
  for (int row = 0; row < rows(); ++row) {
    const QString& name = cells().y[row];
    const double wide = kSwatch + kChartGap + fontMetrics().horizontalAdvance(name);
    const bool is_last = row + 1 == rows();
    if (x + wide + (is_last ? 0 : 2 * kSwatch) > width()) {
      painter.drawText(QPointF(x, base), QStringLiteral("…"));
      return;
    }
    painter.fillRect(QRectF(x, top + (line - kSwatch) / 2.0, kSwatch, kSwatch), colour_of_row(row));
    painter.setPen(palette().color(QPalette::WindowText));
    painter.drawText(QPointF(x + kSwatch + kChartGap, base), name);
    x += wide + 2 * kChartGap;
  }
}

}  // namespace trainyard

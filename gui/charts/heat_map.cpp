#include "gui/charts/heat_map.h"

#include <QLinearGradient>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "gui/charts/colours.h"

namespace trainyard {
namespace {

constexpr double kFaintest = 0.15;  // colour share of the least value, so that it is no empty cell

}  // namespace

QRectF HeatMap::plot() const {
  const int line = fontMetrics().height();
  int widest = 0;
  for (const QString& name : cells().y) {
    widest = std::max(widest, fontMetrics().horizontalAdvance(name));
  }
  const double left = std::min<double>(widest, width() / 4.0) + 2 * kChartGap;
  const double top = line + 2 * kChartGap;
  return QRectF(left, top, width() - left - 2, height() - top - 3.0 * line - 4 * kChartGap);
}

QRectF HeatMap::box_of(CellPlace place) const {
  const QRectF area = plot();
  const double wide = area.width() / columns();
  const double high = area.height() / rows();
  return QRectF(area.left() + place.column * wide, area.top() + place.row * high, wide, high);
}

QPointF HeatMap::centre_of(CellPlace place) const { return box_of(place).center(); }

std::optional<CellPlace> HeatMap::cell_at(QPointF place) const {
  const QRectF area = plot();
  if (columns() == 0 || rows() == 0 || !area.contains(place)) return std::nullopt;
  const double x = (place.x() - area.left()) / area.width() * columns();
  const double y = (place.y() - area.top()) / area.height() * rows();
  return CellPlace{std::min(static_cast<int>(x), columns() - 1),
                   std::min(static_cast<int>(y), rows() - 1)};
}

QColor HeatMap::colour_of_share(double share) const {
  const QColor none = palette().color(QPalette::Base);
  const QColor full = colour_of("compute", is_dark(palette()));
  const double part = kFaintest + (1 - kFaintest) * share;
  const auto mixed = [part](int a, int b) {
    return static_cast<int>(std::lround(a + (b - a) * part));
  };
  return QColor(mixed(none.red(), full.red()), mixed(none.green(), full.green()),
                mixed(none.blue(), full.blue()));
}

void HeatMap::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(this);
  painter.fillRect(rect(), palette().color(QPalette::Base));
  if (columns() == 0 || rows() == 0) {
    return paint_none(painter, rect(),
                      cells().why_none.isEmpty() ? tr("No points yet.") : cells().why_none);
  }
  for (int row = 0; row < rows(); ++row) {
    for (int column = 0; column < columns(); ++column) paint_cell(painter, {column, row});
  }
  if (selected()) {
    painter.setPen(QPen(palette().color(QPalette::WindowText), 2));
    painter.drawRect(box_of(*selected()).adjusted(1, 1, -2, -2));
  }
  painter.setPen(palette().color(QPalette::WindowText));
  painter.drawText(QRectF(kChartGap, 2, width(), fontMetrics().height()), Qt::AlignLeft,
                   cells().y_name);
  paint_columns(painter, plot());
  paint_rows(painter);
  if (range_) return paint_scale(painter);
  const int line = fontMetrics().height();
  painter.setPen(muted_text(palette()));
  painter.drawText(QRectF(kChartGap, height() - line - kChartGap, width() - 2 * kChartGap, line),
                   Qt::AlignLeft, cells().why_none);
}

void HeatMap::paint_cell(QPainter& painter, CellPlace place) const {
  const QRectF box = box_of(place).adjusted(0, 0, -1, -1);
  const double value = value_at(place);
  QString text = QStringLiteral("–");
  painter.setPen(muted_text(palette()));
  if (std::isfinite(value)) {
    const double span = range_->second - range_->first;
    const QColor colour = colour_of_share(span > 0 ? (value - range_->first) / span : 0.5);
    painter.fillRect(box, colour);
    painter.setPen(text_on(colour));
    text = cells().value.text(value);
  } else if (!is_answered(place)) {
    return;
  }
  const bool has_room = fontMetrics().horizontalAdvance(text) + 4 <= box.width() &&
                        fontMetrics().height() <= box.height();
  if (has_room) painter.drawText(box, Qt::AlignCenter, text);
}

void HeatMap::paint_rows(QPainter& painter) const {
  const QRectF area = plot();
  const int line = fontMetrics().height();
  const double high = area.height() / rows();
  const int every = std::max(1, static_cast<int>(std::ceil(line / high)));
  painter.setPen(muted_text(palette()));
  for (int row = 0; row < cells().y.size(); row += every) {
    const double y = area.top() + (row + 0.5) * high;
    const int room = static_cast<int>(area.left()) - kChartGap;
    painter.drawText(QRectF(0, y - line / 2.0, room, line), Qt::AlignRight | Qt::AlignVCenter,
                     fontMetrics().elidedText(cells().y[row], Qt::ElideRight, room));
  }
}

void HeatMap::paint_scale(QPainter& painter) const {
  const int line = fontMetrics().height();
  const QString low = cells().value.text(range_->first);
  const QString high = cells().value.text(range_->second);
  const double top = height() - line - kChartGap;
  const double base = top + fontMetrics().ascent();
  const double wide = std::min(160.0, width() / 4.0);
  const QString name = cells().value.name + QStringLiteral("  ") + low;
  double x = plot().left();
  painter.setPen(palette().color(QPalette::WindowText));
  painter.drawText(QPointF(x, base), name);
  x += fontMetrics().horizontalAdvance(name) + kChartGap;
  QLinearGradient ramp(x, 0, x + wide, 0);
  ramp.setColorAt(0, colour_of_share(0));
  ramp.setColorAt(1, colour_of_share(1));
  painter.fillRect(QRectF(x, top + 3, wide, line - 6), ramp);
  painter.drawText(QPointF(x + wide + kChartGap, base), high);
}

}  // namespace trainyard

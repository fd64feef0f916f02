#include "gui/charts/cell_chart.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>
#include <utility>

#include "gui/charts/colours.h"

namespace trainyard {

std::optional<std::pair<double, double>> ChartCells::range() const {
  std::optional<std::pair<double, double>> range;
  for (const std::vector<double>& row : values) {
    for (const double one : row) {
      if (!std::isfinite(one)) continue;
      if (!range) range = {one, one};
      range = {std::min(range->first, one), std::max(range->second, one)};
    }
  }
  return range;
}

CellChart::CellChart(QWidget* parent) : Chart(parent) {
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
}

void CellChart::set_cells(ChartCells cells) {
  cells_ = std::move(cells);
  const bool is_there = selected_ && selected_->column < columns() && selected_->row < rows();
  if (!is_there) selected_.reset();
  const auto range = cells_.range();
  setAccessibleDescription(range ? tr("%1 over %2: %3 to %4")
                                       .arg(cells_.value.name, cells_.x_name,
                                            cells_.value.text(range->first),
                                            cells_.value.text(range->second))
                                 : tr("no values"));
  cells_changed();
  update();
}

void CellChart::select(std::optional<CellPlace> place) {
  selected_ = place;
  if (place) setAccessibleDescription(text_of(*place));
  update();
}

void CellChart::choose(CellPlace place) {
  select(place);
  Q_EMIT chosen(place.column, place.row);
}

double CellChart::value_at(CellPlace place) const {
  return cells_.values[static_cast<std::size_t>(place.row)][static_cast<std::size_t>(place.column)];
}

bool CellChart::is_answered(CellPlace place) const {
  const auto& row = cells_.points[static_cast<std::size_t>(place.row)];
  return row[static_cast<std::size_t>(place.column)] >= 0;
}

QString CellChart::data_text() const {
  QString text = cells_.y_name + QLatin1Char('\\') + cells_.x_name;
  for (const QString& name : cells_.x) text += QLatin1Char('\t') + name;
  for (int row = 0; row < rows(); ++row) {
    text += QLatin1Char('\n') + cells_.y.value(row, cells_.value.name);
    for (int column = 0; column < columns(); ++column) {
      const double value = value_at({column, row});
      text += QLatin1Char('\t');
      if (std::isfinite(value)) text += QString::number(value, 'g', 17);
    }
  }
  return text + QLatin1Char('\n');
}

QString CellChart::text_of(CellPlace place) const {
  QString text = tr("%1: %2").arg(cells_.x_name, cells_.x[place.column]);
  if (!cells_.y_name.isEmpty()) {
    text += tr("\n%1: %2").arg(cells_.y_name, cells_.y[place.row]);
  }
  const double value = value_at(place);
  if (std::isfinite(value)) {
    text += tr("\n%1: %2").arg(cells_.value.name, cells_.value.text(value));
  } else if (is_answered(place)) {
    text += tr("\nnothing that fits");
  } else {
    text += cells_.some_unread ? tr("\nnot read") : tr("\nnot answered");
  }
  return text;
}

void CellChart::paint_columns(QPainter& painter, const QRectF& area) const {
  const int line = fontMetrics().height();
  const double wide = area.width() / columns();
  double free_from = 0;  // end of the last name: a name that would touch it is left out
  painter.setPen(muted_text(palette()));
  for (int column = 0; column < columns(); ++column) {
    const double room = fontMetrics().horizontalAdvance(cells_.x[column]) + 2.0;
    const double middle = area.left() + (column + 0.5) * wide;
    const double from = std::clamp(middle - room / 2, 0.0, std::max(0.0, width() - room));
    if (from < free_from) continue;
    free_from = from + room + kChartGap;
    painter.drawText(QRectF(from, area.bottom() + 3, room, line), Qt::AlignCenter,
                     cells_.x[column]);
  }
  painter.setPen(palette().color(QPalette::WindowText));
  painter.drawText(QRectF(area.left(), area.bottom() + line + 4, area.width(), line),
                   Qt::AlignRight, cells_.x_name);
}

void CellChart::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  if (const auto place = cell_at(event->position())) choose(*place);
}

void CellChart::keyPressEvent(QKeyEvent* event) {
  const CellPlace at = selected_.value_or(CellPlace{});
  CellPlace to = at;
  switch (event->key()) {
    case Qt::Key_Left:
      --to.column;
      break;
    case Qt::Key_Right:
      ++to.column;
      break;
    case Qt::Key_Up:
      --to.row;
      break;
    case Qt::Key_Down:
      ++to.row;
      break;
    default:
      return Chart::keyPressEvent(event);
  }
  if (columns() == 0 || rows() == 0) return;
  to = {std::clamp(to.column, 0, columns() - 1), std::clamp(to.row, 0, rows() - 1)};
  choose(selected_ ? to : at);
}

bool CellChart::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return Chart::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const auto place = cell_at(help->pos());
  QToolTip::showText(help->globalPos(), place ? text_of(*place) : QString(), this);
  return true;
}

}  // namespace trainyard

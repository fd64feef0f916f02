#include "gui/charts/histogram.h"

#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>
#include <utility>

#include "gui/charts/colours.h"
#include "gui/presenters/text.h"
#include "scenarios/text/readable.h"

namespace trainyard {
namespace {

constexpr std::size_t kMostBins = 40;
constexpr int kValueTicks = 5;  // about as many on each axis

}  // namespace

Histogram::Histogram(QWidget* parent) : Chart(parent) {
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
}

void Histogram::set_values(std::vector<double> values, QString unit, QString what) {
  values_ = std::move(values);
  unit_ = std::move(unit);
  what_ = std::move(what);
  counts_.clear();
  if (values_.empty()) setAccessibleDescription(why_none());
  if (!values_.empty()) {
    const auto [low, high] = std::ranges::minmax(values_);
    const double root = std::ceil(std::sqrt(static_cast<double>(values_.size())));
    const std::size_t bins =
        std::clamp<std::size_t>(static_cast<std::size_t>(2 * root), 1, kMostBins);
    low_ = low;
    bin_ = high > low ? (high - low) / static_cast<double>(bins) : 1;
    counts_.resize(bins);
    for (const double value : values_) {
      const auto at = static_cast<std::size_t>((value - low_) / bin_);
      ++counts_[std::min(at, bins - 1)];
    }
    setAccessibleDescription(tr("%1 values from %2 to %3 %4")
                                 .arg(values_.size())
                                 .arg(qt(number(low)), qt(number(high)), unit_));
  }
  update();
}

QString Histogram::data_text() const {
  QString text = unit_ + QLatin1Char('\n');
  for (const double value : values_) text += QString::number(value, 'g', 17) + QLatin1Char('\n');
  return text;
}

int Histogram::most() const { return std::ranges::max(counts_); }

// The plot is right of the counts, above the values and below the name of what is counted.
QRectF Histogram::plot() const {
  const int line = fontMetrics().height();
  const double left =
      counts_.empty() ? 4.0 : fontMetrics().horizontalAdvance(QString::number(most())) + 12.0;
  return QRectF(left, line + 6.0, width() - left - 4, height() - 2.0 * line - 14);
}

void Histogram::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(this);
  const QRectF area = plot();
  painter.fillRect(area, palette().color(QPalette::Base));
  if (counts_.empty()) return paint_none(painter, area, why_none());
  paint_counts(painter, area);
  const double wide = area.width() / static_cast<double>(counts_.size());
  const QColor colour = colour_of("compute", is_dark(palette()));
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    const double high = area.height() * counts_[i] / most();
    painter.fillRect(
        QRectF(area.left() + static_cast<double>(i) * wide, area.bottom() - high, wide - 1, high),
        colour);
  }
  paint_values(painter, area);
}

void Histogram::paint_counts(QPainter& painter, const QRectF& area) const {
  const int line = fontMetrics().height();
  painter.setPen(palette().color(QPalette::WindowText));
  painter.drawText(QRectF(0, 0, width(), line), Qt::AlignLeft, what_);
  const int step =
      std::max(1, static_cast<int>(std::lround(round_step(most() / double(kValueTicks)))));
  for (int count = 0; count <= most(); count += step) {
    const double y = area.bottom() - area.height() * count / most();
    painter.setPen(grid_colour(palette()));
    painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
    painter.setPen(muted_text(palette()));
    painter.drawText(QRectF(0, y - line / 2.0, area.left() - 6, line),
                     Qt::AlignRight | Qt::AlignVCenter, QString::number(count));
  }
}

// Ticks are at round values, not at the edges of bars.
void Histogram::paint_values(QPainter& painter, const QRectF& area) const {
  painter.setPen(muted_text(palette()));
  const double step = round_step((high() - low_) / kValueTicks);
  const double first = std::ceil(low_ / step - 1e-9);
  for (int i = 0; (first + i) * step <= high() + 1e-9 * step && i <= 2 * kValueTicks; ++i) {
    const double value = (first + i) * step;
    const QString text = qt(number(value, digits_of_tick(value, step))) + QLatin1Char(' ') + unit_;
    const double room = fontMetrics().horizontalAdvance(text);
    const double x = area.left() + (value - low_) / (high() - low_) * area.width();
    painter.drawLine(QPointF(x, area.bottom()), QPointF(x, area.bottom() + 3));
    painter.drawText(QRectF(std::clamp(x - room / 2, 0.0, width() - room), area.bottom() + 4, room,
                            fontMetrics().height()),
                     Qt::AlignCenter, text);
  }
}

QString Histogram::text_at(QPointF place) const {
  const QRectF area = plot();
  if (counts_.empty() || !area.contains(place)) return {};
  const double share = (place.x() - area.left()) / area.width();
  const auto at = std::min(static_cast<std::size_t>(share * static_cast<double>(counts_.size())),
                           counts_.size() - 1);
  const auto edge = [&](std::size_t bin) {
    const double value = low_ + static_cast<double>(bin) * bin_;
    return qt(number(value, digits_of_tick(value, bin_) + 1));
  };
  return tr("%1 to %2 %3, %4: %5").arg(edge(at), edge(at + 1), unit_, what_).arg(counts_[at]);
}

bool Histogram::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return Chart::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  QToolTip::showText(help->globalPos(), text_at(help->pos()), this);
  return true;
}

}  // namespace trainyard

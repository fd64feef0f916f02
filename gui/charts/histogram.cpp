#include "gui/charts/histogram.h"

#include <QPainter>
#include <algorithm>
#include <cmath>
#include <utility>

#include "gui/charts/colours.h"
#include "gui/presenters/text.h"
#include "scenarios/text/readable.h"

namespace trainyard {
namespace {

constexpr std::size_t kMostBins = 40;

}  // namespace

Histogram::Histogram(QWidget* parent) : Chart(parent) {
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
}

void Histogram::set_values(std::vector<double> values, QString unit) {
  values_ = std::move(values);
  unit_ = std::move(unit);
  counts_.clear();
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

void Histogram::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(this);
  const int line = fontMetrics().height();
  const QRectF area(4, 4, width() - 8, height() - line - 12);
  painter.fillRect(area, palette().color(QPalette::Base));
  if (counts_.empty()) return;
  const int most = std::ranges::max(counts_);
  const double wide = area.width() / static_cast<double>(counts_.size());
  const QColor colour = colour_of("compute", is_dark(palette()));
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    const double high = area.height() * counts_[i] / most;
    painter.fillRect(
        QRectF(area.left() + static_cast<double>(i) * wide, area.bottom() - high, wide - 1, high),
        colour);
  }
  painter.setPen(muted_text(palette()));
  constexpr int kTicks = 5;
  for (int tick = 0; tick <= kTicks; ++tick) {
    const double share = static_cast<double>(tick) / kTicks;
    const double value = low_ + share * bin_ * static_cast<double>(counts_.size());
    const QString text = qt(number(value, 3)) + QLatin1Char(' ') + unit_;
    const double room = fontMetrics().horizontalAdvance(text);
    const double x = std::clamp(area.left() + share * area.width() - room / 2, 0.0, width() - room);
    painter.drawText(QRectF(x, area.bottom() + 4, room, line), Qt::AlignCenter, text);
  }
}

}  // namespace trainyard

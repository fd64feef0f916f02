#include "gui/charts/memory_bars.h"

#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <utility>

#include "gui/charts/colours.h"
#include "gui/presenters/text.h"
#include "model/units.h"
#include "scenarios/text/readable.h"

namespace trainyard {
namespace {

double sum(const StageBar& bar) {
  double bytes = 0;
  for (const BarPart& part : bar.parts) bytes += part.value;
  return bytes;
}

}  // namespace

MemoryBars::MemoryBars(QWidget* parent) : Chart(parent) {
  setAccessibleName(tr("Memory of each stage"));
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
}

void MemoryBars::set_stages(std::vector<StageBar> stages, double capacity_bytes) {
  stages_ = std::move(stages);
  capacity_ = capacity_bytes;
  double most = 0;
  for (const StageBar& stage : stages_) most = std::max(most, sum(stage));
  setAccessibleDescription(tr("%1 stages, the fullest takes %2 of %3")
                               .arg(stages_.size())
                               .arg(qt(with_unit(Bytes(most))), qt(with_unit(Bytes(capacity_)))));
  update();
}

QString MemoryBars::data_text() const {
  QString text = tr("stage");
  if (!stages_.empty()) {
    for (const BarPart& part : stages_.front().parts) text += tr("\t%1, bytes").arg(part.label);
  }
  for (const StageBar& stage : stages_) {
    text += QLatin1Char('\n') + stage.label;
    for (const BarPart& part : stage.parts) {
      text += QLatin1Char('\t') + QString::number(part.value, 'f', 0);
    }
  }
  return text + QLatin1Char('\n');
}

QRectF MemoryBars::plot() const {
  const int line = fontMetrics().height();
  const int left = fontMetrics().horizontalAdvance(QStringLiteral("000 GiB")) + kChartGap;
  return QRectF(left, line / 2.0 + 2, width() - left - 2,
                legend_area().top() - 1.5 * line - 2 * kChartGap + 2);
}

double MemoryBars::top() const {
  double most = capacity_;
  for (const StageBar& stage : stages_) most = std::max(most, sum(stage));
  return most * 1.06;
}

void MemoryBars::paintEvent(QPaintEvent* /*event*/) {
  if (stages_.empty()) return;
  QPainter painter(this);
  const QRectF area = plot();
  paint_axis(painter, area);
  paint_stages(painter, area);
  const double y = area.bottom() - area.height() * capacity_ / top();
  painter.setPen(QPen(alarm_colour(palette()), 1.5, Qt::DashLine));
  painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
  painter.setPen(palette().color(QPalette::WindowText));
  paint_legend(painter, legend(), legend_area());
}

void MemoryBars::paint_axis(QPainter& painter, const QRectF& area) const {
  const int line = fontMetrics().height();
  const double step = round_step(top() / kGiB / 6);
  for (double tick = 0; tick * kGiB <= top(); tick += step) {
    const double y = area.bottom() - area.height() * tick * kGiB / top();
    painter.setPen(grid_colour(palette()));
    painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
    painter.setPen(muted_text(palette()));
    painter.drawText(QRectF(0, y - line / 2.0, area.left() - kChartGap, line),
                     Qt::AlignRight | Qt::AlignVCenter, tr("%1 GiB").arg(tick));
  }
}

void MemoryBars::paint_stages(QPainter& painter, const QRectF& area) const {
  const bool dark = is_dark(palette());
  const double slot = area.width() / static_cast<double>(stages_.size());
  const double wide = std::min(slot * 0.8, 64.0);
  const int line = fontMetrics().height();
  const int label_wide = fontMetrics().horizontalAdvance(QStringLiteral("000"));
  const auto every = static_cast<std::size_t>(std::max(1.0, std::ceil(label_wide / slot)));
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    const double x = area.left() + (static_cast<double>(i) + 0.5) * slot - wide / 2;
    double below = area.bottom();
    for (const BarPart& part : stages_[i].parts) {
      const double high = area.height() * part.value / top();
      painter.fillRect(QRectF(x, below - high, wide, high), colour_of(part.key, dark));
      below -= high;
    }
    if (i % every != 0) continue;
    painter.setPen(muted_text(palette()));
    painter.drawText(QRectF(x + wide / 2 - slot * 2, area.bottom() + 2, slot * 4, line),
                     Qt::AlignCenter, stages_[i].label);
  }
}

std::vector<LegendEntry> MemoryBars::legend() const {
  std::vector<LegendEntry> entries;
  if (stages_.empty()) return entries;
  const bool dark = is_dark(palette());
  for (const BarPart& part : stages_.front().parts) {
    entries.push_back({part.label, colour_of(part.key, dark)});
  }
  return entries;
}

QRect MemoryBars::legend_area() const {
  const int high = legend_height(legend(), width(), fontMetrics());
  return {0, height() - high - 2, width(), high};
}

int MemoryBars::stage_at(QPoint point) const {
  const QRectF area = plot();
  if (stages_.empty() || !area.contains(point)) return -1;
  const double share = (point.x() - area.left()) / area.width();
  return std::min(static_cast<int>(share * static_cast<double>(stages_.size())),
                  static_cast<int>(stages_.size()) - 1);
}

bool MemoryBars::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return Chart::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const int stage = stage_at(help->pos());
  QString text;
  if (stage >= 0) {
    const StageBar& bar = stages_[static_cast<std::size_t>(stage)];
    text = tr("Stage %1: %2").arg(bar.label, qt(with_unit(Bytes(sum(bar)))));
    for (const BarPart& part : bar.parts) {
      if (part.value > 0) text += QLatin1Char('\n') + tr("%1: %2").arg(part.label, part.text);
    }
  }
  QToolTip::showText(help->globalPos(), text, this);
  return true;
}

}  // namespace trainyard

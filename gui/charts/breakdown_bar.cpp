#include "gui/charts/breakdown_bar.h"

#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>
#include <utility>

#include "gui/charts/colours.h"
#include "gui/presenters/text.h"

namespace trainyard {
namespace {

constexpr int kBarHeight = 30;
constexpr int kLegendTop = kBarHeight + kChartGap;

}  // namespace

BreakdownBar::BreakdownBar(QWidget* parent) : Chart(parent) {
  setAccessibleName(tr("Where the time of a step goes"));
  QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Minimum);
  policy.setHeightForWidth(true);
  setSizePolicy(policy);
}

void BreakdownBar::set_parts(std::vector<BarPart> parts) {
  parts_ = std::move(parts);
  whole_ = 0;
  QStringList words;
  for (const BarPart& part : parts_) {
    whole_ += part.value;
    words.append(tr("%1: %2").arg(part.label, part.text));
  }
  setAccessibleDescription(words.join(QStringLiteral("; ")));
  updateGeometry();
  update();
}

QString BreakdownBar::data_text() const {
  QString text = tr("part\tseconds") + QLatin1Char('\n');
  for (const BarPart& part : parts_) {
    text +=
        part.label + QLatin1Char('\t') + QString::number(part.value, 'g', 17) + QLatin1Char('\n');
  }
  return text;
}

QSize BreakdownBar::sizeHint() const { return {520, heightForWidth(520)}; }
QSize BreakdownBar::minimumSizeHint() const {
  return {240, kBarHeight + 2 * fontMetrics().height()};
}

int BreakdownBar::heightForWidth(int width) const {
  const std::vector<LegendEntry> entries = legend();
  return entries.empty() ? kBarHeight
                         : kLegendTop + legend_height(entries, width, fontMetrics()) + 3;
}

std::vector<LegendEntry> BreakdownBar::legend() const {
  std::vector<LegendEntry> entries;
  const bool dark = is_dark(palette());
  for (const BarPart& part : parts_) {
    entries.push_back({tr("%1 %2").arg(part.label, part.text.section(QStringLiteral(", "), 1)),
                       colour_of(part.key, dark)});
  }
  return entries;
}

void BreakdownBar::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(this);
  const bool dark = is_dark(palette());
  if (whole_ <= 0) return;
  double at = 0;
  for (const BarPart& part : parts_) {
    const double wide = width() * part.value / whole_;
    const QColor colour = colour_of(part.key, dark);
    const QRectF box(at, 0, wide, kBarHeight);
    painter.fillRect(box, colour);
    painter.fillRect(QRectF(box.right() - 1, 0, 1, kBarHeight), palette().color(QPalette::Window));
    if (fontMetrics().horizontalAdvance(part.label) + 2 * kChartGap < wide) {
      painter.setPen(text_on(colour));
      painter.drawText(box, Qt::AlignCenter, part.label);
    }
    at += wide;
  }
  painter.setPen(palette().color(QPalette::WindowText));
  paint_legend(painter, legend(), rect().adjusted(0, kLegendTop, 0, 0));
}

const BarPart* BreakdownBar::part_at(QPoint point) const {
  const std::vector<QRect> boxes = legend_boxes(legend(), width(), fontMetrics());
  const QPoint in_legend = point - QPoint(0, kLegendTop);
  double at = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const double wide = width() * parts_[i].value / whole_;
    const bool in_bar = point.y() < kBarHeight && point.x() >= at && point.x() < at + wide;
    if (in_bar || boxes[i].contains(in_legend)) return &parts_[i];
    at += wide;
  }
  return nullptr;
}

bool BreakdownBar::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return Chart::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const BarPart* part = part_at(help->pos());
  QToolTip::showText(help->globalPos(),
                     part == nullptr ? QString() : tr("%1: %2").arg(part->label, part->text), this);
  return true;
}

}  // namespace trainyard

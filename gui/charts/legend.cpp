#include "gui/charts/legend.h"

#include <QFontMetrics>
#include <QPainter>

#include "gui/charts/chart.h"

namespace trainyard {

std::vector<QRect> legend_boxes(const std::vector<LegendEntry>& entries, int width,
                                const QFontMetrics& font) {
  std::vector<QRect> boxes;
  QPoint at;
  for (const LegendEntry& entry : entries) {
    const int wide = kSwatch + kChartGap + font.horizontalAdvance(entry.text);
    if (at.x() > 0 && at.x() + wide > width) at = {0, at.y() + font.height() + 2};
    boxes.emplace_back(at, QSize(wide, font.height()));
    at.rx() += wide + 3 * kChartGap;
  }
  return boxes;
}

int legend_height(const std::vector<LegendEntry>& entries, int width, const QFontMetrics& font) {
  return entries.empty() ? 0 : legend_boxes(entries, width, font).back().bottom() + 1;
}

void paint_legend(QPainter& painter, const std::vector<LegendEntry>& entries, const QRect& area) {
  const std::vector<QRect> boxes = legend_boxes(entries, area.width(), painter.fontMetrics());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const QRect box = boxes[i].translated(area.topLeft());
    painter.fillRect(box.x(), box.center().y() - kSwatch / 2, kSwatch, kSwatch, entries[i].colour);
    // Letters may reach a little beyond their advance, so the box is wider than the text.
    painter.drawText(box.adjusted(kSwatch + kChartGap, 0, 4, 0), Qt::AlignVCenter, entries[i].text);
  }
}

}  // namespace trainyard

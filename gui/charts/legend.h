// What the colours of a chart mean: swatches with their words, in as many lines as they need.
#pragma once

#include <QColor>
#include <QRect>
#include <QString>
#include <vector>

class QFontMetrics;
class QPainter;

namespace trainyard {

struct LegendEntry {
  QString text;
  QColor colour;
};

// Where each entry stands in lines of that width, pixels, the first at (0, 0).
std::vector<QRect> legend_boxes(const std::vector<LegendEntry>& entries, int width,
                                const QFontMetrics& font);
// Pixels; 0: there are no entries.
int legend_height(const std::vector<LegendEntry>& entries, int width, const QFontMetrics& font);
// The words in the painter's pen.
void paint_legend(QPainter& painter, const std::vector<LegendEntry>& entries, const QRect& area);

}  // namespace trainyard

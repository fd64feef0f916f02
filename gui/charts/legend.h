// The legend of a chart: swatches of colour with their meaning, in as many lines as they need.
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

// The box of each entry in lines of this width, in pixels; the first line begins at (0, 0).
std::vector<QRect> legend_boxes(const std::vector<LegendEntry>& entries, int width,
                                const QFontMetrics& font);
// The height in pixels; 0 without entries.
int legend_height(const std::vector<LegendEntry>& entries, int width, const QFontMetrics& font);
// Paints the legend; its words have the colour of the painter's pen.
void paint_legend(QPainter& painter, const std::vector<LegendEntry>& entries, const QRect& area);

}  // namespace trainyard

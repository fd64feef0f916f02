#include "gui/charts/gantt_drawing.h"

#include <QCoreApplication>
#include <algorithm>

#include "gui/charts/colours.h"

namespace trainyard {
namespace {

constexpr int kEntryWidth = 220;  // of a legend entry; without a window no font can be measured

}  // namespace

QColor waiting_colour(bool dark) {
  QColor colour = colour_of("bubble", dark);
  colour.setAlphaF(0.35F);
  return colour;
}

std::vector<LegendEntry> legend_of(const TimelineScene& scene, bool dark) {
  std::vector<LegendEntry> entries;
  for (const SliceKind kind : scene.kinds()) {
    entries.push_back({TimelineScene::name_of(kind), colour_of(key_of(kind), dark)});
  }
  if (std::ranges::any_of(scene.tracks(), &TimelineTrack::is_compute)) {
    entries.push_back({QCoreApplication::translate("Gantt", "waiting"), waiting_colour(dark)});
  }
  return entries;
}

GanttBand band_of(const TimelineTrack& track, bool predicted, int row_height) {
  const int high = row_height - 2;
  if (track.predicted.empty()) return {1, high};
  const int measured = high * 6 / 10;
  return predicted ? GanttBand{1 + measured + 1, high - measured - 1} : GanttBand{1, measured};
}

QString GanttDrawing::svg() const {
  if (!scene) return {};
  const auto tracks = static_cast<int>(scene->tracks().size());
  const std::vector<LegendEntry> legend = legend_of(*scene, false);
  const int in_line = std::max(1, width / kEntryWidth);
  const int lines = (static_cast<int>(legend.size()) + in_line - 1) / in_line;
  QString text = QStringLiteral(
                     "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%1\" height=\"%2\" "
                     "font-family=\"sans-serif\" font-size=\"11\">\n")
                     .arg(width)
                     .arg(row_height * (tracks + lines + 1));
  int y = 0;
  for (const TimelineTrack& track : scene->tracks()) {
    text += QStringLiteral("<text x=\"2\" y=\"%1\">%2</text>\n")
                .arg(y + row_height - 6)
                .arg(track.name.toHtmlEscaped());
    add_slices(text, track, y, false);
    if (!track.predicted.empty()) add_slices(text, track, y, true);
    y += row_height;
  }
  add_legend(text, legend, y);
  return text + QStringLiteral("</svg>\n");
}

void GanttDrawing::add_legend(QString& text, const std::vector<LegendEntry>& legend, int y) const {
  const int in_line = std::max(1, width / kEntryWidth);
  int at = 0;
  for (const LegendEntry& entry : legend) {
    const int x = at % in_line * kEntryWidth + 2;
    const int top = y + at / in_line * row_height;
    text += QStringLiteral(
                "<rect x=\"%1\" y=\"%2\" width=\"10\" height=\"10\" fill=\"%3\" "
                "fill-opacity=\"%4\"/>\n")
                .arg(x)
                .arg(top + row_height - 15)
                .arg(entry.colour.name())
                .arg(double(entry.colour.alphaF()), 0, 'f', 2);
    text += QStringLiteral("<text x=\"%1\" y=\"%2\">%3</text>\n")
                .arg(x + 14)
                .arg(top + row_height - 6)
                .arg(entry.text.toHtmlEscaped());
    ++at;
  }
}

void GanttDrawing::add_slices(QString& text, const TimelineTrack& track, int y,
                              bool predicted) const {
  const GanttBand band = band_of(track, predicted, row_height);
  for (const SliceRun& run : scene->runs(track, view, predicted)) {
    text += QStringLiteral("<rect x=\"%1\" y=\"%2\" width=\"%3\" height=\"%4\" fill=\"%5\"/>\n")
                .arg(label_width + run.x, 0, 'f', 2)
                .arg(y + band.top)
                .arg(run.width, 0, 'f', 2)
                .arg(band.height)
                .arg(colour_of(key_of(run.kind), false).name());
  }
}

}  // namespace trainyard

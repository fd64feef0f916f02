#include "gui/charts/gantt_drawing.h"

#include "gui/charts/colours.h"

namespace trainyard {

GanttBand band_of(const TimelineTrack& track, bool predicted, int row_height) {
  const int high = row_height - 2;
  if (track.predicted.empty()) return {1, high};
  const int measured = high * 6 / 10;
  return predicted ? GanttBand{1 + measured + 1, high - measured - 1} : GanttBand{1, measured};
}

QString GanttDrawing::svg() const {
  if (!scene) return {};
  const auto tracks = static_cast<int>(scene->tracks().size());
  QString text = QStringLiteral(
                     "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%1\" height=\"%2\" "
                     "font-family=\"sans-serif\" font-size=\"11\">\n")
                     .arg(width)
                     .arg(row_height * (tracks + 1));
  int y = 0;
  for (const TimelineTrack& track : scene->tracks()) {
    text += QStringLiteral("<text x=\"2\" y=\"%1\">%2</text>\n")
                .arg(y + row_height - 6)
                .arg(track.name.toHtmlEscaped());
    add_slices(text, track, y, false);
    if (!track.predicted.empty()) add_slices(text, track, y, true);
    y += row_height;
  }
  return text + QStringLiteral("</svg>\n");
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

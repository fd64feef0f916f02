// A timeline as vectors (SVG): what a Gantt chart shows, all its tracks, as values that may be
// written on another thread.
#pragma once

#include <memory>

#include "gui/charts/legend.h"
#include "gui/presenters/timeline/timeline_scene.h"

namespace trainyard {

// What the colours of a scene's slices mean, and the ground of a compute track.
std::vector<LegendEntry> legend_of(const TimelineScene& scene, bool dark);
QColor waiting_colour(bool dark);

// Where in a row of the chart slices lie: all of it, or the measured or predicted part.
struct GanttBand {
  int top = 0, height = 0;  // from that of the row
};
GanttBand band_of(const TimelineTrack& track, bool predicted, int row_height);

struct GanttDrawing {
  std::shared_ptr<const TimelineScene> scene;
  TimelineView view;
  int width = 0, label_width = 0, row_height = 0;

  QString svg() const;

 private:
  void add_slices(QString& text, const TimelineTrack& track, int y, bool predicted) const;
  void add_legend(QString& text, const std::vector<LegendEntry>& legend, int y) const;
};

}  // namespace trainyard

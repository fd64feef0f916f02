// A timeline as vector graphics (SVG): the visible time of a Gantt chart, with all its tracks, also
// those that are scrolled away. It is a value, so it can be written on a background thread.
#pragma once

#include <memory>

#include "gui/charts/legend.h"
#include "gui/presenters/timeline/timeline_scene.h"

namespace trainyard {

// What the colours of a scene's slices mean, and the colour of a compute track where it waits.
std::vector<LegendEntry> legend_of(const TimelineScene& scene, bool dark);
QColor waiting_colour(bool dark);

// The part of a row that slices fill: all of it, or, for a track that compares, the upper part for
// measured and the lower part for predicted slices.
struct GanttBand {
  int top = 0, height = 0;  // pixels; `top` is relative to the row's top
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

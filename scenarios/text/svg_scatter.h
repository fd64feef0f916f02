// A scatter chart as plain SVG: points of a few series over two axes, linear or logarithmic, with
// ticks, titles and a legend. For residual plots and predicted against measured; text is escaped.
#pragma once

#include <string>
#include <vector>

namespace trainyard {

struct ScatterAxis {
  std::string title;  // with its unit
  bool logarithmic = false;
  // The range that is shown, if the two differ; else all points. Points outside are drawn at the
  // edge.
  double least = 0, most = 0;
};

struct ScatterPoint {
  double x = 0, y = 0;
};

struct ScatterSeries {
  std::string name;
  std::vector<ScatterPoint> points;
};

struct ScatterChart {
  std::string title;
  ScatterAxis x, y;
  std::vector<ScatterSeries> series;
  // Lines across the chart: y = level or, if `diagonal`, y = level · x.
  std::vector<double> levels;
  bool diagonal = false;
};

// A whole SVG document. Points that an axis cannot show (not finite; not positive on a logarithmic
// axis) are left out.
std::string svg_of(const ScatterChart& chart);

}  // namespace trainyard

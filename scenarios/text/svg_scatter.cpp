#include "scenarios/text/svg_scatter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "scenarios/text/markup.h"

namespace trainyard {
namespace {

// Pixels.
constexpr double kWidth = 860, kHeight = 560;
constexpr double kLeft = 80, kRight = 170, kTop = 44, kBottom = 60;
constexpr double kLegendStep = 20;
constexpr double kTickLength = 5;

// Okabe and Ito's palette, told apart by colour-blind readers too; then four of Tol's muted one.
constexpr std::array<std::string_view, 12> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                       "#e69f00", "#56b4e9", "#999999", "#000000",
                                                       "#332288", "#882255", "#999933", "#44aa99"};

// One axis on the paper: values to pixels.
struct AxisScale {
  bool logarithmic = false;
  double low = 0, high = 1;    // in units of the axis, decades if logarithmic
  double start = 0, stop = 1;  // pixels

  bool shows(double value) const { return std::isfinite(value) && (!logarithmic || value > 0); }
  double at(double value) const {
    const double measure = std::clamp(logarithmic ? std::log10(value) : value, low, high);
    return start + (measure - low) / (high - low) * (stop - start);
  }
};

template <typename Member>
AxisScale scale_of(const ScatterChart& chart, const ScatterAxis& axis, Member coordinate,
                   double start, double stop) {
  AxisScale scale{axis.logarithmic, std::numeric_limits<double>::max(),
                  std::numeric_limits<double>::lowest(), start, stop};
  const auto take = [&scale](double value) {
    if (!scale.shows(value)) return;
    const double measure = scale.logarithmic ? std::log10(value) : value;
    scale.low = std::min(scale.low, measure);
    scale.high = std::max(scale.high, measure);
  };
  if (axis.least < axis.most) {
    take(axis.least);
    take(axis.most);
  } else {
    for (const ScatterSeries& series : chart.series) {
      for (const ScatterPoint& point : series.points) take(point.*coordinate);
    }
  }
  if (scale.low > scale.high) scale.low = scale.high = 0;  // nothing to show
  const double margin = scale.high > scale.low ? 0.03 * (scale.high - scale.low) : 0.5;
  scale.low -= margin;
  scale.high += margin;
  return scale;
}

struct Tick {
  double value = 0;
  std::string label;
};

std::vector<Tick> linear_ticks(const AxisScale& scale) {
  constexpr double kWanted = 6;
  const double rough = (scale.high - scale.low) / kWanted;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double step = rough / power > 5 ? 10 * power : rough / power > 2 ? 5 * power : 2 * power;
  std::vector<Tick> ticks;
  for (double i = std::ceil(scale.low / step); i * step <= scale.high; ++i) {
    ticks.push_back({i * step, fmt::format("{:.6g}", i * step)});
  }
  return ticks;
}

std::vector<Tick> decade_ticks(const AxisScale& scale) {
  const bool few = scale.high - scale.low < 2;
  std::vector<Tick> ticks;
  for (double decade = std::floor(scale.low); decade <= scale.high; ++decade) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double measure = decade + std::log10(digit);
      const bool wanted = digit == 1 || few;
      if (!wanted || measure < scale.low || measure > scale.high) continue;
      const double value = digit * std::pow(10, decade);
      ticks.push_back({value, fmt::format("{:.6g}", value)});
    }
  }
  return ticks;
}

std::vector<Tick> ticks_of(const AxisScale& scale) {
  return scale.logarithmic ? decade_ticks(scale) : linear_ticks(scale);
}

std::string text_at(double x, double y, std::string_view anchor, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     markup_text(text));
}

std::string line(double x1, double y1, double x2, double y2, std::string_view style) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1,
                     x2, y2, style);
}

constexpr std::string_view kAxisLine = "stroke=\"#333\"";
constexpr std::string_view kGridLine = "stroke=\"#e4e4e4\"";
constexpr std::string_view kLevelLine = "stroke=\"#888\" stroke-dasharray=\"5 4\"";

std::string axes(const ScatterChart& chart, const AxisScale& x, const AxisScale& y) {
  std::string svg;
  for (const Tick& tick : ticks_of(x)) {
    const double at = x.at(tick.value);
    svg += line(at, y.start, at, y.stop, kGridLine);
    svg += line(at, y.start, at, y.start + kTickLength, kAxisLine);
    svg += text_at(at, y.start + 20, "middle", tick.label);
  }
  for (const Tick& tick : ticks_of(y)) {
    const double at = y.at(tick.value);
    svg += line(x.start, at, x.stop, at, kGridLine);
    svg += line(x.start - kTickLength, at, x.start, at, kAxisLine);
    svg += text_at(x.start - 9, at + 4, "end", tick.label);
  }
  svg += line(x.start, y.start, x.stop, y.start, kAxisLine);
  svg += line(x.start, y.start, x.start, y.stop, kAxisLine);
  svg += text_at((x.start + x.stop) / 2, kHeight - 16, "middle", chart.x.title);
  svg += fmt::format("<g transform=\"translate(20 {:.1f}) rotate(-90)\">\n{}</g>\n",
                     (y.start + y.stop) / 2, text_at(0, 0, "middle", chart.y.title));
  return svg;
}

double measured(const AxisScale& scale, double measure) {
  return scale.logarithmic ? std::pow(10, measure) : measure;
}

// The line y = level · x, cut where an axis ends, so that it keeps its slope.
std::string diagonal(double level, const AxisScale& x, const AxisScale& y) {
  const double begin = std::max(measured(x, x.low), measured(y, y.low) / level);
  const double end = std::min(measured(x, x.high), measured(y, y.high) / level);
  if (!(begin < end)) return "";
  return line(x.at(begin), y.at(level * begin), x.at(end), y.at(level * end), kLevelLine);
}

std::string levels(const ScatterChart& chart, const AxisScale& x, const AxisScale& y) {
  std::string svg;
  for (const double level : chart.levels) {
    if (chart.diagonal) {
      svg += diagonal(level, x, y);
    } else if (y.shows(level)) {
      svg += line(x.start, y.at(level), x.stop, y.at(level), kLevelLine);
    }
  }
  return svg;
}

std::string points(const ScatterSeries& series, std::string_view colour, const AxisScale& x,
                   const AxisScale& y) {
  std::string svg = fmt::format("<g fill=\"{}\" fill-opacity=\"0.5\">\n", colour);
  for (const ScatterPoint& point : series.points) {
    if (!x.shows(point.x) || !y.shows(point.y)) continue;
    svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2\"/>\n", x.at(point.x),
                       y.at(point.y));
  }
  return svg + "</g>\n";
}

}  // namespace

std::string svg_of(const ScatterChart& chart) {
  const AxisScale x = scale_of(chart, chart.x, &ScatterPoint::x, kLeft, kWidth - kRight);
  const AxisScale y = scale_of(chart, chart.y, &ScatterPoint::y, kHeight - kBottom, kTop);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" "
      "fill=\"white\"/>\n",
      kWidth, kHeight);
  svg += fmt::format("<g font-size=\"15\">\n{}</g>\n",
                     text_at(kLeft, kTop - 18, "start", chart.title));
  svg += axes(chart, x, y) + levels(chart, x, y);
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const std::string_view colour = kColours[i % kColours.size()];
    const double at = kTop + kLegendStep * static_cast<double>(i);
    svg += points(chart.series[i], colour, x, y);
    svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" fill=\"{}\"/>\n", x.stop + 18,
                       at, colour);
    svg += text_at(x.stop + 28, at + 4, "start", chart.series[i].name);
  }
  return svg + "</svg>\n";
}

}  // namespace trainyard

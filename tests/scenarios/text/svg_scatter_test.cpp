#include "scenarios/text/svg_scatter.h"

#include <gtest/gtest.h>

#include <charconv>
#include <limits>
#include <string>

namespace trainyard {
namespace {

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// The number at the beginning of a text, whatever the locale's decimal point is.
double number_at(std::string_view text) {
  double number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

TEST(SvgScatter, DrawsEveryPointThatItsAxesCanShow) {
  ScatterChart chart{.title = "t", .x = {"x", true}, .y = {"y"}};
  chart.series = {{"a", {{1, 1}, {10, 2}, {0, 3}, {1, std::numeric_limits<double>::quiet_NaN()}}}};
  const std::string svg = svg_of(chart);
  EXPECT_EQ(count_of(svg, "r=\"2\""), 2);
  EXPECT_EQ(count_of(svg, "nan"), 0);
}

TEST(SvgScatter, PutsDecadesAtEqualDistances) {
  ScatterChart chart{.title = "t", .x = {"x", true}, .y = {"y"}};
  chart.series = {{"a", {{1, 0}, {10, 0}, {100, 1}}}};
  const std::string svg = svg_of(chart);
  std::vector<double> x;
  for (auto at = svg.find("<circle cx=\""); at != std::string::npos && x.size() < 3;
       at = svg.find("<circle cx=\"", at + 1)) {
    x.push_back(number_at(std::string_view(svg).substr(at + 12)));
  }
  ASSERT_EQ(x.size(), 3U);
  EXPECT_NEAR(x[1] - x[0], x[2] - x[1], 0.11);  // pixels, one decimal
}

// Both axes have the same range, drawn in 610 by 456 pixels. y = 2x leaves at the top, a factor of
// two before the right edge, so its slope is that of y = x.
TEST(SvgScatter, CutsADiagonalWhereAnAxisEnds) {
  const ScatterAxis axis{.logarithmic = true, .least = 1, .most = 100};
  const auto slope = [&](double level) {
    const std::string svg = svg_of({.x = axis, .y = axis, .levels = {level}, .diagonal = true});
    const std::string dashed = svg.substr(0, svg.find("stroke-dasharray"));
    const std::string line = dashed.substr(dashed.rfind("<line"));
    const auto at = [&line](const std::string& key) {
      return number_at(std::string_view(line).substr(line.find(key + "=\"") + key.size() + 2));
    };
    return (at("y2") - at("y1")) / (at("x2") - at("x1"));
  };
  EXPECT_NEAR(slope(1), -456.0 / 610, 1e-3);
  EXPECT_NEAR(slope(2), slope(1), 1e-3);
  EXPECT_NEAR(slope(0.5), slope(1), 1e-3);
}

TEST(SvgScatter, EscapesText) {
  const std::string svg = svg_of({.title = "a < b & \"c\"\n", .x = {"<x>"}, .series = {{"&", {}}}});
  EXPECT_NE(svg.find("a &lt; b &amp; &quot;c&quot; "), std::string::npos);
  EXPECT_NE(svg.find("&lt;x&gt;"), std::string::npos);
  EXPECT_EQ(svg.find("<x>"), std::string::npos);
}

TEST(SvgScatter, OfNothingIsStillAChart) {
  const std::string svg = svg_of({});
  EXPECT_TRUE(svg.starts_with("<svg"));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

}  // namespace
}  // namespace trainyard

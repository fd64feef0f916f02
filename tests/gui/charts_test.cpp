// Axes, colours and texts of the charts.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <set>

#include "gui/charts/colours.h"
#include "gui/charts/gantt.h"
#include "gui/charts/heat_map.h"
#include "gui/charts/histogram.h"
#include "gui/charts/legend.h"
#include "gui/charts/scatter.h"
#include "gui/presenters/timeline/slice_kind.h"
#include "tests/gui/application.h"

namespace trainyard {
namespace {

// Recomputation takes time and memory. Both have one colour, which no other part beside them has.
TEST(Colours, HaveOneMeaningEach) {
  for (const bool dark : {false, true}) {
    EXPECT_EQ(colour_of("recomputation", dark), colour_of("recompute", dark));
    const QColor ours = colour_of("recomputation", dark);
    for (const char* beside : {"compute", "embedding_head", "optimizer", "parameters", "gradients",
                               "activations", "logits", "buffers", "forward", "backward"}) {
      const QColor other = colour_of(beside, dark);
      const int apart = std::abs(ours.red() - other.red()) +
                        std::abs(ours.green() - other.green()) +
                        std::abs(ours.blue() - other.blue());
      EXPECT_GT(apart, 60) << beside << (dark ? ", dark" : ", light");
    }
  }
}

// A legend helps only if no two kinds have the same colour.
TEST(Colours, TellTheKindsOfSlicesApart) {
  for (const bool dark : {false, true}) {
    for (int a = 0; a < kSliceKinds; ++a) {
      for (int b = 0; b < a; ++b) {
        const QColor one = colour_of(key_of(static_cast<SliceKind>(a)), dark);
        const QColor other = colour_of(key_of(static_cast<SliceKind>(b)), dark);
        const int apart = std::abs(one.red() - other.red()) +
                          std::abs(one.green() - other.green()) +
                          std::abs(one.blue() - other.blue());
        EXPECT_GT(apart, 50) << key_of(static_cast<SliceKind>(a)) << " and "
                             << key_of(static_cast<SliceKind>(b)) << (dark ? ", dark" : ", light");
      }
    }
  }
}

// There is no round number between two neighbouring doubles; the search for ticks must still end.
TEST(PlotAxis, EndsWhereNumbersAreTooCloseForTicks) {
  const double low = 13.75;
  EXPECT_LE(PlotAxis{}.ticks(low, std::nextafter(low, 20)).size(), 16u);
}

TEST(PlotAxis, TellsItsTicksApartHoweverCloseTheValuesAre) {
  for (const double value : {1e-9, 13.75, 6.4e11}) {
    const AxisEnds ends = ends_around(value, std::nextafter(value, 1e300));
    EXPECT_LT(ends.low, value);
    EXPECT_GT(ends.high, value);
    const std::vector<double> ticks = PlotAxis{}.ticks(ends.low, ends.high);
    EXPECT_GE(ticks.size(), 2u) << value;
    EXPECT_EQ(std::set<double>(ticks.begin(), ticks.end()).size(), ticks.size()) << value;
  }
}

// A single tick would not show the scale.
TEST(PlotAxis, HasTwoTicksAtLeast) {
  for (double span = 0.1; span < 10; span += 0.07) {
    EXPECT_GE(PlotAxis{}.ticks(5.05, 5.05 + span).size(), 2u) << span;
  }
}

TEST(Histogram, SaysHowManyThereAreOfWhat) {
  Histogram histogram;
  histogram.resize(400, 300);
  EXPECT_TRUE(histogram.text_at({200, 150}).isEmpty());
  histogram.set_values({91.9, 92.0, 92.0, 93.1}, QStringLiteral("%"), QStringLiteral("lives"));
  EXPECT_EQ(histogram.counts(), (std::vector{3, 0, 0, 1}));  // four bars of width 0.3
  EXPECT_EQ(histogram.text_at({60, 150}), "91.90 to 92.20 %, lives: 3");
  EXPECT_EQ(histogram.text_at({390, 150}), "92.80 to 93.10 %, lives: 1");
}

TEST(Charts, SayWhyThereIsNothingToDraw) {
  const QString why = QStringLiteral("No runs yet.");
  Scatter scatter;
  scatter.set_why_none(why);
  const auto text = [](double value) { return QString::number(value); };
  const PlotAxis x{QStringLiteral("price"), text}, y{QStringLiteral("time"), text};
  scatter.set_points({}, x, y);
  EXPECT_EQ(scatter.accessibleDescription(), why);
  scatter.set_points({{std::nan(""), 1}, {std::nan(""), 2}}, x, y);
  EXPECT_EQ(scatter.accessibleDescription(), QStringLiteral("Nothing has both time and price."));
  scatter.set_points({{1, 1}}, x, y);
  EXPECT_EQ(scatter.accessibleDescription(), QStringLiteral("1 points: time over price"));
  Histogram histogram;
  histogram.set_why_none(why);
  histogram.set_values({1, 2}, {}, {});
  histogram.set_values({}, {}, {});
  EXPECT_EQ(histogram.accessibleDescription(), why);
}

TEST(Legend, StandsInAsManyLinesAsItNeeds) {
  const std::vector<LegendEntry> entries(3, {QStringLiteral("forward"), Qt::blue});
  const QFontMetrics font{QFont()};
  const auto in_one = legend_boxes(entries, 10000, font);
  EXPECT_EQ(in_one[2].y(), 0);
  EXPECT_GT(in_one[2].x(), in_one[1].right());
  const auto below = legend_boxes(entries, in_one[1].right() + 1, font);
  EXPECT_EQ(below[1].y(), 0);
  EXPECT_EQ(below[2].x(), 0);
  EXPECT_GE(below[2].y(), font.height());
  EXPECT_EQ(legend_height(entries, in_one[1].right() + 1, font), below[2].bottom() + 1);
  EXPECT_EQ(legend_height({}, 100, font), 0);
}

// The expected texts are typed by hand; times are in picoseconds.
TEST(Gantt, HasTheDigitsThatTellItsTicksApart) {
  EXPECT_EQ(tick_text(0, 1e6), "0");
  EXPECT_EQ(tick_text(1'234'567e6, 1e6), "1.234567 s");
  EXPECT_EQ(tick_text(1'234'568e6, 1e6), "1.234568 s");
  EXPECT_EQ(tick_text(842'300e6, 100e6), "842.3 ms");
  EXPECT_EQ(tick_text(15e6, 5e6), QString::fromUtf8("15 µs"));
  EXPECT_EQ(tick_text(2e12, 500e9), "2.0 s");
}

TEST(CellChart, SaysWhetherACellWithoutAPointWasRead) {
  ChartCells cells{.x_name = "key",
                   .y_name = {},
                   .x = {"1"},
                   .y = {},
                   .values = {{std::nan("")}},
                   .points = {{-1}},
                   .value = {"figure", [](double value) { return QString::number(value); }}};
  HeatMap map;
  map.set_cells(cells);
  map.select(CellPlace{0, 0});
  EXPECT_TRUE(map.accessibleDescription().contains(QStringLiteral("not answered")));
  cells.some_unread = true;
  map.set_cells(cells);
  map.select(CellPlace{0, 0});
  EXPECT_TRUE(map.accessibleDescription().contains(QStringLiteral("not read")));
}

}  // namespace
}  // namespace trainyard

#include "cli/text/layout/table.h"

#include <gtest/gtest.h>

#include <limits>

namespace trainyard {
namespace {

TEST(Table, AlignsColumnsUnderHeadAndUnit) {
  Table table({{"part", "", Align::left}, {"time", "ms"}});
  table.add_row({"compute", "12.5"});
  table.add_rule();
  table.add_row({"step", "1,012.5"});
  EXPECT_EQ(table.render(Style(false)),
            "part        time\n"
            "              ms\n"
            "────────────────\n"
            "compute     12.5\n"
            "────────────────\n"
            "step     1,012.5\n");
}

TEST(Table, HasNoUnitLineWithoutUnits) {
  Table table({{"a"}, {"b"}});
  table.add_row({"1", "22"});
  EXPECT_EQ(table.render(Style(false)), "a   b\n─────\n1  22\n");
}

TEST(Table, IsAlignedWithColourAsWithout) {
  Table table({{"name", "", Align::left}, {"error", "%"}});
  table.add_row({"x", Style(true).bad("+20.0")});
  table.add_row({"y", "1.0"});
  const std::string text = table.render(Style(false));
  EXPECT_NE(text.find("x     \x1b[1;31m+20.0\x1b[0m\n"), std::string::npos);
  EXPECT_NE(text.find("y       1.0\n"), std::string::npos);
}

TEST(Bar, FillsToAnEighthOfAColumn) {
  EXPECT_EQ(bar(0, 4), "");
  EXPECT_EQ(bar(0.5, 4), "██");
  EXPECT_EQ(bar(1.0 / 32, 4), "▏");
  EXPECT_EQ(bar(0.9, 1), "▉");  // 7.2 eighths
}

TEST(Bar, StopsAtItsWidth) {
  EXPECT_EQ(bar(1.7, 3), "███");
  EXPECT_EQ(bar(-1, 3), "");
  EXPECT_EQ(bar(std::numeric_limits<double>::quiet_NaN(), 3), "");
}

TEST(Style, WritesCodesOnlyWithColour) {
  EXPECT_EQ(Style(false).bad("no"), "no");
  EXPECT_EQ(Style(true).good("yes"), "\x1b[32myes\x1b[0m");
}

}  // namespace
}  // namespace trainyard

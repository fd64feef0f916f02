#include "cli/text.h"

#include <gtest/gtest.h>

#include <limits>

namespace trainyard {
namespace {

TEST(Number, KeepsFourSignificantDigits) {
  EXPECT_EQ(number(13.7499), "13.75");
  EXPECT_EQ(number(0.0421234), "0.04212");
  EXPECT_EQ(number(1234.56), "1,235");
  EXPECT_EQ(number(-1234567), "-1,234,567");
  EXPECT_EQ(number(0), "0");
}

TEST(Number, CarriesWithoutGainingADigit) {
  EXPECT_EQ(number(9.99996), "10.00");
  EXPECT_EQ(number(999.996), "1,000");
  EXPECT_EQ(number(100), "100.0");
  EXPECT_EQ(number(99.995), "100.0");
}

TEST(Number, ShowsADashForWhatIsNone) {
  EXPECT_EQ(number(std::numeric_limits<double>::infinity()), "–");
  EXPECT_EQ(number(std::numeric_limits<double>::quiet_NaN()), "–");
}

TEST(Count, SeparatesThousands) {
  EXPECT_EQ(count(0), "0");
  EXPECT_EQ(count(999), "999");
  EXPECT_EQ(count(16384), "16,384");
  EXPECT_EQ(count(-1000), "-1,000");
}

TEST(Percent, HasOneDecimal) {
  EXPECT_EQ(percent(0.40512), "40.5");
  EXPECT_EQ(signed_percent(0.012), "+1.2");
  EXPECT_EQ(signed_percent(-0.012), "-1.2");
}

TEST(WithUnit, ChoosesTheUnitThatSuits) {
  EXPECT_EQ(with_unit(Seconds(13.75)), "13.75 s");
  EXPECT_EQ(with_unit(Seconds(0.0421)), "42.10 ms");
  EXPECT_EQ(with_unit(Seconds(2.5e-6)), "2.500 µs");
  EXPECT_EQ(with_unit(Seconds(0.99999)), "1.000 s");
  EXPECT_EQ(with_unit(Bytes(80.0 * 1024 * 1024 * 1024)), "80.00 GiB");
  EXPECT_EQ(with_unit(Joules(3.6e6)), "1.000 kWh");
  EXPECT_EQ(short_scale(405.853e9), "405.9 B");
  EXPECT_EQ(short_scale(229.7), "229.7");
}

TEST(DisplayWidth, CountsCodePointsAndNoColour) {
  EXPECT_EQ(display_width("µs · █"), 6u);
  EXPECT_EQ(display_width("\x1b[1;31mno\x1b[0m"), 2u);
}

TEST(Pad, FillsToTheDisplayedWidth) {
  EXPECT_EQ(pad_left("µ", 3), "  µ");
  EXPECT_EQ(pad_right("µ", 3), "µ  ");
  EXPECT_EQ(pad_left("wide", 2), "wide");
}

TEST(Elide, LeavesOutTheMiddle) {
  EXPECT_EQ(elide("abcdefgh", 8), "abcdefgh");
  EXPECT_EQ(elide("abcdefghi", 8), "abc…fghi");
  EXPECT_EQ(elide("µµµµ", 3), "µ…µ");
}

TEST(Wrap, BreaksBetweenWordsAndIndents) {
  const std::string word(60, 'x');
  EXPECT_EQ(wrap(word + " " + word, 4), word + "\n    " + word + "\n");
  EXPECT_EQ(wrap("a b"), "a b\n");
}

TEST(Wrap, KeepsANumberWithItsUnit) {
  const std::string text = std::string(93, 'x') + " 51.30 ms";  // 93 + 1 + 5 fit, " ms" does not
  EXPECT_EQ(wrap(text), std::string(93, 'x') + "\n51.30 ms\n");
}

}  // namespace
}  // namespace trainyard

#include "cli/text/layout/columns.h"

#include <gtest/gtest.h>

namespace trainyard {
namespace {

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

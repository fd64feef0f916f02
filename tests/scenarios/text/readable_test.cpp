#include "scenarios/text/readable.h"

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

TEST(Counted, HasOneOfANounOrSeveral) {
  EXPECT_EQ(counted(1, "token"), "1 token");
  EXPECT_EQ(counted(0, "token"), "0 tokens");
  EXPECT_EQ(counted(16384, "token"), "16,384 tokens");
  EXPECT_EQ(counted(2, "search", "searches"), "2 searches");
}

// An hour has 3,600 s and a day 24 hours.
TEST(Duration, IsInTheLargestUnitOfWhichItHasOne) {
  EXPECT_EQ(duration(Seconds(3600)), "1.000 h");
  EXPECT_EQ(duration(Seconds(86400 * 30)), "30.00 days");
  EXPECT_EQ(duration(Seconds(90)), "1.500 min");
  EXPECT_EQ(duration(Seconds(2.5)), "2.500 s");
}

TEST(Percent, HasOneDecimal) {
  EXPECT_EQ(percent(0.40512), "40.5");
  EXPECT_EQ(signed_percent(0.012), "+1.2");
  EXPECT_EQ(signed_percent(-0.012), "-1.2");
  EXPECT_EQ(signed_percent(-0.0004), "0.0");
  EXPECT_EQ(signed_percent(0), "0.0");
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

}  // namespace
}  // namespace trainyard

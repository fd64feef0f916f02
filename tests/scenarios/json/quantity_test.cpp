#include "scenarios/json/quantity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <regex>
#include <string>

namespace trainyard {
namespace {

constexpr Dimension kDimensions[] = {Dimension::bytes,           Dimension::bytes_per_second,
                                     Dimension::seconds,         Dimension::flops_per_second,
                                     Dimension::watts,           Dimension::dollars_per_second,
                                     Dimension::carbon_intensity};

double parsed(std::string_view text, Dimension dimension) {
  const auto value = parse_quantity(text, dimension, true);
  EXPECT_TRUE(value.has_value()) << text;
  return value.value_or(NAN);
}

bool refused(std::string_view text, Dimension dimension) {
  return !parse_quantity(text, dimension, false).has_value();
}

TEST(Quantity, TakesDecimalAndBinaryPrefixesApart) {
  EXPECT_EQ(parsed("80 GiB", Dimension::bytes), 80.0 * 1024 * 1024 * 1024);
  EXPECT_EQ(parsed("80 GB", Dimension::bytes), 80e9);
  EXPECT_EQ(parsed("1 TiB/s", Dimension::bytes_per_second), std::pow(2.0, 40));
}

TEST(Quantity, TakesBitsAndBytesApart) {
  EXPECT_EQ(parsed("400 Gbit/s", Dimension::bytes_per_second), 50e9);
  EXPECT_EQ(parsed("400 Gb/s", Dimension::bytes_per_second), 50e9);
  EXPECT_EQ(parsed("400 GB/s", Dimension::bytes_per_second), 400e9);
}

TEST(Quantity, OfSomeKindIsKnownByItsUnit) {
  EXPECT_EQ(quantity_of_some_kind("400 Gbit/s"), 50e9);
  EXPECT_EQ(quantity_of_some_kind("0 s"), 0);
  EXPECT_EQ(quantity_of_some_kind("400"), std::nullopt);
  EXPECT_EQ(quantity_of_some_kind("dgx-h100-80gb"), std::nullopt);
}

TEST(Quantity, ReadsEveryUnitOfTheDesign) {
  EXPECT_EQ(parsed("2.5 us", Dimension::seconds), 2.5e-6);
  EXPECT_EQ(parsed("2 min", Dimension::seconds), 120);
  EXPECT_EQ(parsed("1.5 h", Dimension::seconds), 5400);
  EXPECT_EQ(parsed("54 days", Dimension::seconds), 54 * 86400.0);
  EXPECT_EQ(parsed("1 day", Dimension::seconds), 86400.0);
  EXPECT_EQ(parsed("989 TFLOP/s", Dimension::flops_per_second), 989e12);
  EXPECT_EQ(parsed("700 W", Dimension::watts), 700);
  EXPECT_EQ(parsed("3.6 USD/h", Dimension::dollars_per_second), 0.001);
  EXPECT_DOUBLE_EQ(parsed("400 gCO2/kWh", Dimension::carbon_intensity), 400 / 3.6e6);
}

TEST(Quantity, RefusesWhatIsNotNumberSpaceUnit) {
  for (const char* text :
       {"",       " ",       "GB",          "80",      "80GB",   "80  GB",   " 80 GB",
        "80 GB ", "80 gb",   "80 GB/s",     "80 Gi B", "-80 GB", "+80 GB",   "0x50 GB",
        "8O GB",  "80,5 GB", ".5 GB",       "5. GB",   "1e GB",  "1e308 GB", "1e+ GB",
        "nan GB", "inf GB",  "infinity GB", "80 GB\n", "80\tGB", "1e999 GB"}) {
    EXPECT_TRUE(refused(text, Dimension::bytes)) << text;
  }
}

TEST(Quantity, RefusesValuesBeyondReason) {
  EXPECT_TRUE(refused("0 s", Dimension::seconds));
  EXPECT_TRUE(refused("0.000 s", Dimension::seconds));
  EXPECT_TRUE(refused("1e20 GB", Dimension::bytes));
  EXPECT_TRUE(refused("1e-30 s", Dimension::seconds));
  EXPECT_TRUE(refused(std::string(500, '9') + " s", Dimension::seconds));
  EXPECT_EQ(parsed("0 s", Dimension::seconds), 0);  // where zero is allowed
}

// parse(format(x)) == x, to the last bit.
TEST(QuantityLaw, FormattingReadsBackToTheSameNumber) {
  std::mt19937_64 random(1);
  for (const Dimension dimension : kDimensions) {
    const DimensionRecord& record = record_of(dimension);
    std::uniform_real_distribution<double> exponent(std::log(record.least), std::log(record.most));
    for (int i = 0; i < 2000; ++i) {
      const double value = std::exp(exponent(random));
      EXPECT_EQ(parsed(format_quantity(value, dimension), dimension), value);
    }
    EXPECT_EQ(parsed(format_quantity(0, dimension), dimension), 0);
  }
}

TEST(QuantityLaw, FormattingIsShort) {
  EXPECT_EQ(format_quantity(80.0 * (1 << 30), Dimension::bytes), "80 GiB");
  EXPECT_EQ(format_quantity(80e9, Dimension::bytes), "80 GB");
  EXPECT_EQ(format_quantity(2.5e-6, Dimension::seconds), "2.5 us");
  EXPECT_EQ(format_quantity(450e9, Dimension::bytes_per_second), "450 GB/s");
  EXPECT_EQ(format_quantity(989e12, Dimension::flops_per_second), "989 TFLOP/s");
}

// As in SI: a prefix that leaves a number from 1 to 1000; the bandwidths of a list are all in
// bytes.
TEST(QuantityLaw, FormattingTakesTheUnitThatReadsWell) {
  const auto rate = [](double value) {
    return format_quantity(value, Dimension::bytes_per_second);
  };
  EXPECT_EQ(rate(2684e9 / 8), "335.5 GB/s");
  EXPECT_EQ(rate(133.2e9), "133.2 GB/s");
  EXPECT_EQ(rate(100e9 / 8), "12.5 GB/s");
  EXPECT_EQ(rate(200e9 / 8), "25 GB/s");
  EXPECT_EQ(rate(3.35e12), "3.35 TB/s");
  EXPECT_EQ(format_quantity(116.6e-6, Dimension::seconds), "116.6 us");
  EXPECT_EQ(format_quantity(2250e12, Dimension::flops_per_second), "2.25 PFLOP/s");
  EXPECT_EQ(format_quantity(183359.0 * (1 << 20), Dimension::bytes), "183359 MiB");
}

// A decimal is rounded once, as C++ rounds it. 133.2 times 1e9 would be another double.
TEST(QuantityLaw, DecimalsAreTheNearestDoubles) {
  EXPECT_EQ(parsed("133.2 GB/s", Dimension::bytes_per_second), 133.2e9);
  EXPECT_EQ(parsed("2.684e2 Gbit/s", Dimension::bytes_per_second), 268.4e9 / 8);
  EXPECT_EQ(parsed("15.91 us", Dimension::seconds), 15.91e-6);
  EXPECT_EQ(parsed("1.591E-2 ms", Dimension::seconds), 15.91e-6);
  EXPECT_EQ(format_quantity(15.91e-6, Dimension::seconds), "15.91 us");
  EXPECT_EQ(format_quantity(7.999e-6, Dimension::seconds), "7.999 us");
}

// The schema's pattern and the parser describe the same grammar.
TEST(QuantityLaw, PatternAcceptsTheExampleOfEveryDimensionAndOnlyIt) {
  for (const Dimension of : kDimensions) {
    const std::regex pattern(quantity_pattern(of, false));
    for (const Dimension other : kDimensions) {
      const std::string example(record_of(other).example);
      EXPECT_EQ(std::regex_search(example, pattern), of == other) << example;
      EXPECT_EQ(!refused(example, of), of == other) << example;
    }
  }
}

}  // namespace
}  // namespace trainyard

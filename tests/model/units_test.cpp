#include "model/units.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace trainyard {
namespace {

using namespace literals;

template <typename A, typename B>
concept Addable = requires(A a, B b) {
  a + b;
};
template <typename A, typename B>
concept Comparable = requires(A a, B b) {
  a < b;
};

TEST(Quantity, AddsOnlyWhatHasTheSameUnit) {
  EXPECT_EQ(1.5_s + 500.0_ms, Seconds(2));
  EXPECT_EQ(2.0_GB - 0.5_GB, Bytes(1.5e9));
  static_assert(Addable<Seconds, Seconds>);
  static_assert(!Addable<Seconds, Bytes>);
  static_assert(!Addable<Seconds, double>);
  static_assert(!Comparable<BytesPerSecond, FlopsPerSecond>);
}

TEST(Quantity, IsNeverMadeFromABareNumber) {
  static_assert(!std::is_convertible_v<double, Seconds>);
  static_assert(!std::is_convertible_v<Seconds, double>);
  static_assert(std::is_constructible_v<Seconds, double>);
}

TEST(Quantity, DividesAndMultipliesTheUnitsToo) {
  static_assert(std::is_same_v<decltype(Bytes() / BytesPerSecond()), Seconds>);
  static_assert(std::is_same_v<decltype(Watts() * Seconds()), Joules>);
  static_assert(std::is_same_v<decltype(DollarsPerSecond() * Seconds()), Dollars>);
  static_assert(!std::is_same_v<decltype(Bytes() / FlopsPerSecond()), Seconds>);
  // 900 GB at 450 GB/s take 2 s; 989 TFLOP/s for 3 s are 2.967e15 FLOP.
  EXPECT_EQ(900.0_GB / 450.0_GBps, Seconds(2));
  EXPECT_EQ(989.0_TFLOPps * Seconds(3), Flops(2.967e15));
}

TEST(Quantity, IsAPlainNumberWhenTheUnitsCancel) {
  static_assert(std::is_same_v<decltype(Seconds() / Seconds()), double>);
  EXPECT_EQ(Seconds(3) / Seconds(2), 1.5);
}

TEST(Quantity, TellsDecimalFromBinaryPrefixes) {
  EXPECT_EQ((1.0_GB).value(), 1e9);
  EXPECT_EQ((1.0_GiB).value(), 1024.0 * 1024.0 * 1024.0);
  EXPECT_EQ(1024.0_MiB, 1.0_GiB);
  EXPECT_LT(1.0_GB, 1.0_GiB);
}

TEST(Quantity, IsAsSmallAsItsNumber) {
  static_assert(sizeof(Seconds) == sizeof(double));
  static_assert(std::is_trivially_copyable_v<Seconds>);
}

}  // namespace
}  // namespace trainyard

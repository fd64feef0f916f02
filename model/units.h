// Physical quantities with their dimension in the type, so that a bandwidth cannot be passed where
// a rate is expected and "GB" can never silently mean 2^30.
//
// A Quantity holds one double in SI base units (bytes, FLOP, seconds, joules, dollars); the
// template integers are exponents. `*` and `/` add and subtract them; a dimensionless result is a
// plain double. Construction from a number is explicit. GB is 10^9 bytes, GiB is 2^30 bytes,
// everywhere.
#pragma once

namespace trainyard {

template <int Byte, int Flop, int Second, int Joule, int Dollar>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double base_units) : value_(base_units) {}

  // The number in base units; the caller takes over the responsibility for the unit.
  constexpr double value() const { return value_; }

  constexpr Quantity& operator+=(Quantity other) {
    value_ += other.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value_ -= other.value_;
    return *this;
  }
  constexpr Quantity& operator*=(double factor) {
    value_ *= factor;
    return *this;
  }
  constexpr Quantity& operator/=(double divisor) {
    value_ /= divisor;
    return *this;
  }

  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  friend constexpr Quantity operator-(Quantity a) { return Quantity(-a.value_); }
  friend constexpr Quantity operator*(Quantity a, double factor) { return a *= factor; }
  friend constexpr Quantity operator*(double factor, Quantity a) { return a *= factor; }
  friend constexpr Quantity operator/(Quantity a, double divisor) { return a /= divisor; }

  // Five operators and no `<=>`: a three-way comparison compiles to branches for unordered numbers.
  friend constexpr bool operator==(Quantity a, Quantity b) { return a.value_ == b.value_; }
  friend constexpr bool operator<(Quantity a, Quantity b) { return a.value_ < b.value_; }
  friend constexpr bool operator>(Quantity a, Quantity b) { return a.value_ > b.value_; }
  friend constexpr bool operator<=(Quantity a, Quantity b) { return a.value_ <= b.value_; }
  friend constexpr bool operator>=(Quantity a, Quantity b) { return a.value_ >= b.value_; }

 private:
  double value_ = 0.0;
};

namespace detail {

// Collapses the dimensionless quantity to a double.
template <int B, int F, int S, int J, int D>
constexpr auto make_quantity(double value) {
  if constexpr (B == 0 && F == 0 && S == 0 && J == 0 && D == 0) {
    return value;
  } else {
    return Quantity<B, F, S, J, D>(value);
  }
}

}  // namespace detail

template <int B1, int F1, int S1, int J1, int D1, int B2, int F2, int S2, int J2, int D2>
constexpr auto operator*(Quantity<B1, F1, S1, J1, D1> a, Quantity<B2, F2, S2, J2, D2> b) {
  return detail::make_quantity<B1 + B2, F1 + F2, S1 + S2, J1 + J2, D1 + D2>(a.value() * b.value());
}

template <int B1, int F1, int S1, int J1, int D1, int B2, int F2, int S2, int J2, int D2>
constexpr auto operator/(Quantity<B1, F1, S1, J1, D1> a, Quantity<B2, F2, S2, J2, D2> b) {
  return detail::make_quantity<B1 - B2, F1 - F2, S1 - S2, J1 - J2, D1 - D2>(a.value() / b.value());
}

using Bytes = Quantity<1, 0, 0, 0, 0>;
using Flops = Quantity<0, 1, 0, 0, 0>;
using Seconds = Quantity<0, 0, 1, 0, 0>;
using Joules = Quantity<0, 0, 0, 1, 0>;
using Dollars = Quantity<0, 0, 0, 0, 1>;
using BytesPerSecond = Quantity<1, 0, -1, 0, 0>;
using FlopsPerSecond = Quantity<0, 1, -1, 0, 0>;
using Watts = Quantity<0, 0, -1, 1, 0>;
using DollarsPerSecond = Quantity<0, 0, -1, 0, 1>;

inline constexpr double kGiB = 1073741824.0;  // bytes
inline constexpr Seconds kMinute{60};
inline constexpr Seconds kHour{3600};
inline constexpr Seconds kDay{86400};

// For tests and constant tables; documents carry units in strings.
namespace literals {

constexpr Seconds operator""_s(long double v) { return Seconds(static_cast<double>(v)); }
constexpr Seconds operator""_ms(long double v) { return Seconds(static_cast<double>(v) * 1e-3); }
constexpr Seconds operator""_us(long double v) { return Seconds(static_cast<double>(v) * 1e-6); }
constexpr Bytes operator""_GB(long double v) { return Bytes(static_cast<double>(v) * 1e9); }
constexpr Bytes operator""_GiB(long double v) { return Bytes(static_cast<double>(v) * kGiB); }
constexpr Bytes operator""_MiB(long double v) { return Bytes(static_cast<double>(v) * 1048576.0); }
constexpr BytesPerSecond operator""_GBps(long double v) {
  return BytesPerSecond(static_cast<double>(v) * 1e9);
}
constexpr FlopsPerSecond operator""_TFLOPps(long double v) {
  return FlopsPerSecond(static_cast<double>(v) * 1e12);
}

}  // namespace literals
}  // namespace trainyard

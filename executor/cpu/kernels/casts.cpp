// Casts to 8 and 4 bits: OCP 8-bit Floating Point (OFP8) 1.0, OCP Microscaling Formats (MX) 1.0.
#include <algorithm>
#include <cmath>

#include "executor/cpu/kernels/kernels.h"

namespace trainyard {
namespace {

struct FloatShape {
  int mantissa_bits = 0;
  int least_exponent = 0;  // of a normal number
  double largest = 0;
};

FloatShape shape_of(NarrowFloat number) {
  switch (number) {
    case NarrowFloat::e4m3:
      return {3, -6, 448};
    case NarrowFloat::e5m2:
      return {2, -14, 57344};
    case NarrowFloat::e2m1:
    case NarrowFloat::none:
      break;
  }
  return {1, 0, 6};
}

// The nearest number of the format, ties to even; larger ones become the largest.
double nearest(double number, const FloatShape& shape) {
  if (!std::isfinite(number)) return number;
  const double magnitude = std::min(std::abs(number), shape.largest);
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  const double step =
      std::ldexp(1.0, std::max(exponent - 1, shape.least_exponent) - shape.mantissa_bits);
  return std::copysign(std::nearbyint(magnitude / step) * step, number);
}

// The smallest power of two that is not below `least`; 1 for 0 and for what is not finite.
double power_of_two(double least) {
  if (least == 0 || !std::isfinite(least)) return 1;
  int exponent = 0;
  const double fraction = std::frexp(least, &exponent);
  return std::ldexp(1.0, fraction == 0.5 ? exponent - 1 : exponent);
}

template <typename S>
double largest_of(const S& numbers) {
  return numbers.size() == 0 ? 0 : static_cast<double>(numbers.cwiseAbs().maxCoeff());
}

// The scale of a block of nvfp4: brings the block's largest number to the format's largest, as
// nearly as an e4m3 number times the matrix's scale allows.
double fine_scale(double largest, const FloatShape& shape, double of_matrix) {
  const FloatShape scales = shape_of(NarrowFloat::e4m3);
  return nearest(largest / shape.largest / of_matrix, scales) * of_matrix;
}

template <typename S>
void round_block(const FloatShape& shape, double scale, S numbers) {
  using Number = typename S::Scalar;
  for (Eigen::Index row = 0; row < numbers.rows(); ++row) {
    for (Eigen::Index column = 0; column < numbers.cols(); ++column) {
      Number& number = numbers(row, column);
      const double scaled = scale == 0 ? 0 : static_cast<double>(number) / scale;
      number = static_cast<Number>(nearest(scaled, shape) * scale);
    }
  }
}

}  // namespace

template <typename S>
Tensor<S> rounded(const Tensor<S>& numbers, const CastFormat& format) {
  Tensor<S> out = numbers;
  if (!format.exists()) return out;
  const FloatShape shape = shape_of(format.number);
  const double largest = largest_of(numbers);
  if (format.block == 0) {
    round_block(shape, power_of_two(largest / shape.largest),
                out.block(0, 0, out.rows(), out.cols()));
    return out;
  }
  const bool fine = format.number == NarrowFloat::e2m1;
  const double of_matrix =
      power_of_two(largest / shape.largest / shape_of(NarrowFloat::e4m3).largest);
  for (Eigen::Index row = 0; row < out.rows(); ++row) {
    for (Eigen::Index column = 0; column < out.cols(); column += format.block) {
      auto block =
          out.block(row, column, 1, std::min<Eigen::Index>(format.block, out.cols() - column));
      const double most = largest_of(block);
      round_block(shape,
                  fine ? fine_scale(most, shape, of_matrix) : power_of_two(most / shape.largest),
                  block);
    }
  }
  return out;
}

template <typename S>
void cast(const Operation& operation, const Where& where, const Operands<S>& o) {
  Eigen::Index columns = 0;
  for (const Tensor<S>* part : o.in) columns += part->cols();
  Tensor<S> all(o.in.front()->rows(), columns);
  columns = 0;
  for (const Tensor<S>* part : o.in) {
    all.middleCols(columns, part->cols()) = *part;
    columns += part->cols();
  }
  *o.out[0] = rounded(all, operation.cast);
  if (o.out.size() == 1) return;
  const Eigen::Index rows = o.out[1]->rows();
  *o.out[1] = o.out[0]->middleRows(where.at.tensor * rows, rows);
}

template Tensor<float> rounded(const Tensor<float>& numbers, const CastFormat& format);
template Tensor<double> rounded(const Tensor<double>& numbers, const CastFormat& format);
template void cast(const Operation& operation, const Where& where, const Operands<float>& operands);
template void cast(const Operation& operation, const Where& where,
                   const Operands<double>& operands);

}  // namespace trainyard

// Matrices on the device and their numbers on the host, for the tests of kernels at any width.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "executor/cuda/compute.h"

namespace trainyard {

using Numbers = std::vector<double>;

inline constexpr ElementType kTypes[] = {ElementType::f32, ElementType::bf16, ElementType::f16};
// Columns of a row: fewer than a team of threads, than a warp, than a block keeps, and more.
inline constexpr std::int64_t kWidths[] = {1,   5,    8,    40,   128,  136,   264,
                                           520, 1048, 2056, 4000, 4104, 12288, 16392};

// Tolerance of expect_near, relative to the norm of the result. It allows one or two roundings of
// the type; for f32, the rounding of sums.
inline double tolerance_of(ElementType type) {
  if (type == ElementType::f32) return 2e-6;
  return type == ElementType::bf16 ? 4e-3 : 5e-4;
}

class TestDevice {
 public:
  const Queue& queue() const { return queue_; }
  const CudaStatus& status() const { return status_; }

 private:
  CudaStatus status_;
  DeviceMemory memory_{status_, 0, 1 << 20};
  Queue queue_{status_, nullptr, memory_.pool()};
};

// A matrix on the device, filled with numbers between −1 and 1, which are rounded to its type.
class DeviceMatrix {
 public:
  DeviceMatrix(const TestDevice& device, std::int64_t rows, std::int64_t columns, ElementType type,
               std::uint64_t seed = 1)
      : queue_(device.queue()), memory_(queue_, rows, columns, type) {
    std::vector<float> numbers(static_cast<std::size_t>(rows * columns));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = static_cast<float>(uniform_signed(seed * 1000003 + i));
    }
    set(numbers);
  }
  void set(const std::vector<float>& numbers) { upload(queue_, *memory_, numbers); }
  Numbers get() const {
    const std::vector<float> numbers = downloaded(queue_, *memory_);
    return {numbers.begin(), numbers.end()};
  }
  const View& operator*() const { return *memory_; }
  const View* operator->() const { return &*memory_; }

 private:
  const Queue& queue_;
  Scratch memory_;
};

inline void expect_near(const Numbers& found, const Numbers& expected, double tolerance,
                        const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  double apart = 0, norm = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    apart += (found[i] - expected[i]) * (found[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  EXPECT_LE(std::sqrt(apart), tolerance * std::max(std::sqrt(norm), 1e-3)) << what;
}

inline std::size_t at(std::int64_t columns, std::int64_t row, std::int64_t column) {
  return static_cast<std::size_t>(row * columns + column);
}
inline std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace trainyard

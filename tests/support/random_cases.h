// On how many cases alike a law is tried: all where the build is optimised, a third or so where it
// is instrumented. A sanitizer looks at how the code runs, which few cases show; whether the
// numbers hold, the release build is asked. Not for what is claimed of a sample as a whole, its
// median say.
#pragma once

#include <gtest/gtest.h>

namespace trainyard {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

constexpr int random_cases(int all) { return kSanitized ? (all + 2) / 3 : all; }

// Whether the next of the cases that a test goes through is tried: where not all are, the first and
// five of thirteen, at distances of two and three, so that nested loops of few turns have each
// turn.
inline bool is_next_tried() {
  static const testing::TestInfo* of = nullptr;
  static int next = 0;
  const testing::TestInfo* now = testing::UnitTest::GetInstance()->current_test_info();
  if (now != of) next = 0;
  of = now;
  return !kSanitized || 5 * next++ % 13 < 5;
}

}  // namespace trainyard

// How many of its cases a law is tried on: all in an ordinary build, about a third in a build with
// sanitizers. A sanitizer checks how the code runs, and a few cases show that; whether the numbers
// hold is the ordinary build's task. Do not use these functions where a claim is about the whole
// sample, such as its median.
#pragma once

#include <gtest/gtest.h>

namespace trainyard {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

constexpr int random_cases(int all) { return kSanitized ? (all + 2) / 3 : all; }

// Whether the test tries its next case. Under sanitizers it tries five cases of thirteen: numbers
// 0, 3, 6, 8 and 11. They are two or three apart, so that nested loops of a few turns reach each of
// their turns.
inline bool is_next_tried() {
  static const testing::TestInfo* of = nullptr;
  static int next = 0;
  const testing::TestInfo* now = testing::UnitTest::GetInstance()->current_test_info();
  if (now != of) next = 0;
  of = now;
  return !kSanitized || 5 * next++ % 13 < 5;
}

}  // namespace trainyard

// How many random cases a law is tried on: all where the build is optimised, a third where it is
// instrumented. A sanitizer looks at how the code runs, which few cases show; whether the numbers
// hold, the release build is asked. Not for what is claimed of a sample as a whole, its median say.
#pragma once

namespace trainyard {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

constexpr int random_cases(int all) { return kSanitized ? (all + 2) / 3 : all; }

}  // namespace trainyard

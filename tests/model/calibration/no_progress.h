// A progress callback for fits that ignores the progress.
#pragma once

namespace trainyard {

inline constexpr auto kNoProgress = [](double) {};

}  // namespace trainyard

// A fit that tells nobody how far it is.
#pragma once

namespace trainyard {

inline constexpr auto kNoProgress = [](double) {};

}  // namespace trainyard

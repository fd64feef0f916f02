#include "executor/transport/rank_call.h"

#include <array>
#include <cstddef>

namespace trainyard {

std::string_view name_of(RankCall call) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"", "all-reduce", "reduce-scatter", "all-gather", "all-to-all", "ring exchange", "send",
       "receive", "broadcast", "wait for messages"});
  static_assert(kNames.size() == static_cast<std::size_t>(RankCall::wait) + 1, "one of each call");
  return kNames[static_cast<std::size_t>(call)];
}

}  // namespace trainyard

#include "executor/transport/rank_call.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>

namespace trainyard {
namespace {

// "1, 3 to 6 and 9". Requires: ascending, not empty.
std::string listed(const std::vector<int>& ranks) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (last < i + 2) last = i;
    parts.push_back(last == i ? fmt::format("{}", ranks[i])
                              : fmt::format("{} to {}", ranks[i], ranks[last]));
    i = last + 1;
  }
  std::string text = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    text += (i + 1 == parts.size() ? " and " : ", ") + parts[i];
  }
  return text;
}

}  // namespace

std::string_view name_of(RankCall call) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"", "all-reduce", "reduce-scatter", "all-gather", "all-to-all", "ring exchange", "send",
       "receive", "broadcast", "wait for messages"});
  static_assert(kNames.size() == static_cast<std::size_t>(RankCall::wait) + 1, "one of each call");
  return kNames[static_cast<std::size_t>(call)];
}

std::string ranks_listed(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + listed(ranks);
}

}  // namespace trainyard

// How context parallelism cuts attention over ranks (handbook §6; its costs in
// model/cost/messages/traffic.h).
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace trainyard {

// The names are those of documents.
enum class ContextAlgorithm { ring, all_gather, ulysses };
inline constexpr std::array<std::string_view, 3> kContextAlgorithms{"ring", "all-gather",
                                                                    "ulysses"};
constexpr std::string_view name_of(ContextAlgorithm algorithm) {
  return kContextAlgorithms[static_cast<std::size_t>(algorithm)];
}

}  // namespace trainyard

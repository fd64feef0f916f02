#include "executor/cuda/placement.h"

#include <unistd.h>

#include <array>
#include <functional>
#include <map>

namespace trainyard {
namespace {

constexpr std::size_t kNumbers = 3;  // two parts of the host's name, its devices

}  // namespace

Expected<DevicePlacement> place_on_device(Transport& transport, int devices) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  const std::size_t name = std::hash<std::string_view>{}(host.data());
  // As much as a float holds exactly.
  constexpr std::size_t kBits = 0xffffff;
  const std::array<float, kNumbers> mine = {static_cast<float>(name & kBits),
                                            static_cast<float>(name >> 24 & kBits),
                                            static_cast<float>(devices)};
  const auto ranks = static_cast<std::size_t>(transport.ranks());
  std::vector<float> all(ranks * kNumbers);
  auto done = transport.all_gather(Group::all, mine.data(), Counts(ranks, kNumbers), all.data());
  if (!done) return tl::unexpected(done.error());
  DevicePlacement placement;
  std::map<std::pair<float, float>, int> on_host;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const float* of = &all[rank * kNumbers];
    const int place = on_host[{of[0], of[1]}]++;
    placement.shared = placement.shared || place >= static_cast<int>(of[2]);
    if (static_cast<int>(rank) == transport.rank()) placement.device = place % devices;
  }
  return placement;
}

}  // namespace trainyard

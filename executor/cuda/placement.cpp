#include "executor/cuda/placement.h"

#include <unistd.h>

#include <array>
#include <set>
#include <utility>

namespace trainyard {
namespace {

// The hash of a name, in numbers that a float holds exactly.
using NameHash = std::array<float, 2>;

NameHash name_hash(std::string_view name) {
  constexpr std::size_t kBits = 0xffffff;
  const std::size_t hash = std::hash<std::string_view>{}(name);
  return {static_cast<float>(hash & kBits), static_cast<float>(hash >> 24 & kBits)};
}

// The hash of each rank's name.
Expected<std::vector<NameHash>> of_all_ranks(Transport& transport, std::string_view name) {
  const NameHash mine = name_hash(name);
  const auto ranks = static_cast<std::size_t>(transport.ranks());
  std::vector<NameHash> all(ranks);
  auto done =
      transport.all_gather(Group::all, mine.data(),
                           Counts(ranks, static_cast<std::int64_t>(mine.size())), all[0].data());
  if (!done) return tl::unexpected(done.error());
  return all;
}

}  // namespace

Expected<DevicePlacement> place_on_device(Transport& transport, int devices,
                                          const std::function<std::string(int device)>& address) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  const auto hosts = of_all_ranks(transport, host.data());
  if (!hosts) return tl::unexpected(hosts.error());
  const auto self = static_cast<std::size_t>(transport.rank());
  int place = 0;
  for (std::size_t rank = 0; rank < self; ++rank) place += (*hosts)[rank] == (*hosts)[self] ? 1 : 0;
  DevicePlacement placement{.device = place % devices};
  const auto addresses = of_all_ranks(transport, address(placement.device));
  if (!addresses) return tl::unexpected(addresses.error());
  std::set<std::pair<NameHash, NameHash>> taken;
  for (std::size_t rank = 0; rank < hosts->size(); ++rank) {
    const bool is_new = taken.insert({(*hosts)[rank], (*addresses)[rank]}).second;
    placement.shared = placement.shared || !is_new;
  }
  return placement;
}

}  // namespace trainyard

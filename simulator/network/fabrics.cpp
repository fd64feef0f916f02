#include "simulator/network/fabrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace trainyard {
namespace {

// Members as the fabric that they are in counts its devices.
std::vector<std::int32_t> counted_from(std::int32_t first, std::span<const std::int32_t> members) {
  std::vector<std::int32_t> own(members.begin(), members.end());
  for (std::int32_t& member : own) member -= first;
  return own;
}

// The members of a fabric among those of a group, and a transfer between two of them.
struct Own {
  std::vector<std::int32_t> members;
  Transfer transfer;
};
template <typename IsOwn>
Own own_of(std::span<const std::int32_t> members, const Transfer& transfer, const IsOwn& is_own) {
  Own own{.members = {}, .transfer = transfer};
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!is_own(members[i])) continue;
    const auto place = static_cast<int>(own.members.size());
    if (static_cast<int>(i) == transfer.from) own.transfer.from = place;
    if (static_cast<int>(i) == transfer.to) own.transfer.to = place;
    own.members.push_back(members[i]);
  }
  return own;
}

}  // namespace

Expected<Fabrics> Fabrics::make(std::span<const FabricGroup> groups, const NamedBoundary& boundary,
                                FabricLinks links) {
  Fabrics all;
  all.boundary_ = boundary;
  const bool several = groups.size() > 1;
  int domains = 0;
  for (const FabricGroup& group : groups) {
    auto fabric = Fabric::make(*group.cluster, *group.topology, several ? FabricLinks::all : links);
    if (!fabric) return tl::unexpected(fabric.error());
    const auto first_link = static_cast<std::int32_t>(all.capacities_.size());
    all.capacities_.insert(all.capacities_.end(), fabric->capacities().begin(),
                           fabric->capacities().end());
    all.parts_.push_back({*std::move(fabric), all.devices_, first_link, domains, group.cluster});
    all.devices_ += all.parts_.back().fabric.devices();
    domains += all.parts_.back().fabric.domains();
  }
  all.first_boundary_link_ = static_cast<std::int32_t>(all.capacities_.size());
  if (!several) return all;
  if (boundary.bandwidth) {
    all.capacities_.insert(all.capacities_.end(), 2 * static_cast<std::size_t>(all.devices_),
                           *boundary.bandwidth);
  }
  if (auto checked = all.check_boundary(); !checked) return tl::unexpected(checked.error());
  return all;
}

Expected<void> Fabrics::check_boundary() const {
  if (boundary_.bandwidth) return {};
  for (const Part& part : parts_) {
    for (int device = 0; device < part.fabric.devices(); ++device) {
      if (part.fabric.has_way_out(device)) continue;
      return failure("topology", fmt::format("rank {} cannot reach the ranks of other groups",
                                             part.first_device + device));
    }
  }
  return {};
}

std::size_t Fabrics::part_of(std::int32_t device) const {
  std::size_t part = parts_.size() - 1;
  while (parts_[part].first_device > device) --part;
  return part;
}

const Fabrics::Part* Fabrics::common_part(std::span<const std::int32_t> members) const {
  if (parts_.size() == 1 || members.empty()) return &parts_.front();
  const std::size_t part = part_of(members.front());
  const bool is_common =
      std::ranges::all_of(members, [&](std::int32_t member) { return part_of(member) == part; });
  return is_common ? &parts_[part] : nullptr;
}

int Fabrics::domain_of(std::int32_t device) const {
  const Part& part = parts_[part_of(device)];
  return part.first_domain + part.fabric.domain_of(device - part.first_device);
}

int Fabrics::place_of(int device) const {
  const Part& part = parts_[part_of(device)];
  return part.fabric.place_of(device - part.first_device);
}

GroupLinks Fabrics::links_of(std::span<const std::int32_t> members) const {
  if (const Part* part = common_part(members)) {
    if (part->first_device == 0) return part->fabric.links_of(members);
    return part->fabric.links_of(counted_from(part->first_device, members));
  }
  GroupLinks links = parts_[part_of(members.front())].fabric.links_of({});
  links.across_latency = latency_between(members);
  links.size = static_cast<int>(members.size());
  links.ranks_per_domain =
      ranks_together(members, [&](std::int32_t member) { return domain_of(member); });
  links.domains = links.size / links.ranks_per_domain;
  return links;
}

Seconds Fabrics::latency_between(std::span<const std::int32_t> members) const {
  std::vector<bool> has_members(parts_.size());
  for (const std::int32_t member : members) has_members[part_of(member)] = true;
  Seconds longest;
  for (std::size_t a = 0; a < parts_.size(); ++a) {
    for (std::size_t b = a + 1; b < parts_.size(); ++b) {
      if (!has_members[a] || !has_members[b]) continue;
      longest =
          std::max(longest, boundary_.between(*parts_[a].cluster, *parts_[b].cluster).latency);
    }
  }
  return longest;
}

void Fabrics::append_way(std::span<const std::int32_t> members, int ranks_per_domain,
                         const TransferRound& round, const Transfer& transfer,
                         std::vector<LinkUse>& uses) {
  if (parts_.size() == 1) {
    return parts_.front().fabric.append_way(members, ranks_per_domain, round, transfer, uses);
  }
  const std::int32_t from = members[static_cast<std::size_t>(transfer.from)];
  const std::int32_t to = members[static_cast<std::size_t>(transfer.to)];
  const std::size_t at = part_of(from);
  if (part_of(to) != at) return append_between(from, to, round, uses);
  Part& part = parts_[at];
  const Own own = own_of(members, transfer, [&](std::int32_t of) { return part_of(of) == at; });
  const std::size_t first = uses.size();
  part.fabric.append_way(counted_from(part.first_device, own.members), ranks_per_domain, round,
                         own.transfer, uses);
  for (std::size_t use = first; use < uses.size(); ++use) uses[use].link += part.first_link;
}

void Fabrics::append_between(std::int32_t from, std::int32_t to, const TransferRound& round,
                             std::vector<LinkUse>& uses) {
  if (boundary_.bandwidth) {
    uses.push_back({first_boundary_link_ + 2 * from, round.overhead});
    uses.push_back({first_boundary_link_ + 2 * to + 1, round.overhead});
    return;
  }
  const auto append = [&](std::int32_t device, auto way) {
    const Part& part = parts_[part_of(device)];
    const std::size_t first = uses.size();
    (part.fabric.*way)(device - part.first_device, round.overhead, uses);
    for (std::size_t use = first; use < uses.size(); ++use) uses[use].link += part.first_link;
  };
  append(from, &Fabric::append_leaving);
  append(to, &Fabric::append_arriving);
}

bool Fabrics::append_alike(std::span<const std::int32_t> members, std::span<const LinkUse> known,
                           std::span<const std::int32_t> other, std::vector<LinkUse>& uses) {
  // Several groups list all links, where Fabric::append_alike needs the routes.
  return parts_.size() == 1 && parts_.front().fabric.append_alike(members, known, other, uses);
}

}  // namespace trainyard

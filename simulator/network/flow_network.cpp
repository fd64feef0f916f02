#include "simulator/network/flow_network.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace trainyard {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();
// Rates that differ by less are equal; their sums were taken in another order.
constexpr double kSameRate = 1e-12;

}  // namespace

FlowNetwork::FlowNetwork(std::span<const BytesPerSecond> capacities, Events& events)
    : events_(events) {
  for (const BytesPerSecond capacity : capacities) {
    links_.push_back({.capacity = capacity.value() / kPicosecondsPerSecond});
  }
}

FlowNetwork::PathId FlowNetwork::add_path(std::span<const LinkUse> uses) {
  std::vector<LinkUse> sorted(uses.begin(), uses.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const LinkUse& a, const LinkUse& b) { return a.link < b.link; });
  Path path{.first_use = static_cast<std::uint32_t>(uses_.size()), .alone = kUnlimited};
  for (const LinkUse& use : sorted) {
    const auto link = static_cast<std::uint32_t>(use.link);
    const bool again = uses_.size() > path.first_use && uses_.back().link == link;
    if (again) {
      uses_.back().share += use.share;
    } else {
      uses_.push_back({.link = link, .share = use.share});
    }
  }
  path.uses = static_cast<std::uint32_t>(uses_.size()) - path.first_use;
  for (const Use& use : this->uses(path)) {
    path.alone = std::min(path.alone, links_[use.link].capacity / use.share);
  }
  paths_.push_back(std::move(path));
  return static_cast<PathId>(paths_.size()) - 1;
}

void FlowNetwork::start(PathId id, Bytes bytes, std::uint32_t token) {
  Path& path = paths_[id];
  if (path.targets.empty()) {
    path.progress = 0;
    path.rate = 0;
    path.updated = events_.now();
    join_links(id);
  } else {
    advance(path);
  }
  path.bytes += bytes.value();
  path.targets.push_back({path.progress + bytes.value(), token});
  std::push_heap(path.targets.begin(), path.targets.end(), std::greater<>());
  mark(id);
}

void FlowNetwork::finish(Event event, std::vector<std::uint32_t>& tokens) {
  Path& path = paths_[event.index()];
  if (!event.is_version(path.version)) return;
  path.progress = path.targets.front().progress;
  path.updated = events_.now();
  ++path.version;
  while (!path.targets.empty() && path.targets.front().progress <= path.progress) {
    tokens.push_back(path.targets.front().token);
    std::pop_heap(path.targets.begin(), path.targets.end(), std::greater<>());
    path.targets.pop_back();
  }
  if (path.targets.empty()) {
    leave_links(path);
  } else {
    mark(event.index());
  }
}

void FlowNetwork::join_links(PathId id) {
  Path& path = paths_[id];
  for (std::uint32_t i = path.first_use; i < path.first_use + path.uses; ++i) {
    std::vector<OnLink>& there = links_[uses_[i].link].paths;
    uses_[i].place = static_cast<std::uint32_t>(there.size());
    there.push_back({id, i});
  }
}

void FlowNetwork::leave_links(Path& path) {
  for (const Use& use : uses(path)) {
    std::vector<OnLink>& there = links_[use.link].paths;
    there[use.place] = there.back();
    uses_[there[use.place].use].place = use.place;
    there.pop_back();
    if (!there.empty()) freed_links_.push_back(use.link);
  }
}

void FlowNetwork::mark(PathId id) {
  if (paths_[id].changed) return;
  paths_[id].changed = true;
  changed_.push_back(id);
}

void FlowNetwork::settle() {
  if (changed_.empty() && freed_links_.empty()) return;
  ++visit_;
  for (const PathId id : changed_) {
    Path& path = paths_[id];
    if (path.targets.empty() || path.visit == visit_) continue;
    if (has_links_to_itself(path)) {
      set_rate(id, path.alone / flows(path));
    } else {
      gather(id);
      share_out();
    }
  }
  for (const std::uint32_t link : freed_links_) {
    if (links_[link].paths.empty()) continue;
    const PathId id = links_[link].paths.front().path;
    if (paths_[id].visit == visit_) continue;
    gather(id);
    share_out();
  }
  for (const PathId id : changed_) paths_[id].changed = false;
  changed_.clear();
  freed_links_.clear();
}

bool FlowNetwork::has_links_to_itself(Path& path) {
  const auto own = uses(path);
  return std::all_of(own.begin(), own.end(),
                     [&](const Use& use) { return links_[use.link].paths.size() == 1; });
}

// Collects all paths that a change of `seed` can reach, and the links that join them.
void FlowNetwork::gather(PathId seed) {
  reached_paths_.assign(1, seed);
  reached_links_.clear();
  paths_[seed].visit = visit_;
  for (std::size_t i = 0; i < reached_paths_.size(); ++i) {
    for (const Use& use : uses(paths_[reached_paths_[i]])) {
      Link& link = links_[use.link];
      if (link.visit == visit_ || link.paths.size() < 2) continue;
      link.visit = visit_;
      reached_links_.push_back(use.link);
      for (const OnLink& other : link.paths) {
        if (paths_[other.path].visit == visit_) continue;
        paths_[other.path].visit = visit_;
        reached_paths_.push_back(other.path);
      }
    }
  }
}

// Progressive filling: all rates rise together; when a link is full, its paths keep their rate.
void FlowNetwork::share_out() {
  open_levels();
  const auto links = static_cast<std::uint32_t>(reached_links_.size());
  while (!levels_.empty()) {
    std::pop_heap(levels_.begin(), levels_.end());
    const Level level = levels_.back();
    levels_.pop_back();
    if (level.index >= links) {
      fix(reached_paths_[level.index - links], level.rate);
      continue;
    }
    Link& link = links_[reached_links_[level.index]];
    if (link.open == 0) continue;
    const double now = std::max(link.left, 0.0) / link.weight;
    if (now > level.rate * (1 + kSameRate)) {  // paths fixed since leave more: the link fills later
      levels_.push_back({now, level.index});
      std::push_heap(levels_.begin(), levels_.end());
      continue;
    }
    for (const OnLink& on : link.paths) fix(on.path, level.rate);
  }
}

// Computes the rate at which each reached link is full, and the rate that each path would have with
// its links to itself.
void FlowNetwork::open_levels() {
  levels_.clear();
  for (const std::uint32_t index : reached_links_) {
    Link& link = links_[index];
    link.left = link.capacity;
    link.weight = 0;
    link.open = static_cast<std::uint32_t>(link.paths.size());
    for (const OnLink& on : link.paths) {
      link.weight += uses_[on.use].share * flows(paths_[on.path]);
    }
    levels_.push_back({link.left / link.weight, static_cast<std::uint32_t>(levels_.size())});
  }
  for (const PathId id : reached_paths_) {
    Path& path = paths_[id];
    path.open = true;
    levels_.push_back({path.alone / flows(path), static_cast<std::uint32_t>(levels_.size())});
  }
  std::make_heap(levels_.begin(), levels_.end());
}

void FlowNetwork::fix(PathId id, double rate) {
  Path& path = paths_[id];
  if (!path.open) return;
  path.open = false;
  for (const Use& use : uses(path)) {
    Link& link = links_[use.link];
    if (link.visit != visit_) continue;
    link.left -= rate * use.share * flows(path);
    link.weight -= use.share * flows(path);
    --link.open;
  }
  set_rate(id, rate);
}

void FlowNetwork::set_rate(PathId id, double rate) {
  Path& path = paths_[id];
  if (!path.changed && std::abs(rate - path.rate) <= kSameRate * rate) return;
  advance(path);
  path.rate = rate;
  const double left = std::max(0.0, path.targets.front().progress - path.progress);
  const Picoseconds takes = rate == kUnlimited ? Picoseconds(0) : rounded_picoseconds(left / rate);
  events_.push_after(takes, Event(EventKind::transfer_ends, id, ++path.version));
}

void FlowNetwork::advance(Path& path) {
  const Picoseconds passed = events_.now() - path.updated;
  if (passed.count() > 0) path.progress += path.rate * static_cast<double>(passed.count());
  path.updated = events_.now();
}

std::vector<Bytes> FlowNetwork::carried() const {
  std::vector<Bytes> carried(links_.size());
  for (const Path& path : paths_) {
    for (std::uint32_t use = path.first_use; use < path.first_use + path.uses; ++use) {
      carried[uses_[use].link] += Bytes(path.bytes * uses_[use].share);
    }
  }
  return carried;
}

BytesPerSecond FlowNetwork::rate(PathId path) const {
  return BytesPerSecond(paths_[path].rate * kPicosecondsPerSecond);
}

}  // namespace trainyard

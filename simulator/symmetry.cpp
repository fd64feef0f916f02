#include "simulator/symmetry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "simulator/random.h"

namespace trainyard {
namespace {

// Shares are sums of a few fractions: equal ones may differ in their last bits.
std::int64_t rounded(double share) { return std::llround(share * 0x1p30); }

// What a phase puts on a link for each byte of its flow, all copies together.
struct Load {
  std::int32_t phase = 0;
  double share = 0;
};

// One phase of one call; those of calls that differ in their bytes only are one pattern.
struct Pattern {
  std::vector<LinkUse> links;  // of the first copy, each once, by link
  std::vector<std::vector<LinkUse>> copies;
};

std::vector<LinkUse> added_up(std::vector<LinkUse> uses) {
  std::sort(uses.begin(), uses.end(),
            [](const LinkUse& a, const LinkUse& b) { return a.link < b.link; });
  std::vector<LinkUse> sums;
  for (const LinkUse& use : uses) {
    if (sums.empty() || sums.back().link != use.link) {
      sums.push_back(use);
    } else {
      sums.back().share += use.share;
    }
  }
  return sums;
}

bool same_links(const std::vector<LinkUse>& a, const std::vector<LinkUse>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const LinkUse& x, const LinkUse& y) {
    return x.link == y.link && rounded(x.share) == rounded(y.share);
  });
}

class Folding {
 public:
  Folding(const TaskGraph& graph, Fabric& fabric) : graph_(graph), fabric_(fabric) {}

  Expected<FoldedLinks> fold() {
    for (const auto& [group, call] : calls_in_use(graph_)) {
      if (auto added = add(group, call); !added) return tl::unexpected(added.error());
    }
    classify();
    for (const auto& [group, patterns] : of_group_) {
      for (const std::int32_t pattern : patterns) {
        if (auto checked = check(group, pattern); !checked) return tl::unexpected(checked.error());
      }
    }
    for (auto& [key, phases] : phases_) {
      for (std::size_t i = 0; i < phases.size(); ++i) phases[i].links = path(patterns_of_[key][i]);
    }
    return FoldedLinks{std::move(capacities_), std::move(class_), std::move(phases_)};
  }

 private:
  using Key = std::pair<std::int32_t, std::int32_t>;

  Expected<void> add(std::int32_t group, std::int32_t index) {
    const Call& call = graph_.calls[static_cast<std::size_t>(index)];
    const std::vector<TaskGroup>& copies = graph_.copies[static_cast<std::size_t>(group)];
    std::vector<CallPhase> phases = phases_of(fabric_, copies.front(), call);
    for (const CallPhase& phase : phases) {
      const std::vector<LinkUse> links = added_up(phase.links);
      const std::int32_t known = find(group, links);
      if (known < 0) {
        if (auto added = add_pattern(group, call, phases.size(), &phase - phases.data()); !added) {
          return added;
        }
      }
      patterns_of_[{group, index}].push_back(
          known < 0 ? static_cast<std::int32_t>(patterns_.size()) - 1 : known);
    }
    phases_.emplace(Key{group, index}, std::move(phases));
    return {};
  }

  std::int32_t find(std::int32_t group, const std::vector<LinkUse>& links) const {
    const auto patterns = of_group_.find(group);
    if (patterns == of_group_.end()) return -1;
    for (const std::int32_t pattern : patterns->second) {
      if (same_links(patterns_[static_cast<std::size_t>(pattern)].links, links)) return pattern;
    }
    return -1;
  }

  Expected<void> add_pattern(std::int32_t group, const Call& call, std::size_t phases,
                             std::ptrdiff_t at) {
    Pattern pattern;
    const auto id = static_cast<std::int32_t>(patterns_.size());
    for (const TaskGroup& copy : graph_.copies[static_cast<std::size_t>(group)]) {
      const std::vector<CallPhase> own = phases_of(fabric_, copy, call);
      if (own.size() != phases) return unlike(group, copy);
      pattern.copies.push_back(added_up(own[static_cast<std::size_t>(at)].links));
      for (const LinkUse& use : pattern.copies.back()) {
        std::vector<Load>& loads = loads_[use.link];
        if (loads.empty() || loads.back().phase != id) loads.push_back({id, 0});
        loads.back().share += use.share;
      }
    }
    pattern.links = pattern.copies.front();
    patterns_.push_back(std::move(pattern));
    of_group_[group].push_back(id);
    return {};
  }

  // Links of one capacity and one load of every phase.
  void classify() {
    std::map<std::vector<std::int64_t>, std::int32_t> known;
    std::vector<std::int64_t> signature;
    class_.assign(fabric_.capacities().size(), -1);
    for (const auto& [link, loads] : loads_) {
      const BytesPerSecond capacity = fabric_.capacities()[static_cast<std::size_t>(link)];
      signature = {std::llround(capacity.value())};
      for (const Load& load : loads) {
        signature.insert(signature.end(), {load.phase, rounded(load.share)});
      }
      const auto [found, is_new] =
          known.try_emplace(signature, static_cast<std::int32_t>(capacities_.size()));
      if (is_new) {
        capacities_.push_back(capacity);
        loads_of_class_.push_back(loads);
      }
      class_[static_cast<std::size_t>(link)] = found->second;
    }
  }

  // A number that copies share when they use as many links of each class.
  std::uint64_t fingerprint(const std::vector<LinkUse>& uses) const {
    std::uint64_t sum = 0;
    for (const LinkUse& use : uses) {
      const auto of = static_cast<std::uint64_t>(class_[static_cast<std::size_t>(use.link)]);
      sum += mixed(mixed(of + 1) + static_cast<std::uint64_t>(rounded(use.share)));
    }
    return sum;
  }

  Expected<void> check(std::int32_t group, std::int32_t pattern) const {
    const Pattern& of = patterns_[static_cast<std::size_t>(pattern)];
    const std::uint64_t first = fingerprint(of.links);
    for (std::size_t i = 1; i < of.copies.size(); ++i) {
      if (fingerprint(of.copies[i]) == first) continue;
      return unlike(group, graph_.copies[static_cast<std::size_t>(group)][i]);
    }
    return {};
  }

  Expected<void> unlike(std::int32_t group, const TaskGroup& copy) const {
    const TaskGroup& first = graph_.copies[static_cast<std::size_t>(group)].front();
    return failure("fold", fmt::format("the groups of rank {} and of rank {} have unlike links",
                                       first.front(), copy.front()));
  }

  // The classes that the first copy uses, each with the load of all copies.
  std::vector<LinkUse> path(std::int32_t pattern) const {
    std::set<std::int32_t> classes;
    for (const LinkUse& use : patterns_[static_cast<std::size_t>(pattern)].links) {
      classes.insert(class_[static_cast<std::size_t>(use.link)]);
    }
    std::vector<LinkUse> uses;
    for (const std::int32_t link : classes) {
      for (const Load& load : loads_of_class_[static_cast<std::size_t>(link)]) {
        if (load.phase == pattern) uses.push_back({link, load.share});
      }
    }
    return uses;
  }

  const TaskGraph& graph_;
  Fabric& fabric_;
  std::vector<Pattern> patterns_;
  std::map<std::int32_t, std::vector<std::int32_t>> of_group_;  // patterns
  std::map<Key, std::vector<std::int32_t>> patterns_of_;
  std::map<Key, std::vector<CallPhase>> phases_;
  std::map<std::int32_t, std::vector<Load>> loads_;  // by link
  std::vector<std::int32_t> class_;                  // of each link
  std::vector<BytesPerSecond> capacities_;
  std::vector<std::vector<Load>> loads_of_class_;
};

}  // namespace

std::vector<std::pair<std::int32_t, std::int32_t>> calls_in_use(const TaskGraph& graph) {
  std::vector<std::set<std::pair<std::int32_t, std::int32_t>>> of_list;  // channel and call
  for (const TaskList& list : graph.lists) {
    of_list.emplace_back();
    for (const Task& task : list.tasks) {
      if (task.call >= 0) of_list.back().insert({task.channel, task.call});
    }
  }
  std::set<std::pair<std::int32_t, std::int32_t>> used;
  for (const TaskRank& rank : graph.ranks) {
    for (const auto& [channel, call] : of_list[static_cast<std::size_t>(rank.list)]) {
      used.insert({rank.groups[static_cast<std::size_t>(channel)], call});
    }
  }
  return {used.begin(), used.end()};
}

Expected<FoldedLinks> fold_links(const TaskGraph& graph, Fabric& fabric) {
  return Folding(graph, fabric).fold();
}

}  // namespace trainyard

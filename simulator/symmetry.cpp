#include "simulator/symmetry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>
#include <set>
#include <span>
#include <tuple>

#include "simulator/random.h"

namespace trainyard {
namespace {

constexpr std::int32_t kNone = -1;

// Shares are sums of a few fractions: equal ones may differ in their last bits.
std::int64_t rounded(double share) { return std::llround(share * 0x1p30); }

bool same_links(std::span<const LinkUse> a, std::span<const LinkUse> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const LinkUse& x, const LinkUse& y) {
    return x.link == y.link && rounded(x.share) == rounded(y.share);
  });
}

// Shares added up by link.
class LinkSums {
 public:
  explicit LinkSums(std::size_t links) : place_(links, kNone) {}

  void add(std::span<const LinkUse> uses) {
    for (const LinkUse& use : uses) {
      std::int32_t& place = place_[static_cast<std::size_t>(use.link)];
      if (place == kNone) {
        place = static_cast<std::int32_t>(sums_.size());
        sums_.push_back({use.link, 0});
      }
      sums_[static_cast<std::size_t>(place)].share += use.share;
    }
  }
  // In the order in which they came.
  std::span<const LinkUse> sums() const { return sums_; }
  void clear() {
    for (const LinkUse& use : sums_) place_[static_cast<std::size_t>(use.link)] = kNone;
    sums_.clear();
  }

 private:
  std::vector<std::int32_t> place_;  // by link, in sums_
  std::vector<LinkUse> sums_;
};

// Links of one capacity on which every pattern so far puts as much. All are parted by capacity
// first; a pattern then parts those that it uses from those that it does not, and by how much.
class LinkClasses {
 public:
  explicit LinkClasses(std::span<const BytesPerSecond> capacities) {
    std::map<std::int64_t, std::int32_t> known;
    of_.reserve(capacities.size());
    for (const BytesPerSecond capacity : capacities) {
      const auto next = static_cast<std::int32_t>(all_.size());
      const auto [found, is_new] = known.try_emplace(std::llround(capacity.value()), next);
      if (is_new) all_.push_back({});
      of_.push_back(found->second);
    }
  }

  void part(std::int32_t pattern, std::span<const LinkUse> loads) {
    using Key = std::pair<std::int32_t, std::int64_t>;  // class and load
    std::map<Key, std::int32_t> parts;
    auto last = parts.end();  // mostly the next one's too
    for (const LinkUse& load : loads) {
      std::int32_t& of = of_[static_cast<std::size_t>(load.link)];
      const Key key(of, rounded(load.share));
      if (last == parts.end() || last->first != key) {
        const auto next = static_cast<std::int32_t>(all_.size());
        bool is_new = false;
        std::tie(last, is_new) = parts.try_emplace(key, next);
        if (is_new) all_.push_back({of, pattern, load.share});
      }
      of = last->second;
    }
  }

  std::size_t size() const { return all_.size(); }
  std::int32_t of(std::int32_t link) const { return of_[static_cast<std::size_t>(link)]; }
  bool is_used(std::int32_t of) const { return at(of).parent != kNone; }
  // Of a class that the pattern uses.
  double load(std::int32_t of, std::int32_t pattern) const {
    while (at(of).pattern != pattern) of = at(of).parent;
    return at(of).share;
  }

 private:
  struct Class {
    std::int32_t parent = kNone;  // what it was before the pattern parted it; kNone: no pattern has
    std::int32_t pattern = kNone;
    double share = 0;
  };
  const Class& at(std::int32_t of) const { return all_[static_cast<std::size_t>(of)]; }

  std::vector<std::int32_t> of_;  // by link
  std::vector<Class> all_;
};

// One phase of one call; those of calls that differ in their bytes only are one pattern. What it
// puts on a link for each byte of its flow.
struct Pattern {
  std::vector<LinkUse> links;  // of the first copy, each once, by link
  std::vector<LinkUse> all;    // of all copies, one after the other, each link once a copy
  std::vector<std::size_t> ends;
  std::size_t call = 0, phase = 0;  // that it was found in first
};

class Folding {
 public:
  Folding(const TaskGraph& graph, Fabric& fabric)
      : graph_(graph),
        fabric_(fabric),
        of_copy_(fabric.capacities().size()),
        of_all_(fabric.capacities().size()),
        classes_(fabric.capacities()) {}

  Expected<FoldedLinks> fold() {
    for (const auto& [group, call] : calls_in_use(graph_)) {
      if (auto added = add(group, call); !added) return tl::unexpected(added.error());
    }
    for (const auto& [group, patterns] : of_group_) {
      for (const std::int32_t pattern : patterns) {
        if (auto checked = check(group, pattern); !checked) return tl::unexpected(checked.error());
      }
    }
    number_classes();
    for (auto& [key, phases] : out_.phases) {
      for (std::size_t i = 0; i < phases.size(); ++i) phases[i].links = path(patterns_of_[key][i]);
    }
    return std::move(out_);
  }

 private:
  using Key = std::pair<std::int32_t, std::int32_t>;

  std::span<const TaskGroup> copies_of(std::int32_t group) const {
    return graph_.copies[static_cast<std::size_t>(group)];
  }

  Expected<void> add(std::int32_t group, std::int32_t index) {
    const Call& call = graph_.calls[static_cast<std::size_t>(index)];
    const TaskGroup& first = copies_of(group).front();
    const PhasedCall& phased = calls_.emplace_back(fabric_.links_of(first), call);
    std::vector<CallPhase>& phases = out_.phases[{group, index}];
    for (std::size_t phase = 0; phase < phased.size(); ++phase) {
      phases.push_back({phased.latency(phase), phased.bytes(phase), {}});
      std::int32_t pattern = find(group, [&](const Pattern& known) {
        return phased.moves_alike(phase, calls_[known.call], known.phase);
      });
      if (pattern == kNone) {
        auto found = find_or_add(group, call, phase);
        if (!found) return tl::unexpected(found.error());
        pattern = *found;
      }
      patterns_of_[{group, index}].push_back(pattern);
    }
    return {};
  }

  template <typename Is>
  std::int32_t find(std::int32_t group, Is is) {
    for (const std::int32_t pattern : of_group_[group]) {
      if (is(patterns_[static_cast<std::size_t>(pattern)])) return pattern;
    }
    return kNone;
  }

  // By the links of a phase of the last call.
  Expected<std::int32_t> find_or_add(std::int32_t group, const Call& call, std::size_t phase) {
    const std::span<const LinkUse> sums = links_of(calls_.back(), phase, copies_of(group).front());
    std::vector<LinkUse> links(sums.begin(), sums.end());
    std::ranges::sort(links, {}, &LinkUse::link);
    const std::int32_t known =
        find(group, [&](const Pattern& pattern) { return same_links(pattern.links, links); });
    if (known != kNone) return known;
    const auto added = static_cast<std::int32_t>(patterns_.size());
    patterns_.push_back({.links = std::move(links),
                         .all = {},
                         .ends = {},
                         .call = calls_.size() - 1,
                         .phase = phase});
    of_group_[group].push_back(added);
    if (auto copied = add_copies(group, call, calls_.back(), phase); !copied) {
      return tl::unexpected(copied.error());
    }
    return added;
  }

  // Of one copy, each link once. Good until it is asked again.
  std::span<const LinkUse> links_of(const PhasedCall& phased, std::size_t phase,
                                    const TaskGroup& copy) {
    uses_.clear();
    phased.append_links(phase, fabric_, copy, uses_);
    of_copy_.clear();
    of_copy_.add(uses_);
    return of_copy_.sums();
  }

  // To the last pattern.
  Expected<void> add_copies(std::int32_t group, const Call& call, const PhasedCall& of_first,
                            std::size_t phase) {
    Pattern& pattern = patterns_.back();
    const std::span<const TaskGroup> copies = copies_of(group);
    pattern.all.reserve(copies.size() * pattern.links.size());
    pattern.ends.reserve(copies.size());
    for (const TaskGroup& copy : copies) {
      const GroupLinks links = fabric_.links_of(copy);
      const bool alike = links.size == of_first.links().size &&
                         links.ranks_per_domain == of_first.links().ranks_per_domain;
      std::optional<PhasedCall> own;
      if (!alike) own.emplace(links, call);
      const PhasedCall& phased = own ? *own : of_first;
      if (phased.size() != of_first.size()) return unlike(group, copy);
      const std::span<const LinkUse> sums = links_of(phased, phase, copy);
      pattern.all.insert(pattern.all.end(), sums.begin(), sums.end());
      pattern.ends.push_back(pattern.all.size());
    }
    of_all_.clear();
    of_all_.add(pattern.all);
    classes_.part(static_cast<std::int32_t>(patterns_.size()) - 1, of_all_.sums());
    return {};
  }

  // A number that copies share when they use as many links of each class.
  std::uint64_t fingerprint(std::span<const LinkUse> uses) const {
    std::uint64_t sum = 0;
    for (const LinkUse& use : uses) {
      const auto of = static_cast<std::uint64_t>(classes_.of(use.link));
      sum += mixed(mixed(of + 1) + static_cast<std::uint64_t>(rounded(use.share)));
    }
    return sum;
  }

  Expected<void> check(std::int32_t group, std::int32_t pattern) const {
    const Pattern& of = patterns_[static_cast<std::size_t>(pattern)];
    const std::uint64_t first = fingerprint(of.links);
    for (std::size_t i = 1; i < of.ends.size(); ++i) {
      const auto uses = std::span(of.all).subspan(of.ends[i - 1], of.ends[i] - of.ends[i - 1]);
      if (fingerprint(uses) != first) return unlike(group, copies_of(group)[i]);
    }
    return {};
  }

  Expected<void> unlike(std::int32_t group, const TaskGroup& copy) const {
    return failure("fold", fmt::format("the groups of rank {} and of rank {} have unlike links",
                                       copies_of(group).front().front(), copy.front()));
  }

  // Those that carry anything, in the order of their first links.
  void number_classes() {
    number_.assign(classes_.size(), kNone);
    for (const BytesPerSecond capacity : fabric_.capacities()) {
      const std::int32_t of = classes_.of(static_cast<std::int32_t>(out_.class_of.size()));
      std::int32_t& number = number_[static_cast<std::size_t>(of)];
      if (number == kNone && classes_.is_used(of)) {
        number = static_cast<std::int32_t>(out_.capacities.size());
        out_.capacities.push_back(capacity);
      }
      out_.class_of.push_back(number);
    }
  }

  // The classes that the first copy uses, each with the load of all copies.
  std::vector<LinkUse> path(std::int32_t pattern) const {
    std::set<std::int32_t> classes;
    for (const LinkUse& use : patterns_[static_cast<std::size_t>(pattern)].links) {
      classes.insert(classes_.of(use.link));
    }
    std::vector<LinkUse> uses;
    uses.reserve(classes.size());
    for (const std::int32_t of : classes) {
      uses.push_back({number_[static_cast<std::size_t>(of)], classes_.load(of, pattern)});
    }
    return uses;
  }

  const TaskGraph& graph_;
  Fabric& fabric_;
  std::deque<PhasedCall> calls_;
  std::vector<Pattern> patterns_;
  std::map<std::int32_t, std::vector<std::int32_t>> of_group_;  // patterns
  std::map<Key, std::vector<std::int32_t>> patterns_of_;
  std::vector<LinkUse> uses_;
  LinkSums of_copy_, of_all_;
  LinkClasses classes_;
  std::vector<std::int32_t> number_;  // of each class
  FoldedLinks out_;
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

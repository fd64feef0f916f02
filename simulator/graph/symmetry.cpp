#include "simulator/graph/symmetry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <tuple>

#include "model/hash.h"

namespace trainyard {
namespace {

constexpr std::int32_t kNothing = -1;

// Rounded, because shares that should be equal are sums that may differ in their last bits.
std::int64_t rounded(double share) { return std::llround(share * 0x1p30); }
bool same_share(double a, double b) { return a == b || rounded(a) == rounded(b); }

// Shares added up by link.
class LinkSums {
 public:
  explicit LinkSums(std::size_t links) : place_(links, kNothing) {}

  void add(std::span<const LinkUse> uses) {
    for (const LinkUse& use : uses) {
      std::int32_t& place = place_[static_cast<std::size_t>(use.link)];
      if (place == kNothing) {
        place = static_cast<std::int32_t>(sums_.size());
        sums_.push_back(use);
      } else {
        sums_[static_cast<std::size_t>(place)].share += use.share;
      }
    }
  }
  // The sums, in the order in which their links first occurred.
  std::span<const LinkUse> sums() const { return sums_; }
  bool has(const LinkUse& use) const {
    const std::int32_t place = place_[static_cast<std::size_t>(use.link)];
    return place != kNothing && same_share(sums_[static_cast<std::size_t>(place)].share, use.share);
  }
  void clear() {
    for (const LinkUse& use : sums_) place_[static_cast<std::size_t>(use.link)] = kNothing;
    sums_.clear();
  }

 private:
  std::vector<std::int32_t> place_;  // by link, in sums_
  std::vector<LinkUse> sums_;
};

// Classes of links with the same capacity and the same load of every pattern so far. At first,
// links are split by capacity; each pattern then splits those that it uses by load, and from those
// that it does not use.
class LinkClasses {
 public:
  explicit LinkClasses(std::span<const BytesPerSecond> capacities) {
    std::map<std::int64_t, std::int32_t> known;
    BytesPerSecond last(-1);  // capacity of the link before, usually the same
    of_.reserve(capacities.size());
    for (const BytesPerSecond capacity : capacities) {
      if (capacity == last) {
        of_.push_back(of_.back());
        continue;
      }
      last = capacity;
      const auto next = static_cast<std::int32_t>(all_.size());
      const auto [found, is_new] = known.try_emplace(std::llround(capacity.value()), next);
      if (is_new) all_.push_back({});
      of_.push_back(found->second);
    }
  }

  void part(std::int32_t pattern, std::span<const LinkUse> loads) {
    std::map<std::pair<std::int32_t, std::int64_t>, std::int32_t> parts;
    // For each class the last load and its part, usually also the next one's.
    std::vector<Part> last(all_.size());
    for (const LinkUse& load : loads) {
      std::int32_t& of = of_[static_cast<std::size_t>(load.link)];
      Part& part = last[static_cast<std::size_t>(of)];
      if (part.of == kNothing || part.share != load.share) {
        const auto next = static_cast<std::int32_t>(all_.size());
        const auto [found, is_new] = parts.try_emplace({of, rounded(load.share)}, next);
        if (is_new) all_.push_back({of, pattern, load.share});
        part = {found->second, load.share};
      }
      of = part.of;
    }
  }

  std::size_t size() const { return all_.size(); }
  std::int32_t of(std::int32_t link) const { return of_[static_cast<std::size_t>(link)]; }
  bool is_used(std::int32_t of) const { return at(of).parent != kNothing; }
  // The load of a pattern on the links of a class. Requires: the pattern uses the class.
  double load(std::int32_t of, std::int32_t pattern) const {
    while (at(of).pattern != pattern) of = at(of).parent;
    return at(of).share;
  }

 private:
  struct Class {
    // The class before the pattern split it; kNothing: no pattern has.
    std::int32_t parent = kNothing;
    std::int32_t pattern = kNothing;
    double share = 0;
  };
  struct Part {
    std::int32_t of = kNothing;
    double share = 0;
  };
  const Class& at(std::int32_t of) const { return all_[static_cast<std::size_t>(of)]; }

  std::vector<std::int32_t> of_;  // by link
  std::vector<Class> all_;
};

// A call on groups with the same links, and the *kind* of each of its phases. Phases that move
// alike, whatever their calls, are of one kind.
struct KnownCall {
  KnownCall(const GroupLinks& links, const Call& call) : phased(links, call) {}
  PhasedCall phased;
  std::vector<std::int32_t> kinds;
};

class KnownCalls {
 public:
  explicit KnownCalls(const std::vector<Call>& calls) : calls_(calls) {}

  // Valid as long as this object. Requires: as PhasedCall.
  const KnownCall& of(const GroupLinks& links, std::int32_t call) {
    const auto [found, is_new] = known_.try_emplace({call, links.size, links.ranks_per_domain},
                                                    links, calls_[static_cast<std::size_t>(call)]);
    KnownCall& known = found->second;
    if (!is_new) return known;
    for (std::size_t phase = 0; phase < known.phased.size(); ++phase) {
      known.kinds.push_back(kind_of(known.phased, phase));
    }
    return known;
  }

 private:
  std::int32_t kind_of(const PhasedCall& call, std::size_t phase) {
    const auto found = std::ranges::find_if(firsts_, [&](const auto& first) {
      return call.moves_alike(phase, *first.first, first.second);
    });
    const auto kind = static_cast<std::int32_t>(found - firsts_.begin());
    if (found == firsts_.end()) firsts_.emplace_back(&call, phase);
    return kind;
  }

  const std::vector<Call>& calls_;
  std::map<std::tuple<std::int32_t, int, int>, KnownCall>
      known_;  // by call, size, members together
  std::vector<std::pair<const PhasedCall*, std::size_t>> firsts_;  // first phase of each kind
};

// What phases of a group's calls put on links for each byte of their flow. Phases of one kind, or
// with the same links, have one pattern.
struct Pattern {
  std::int32_t group = 0;
  std::int32_t call = 0;      // the first with this pattern
  std::vector<LinkUse> uses;  // copy after copy, each link once for a copy
  std::vector<std::size_t> ends;
  std::vector<LinkUse> path = {};  // classes that a copy uses, with the load of all copies

  std::span<const LinkUse> of_copy(std::size_t copy) const { return run_at(copy, uses, ends); }
};

class Folding {
 public:
  Folding(const TaskGraph& graph, Fabrics& fabric)
      : graph_(graph),
        fabric_(fabric),
        known_(graph.calls),
        of_copy_(fabric.capacities().size()),
        of_all_(fabric.capacities().size()),
        classes_(fabric.capacities()) {}

  Expected<FoldedLinks> fold() {
    for (const auto& [group, call] : calls_in_use(graph_)) {
      if (auto added = add(group, call); !added) return tl::unexpected(added.error());
    }
    prints_.resize(classes_.size());
    for (const Pattern& pattern : patterns_) {
      if (auto checked = check(pattern); !checked) return tl::unexpected(checked.error());
    }
    number_classes();
    set_paths();
    for (auto& [key, phases] : out_.phases) {
      const std::vector<std::int32_t>& patterns = patterns_of_[key];
      for (std::size_t i = 0; i < phases.size(); ++i) {
        phases[i].links = patterns_[static_cast<std::size_t>(patterns[i])].path;
      }
    }
    return std::move(out_);
  }

 private:
  const GroupCopies& copies_of(std::int32_t group) const {
    return graph_.copies[static_cast<std::size_t>(group)];
  }

  // Requires: calls of one group follow each other.
  Expected<void> add(std::int32_t group, std::int32_t call) {
    if (group != group_) {
      group_ = group;
      first_pattern_ = static_cast<std::int32_t>(patterns_.size());
      of_kind_.clear();
    }
    const KnownCall& of = known_.of(fabric_.links_of(copies_of(group)[0]), call);
    std::vector<CallPhase>& phases = out_.phases[{group, call}];
    std::vector<std::int32_t>& patterns = patterns_of_[{group, call}];
    for (std::size_t phase = 0; phase < of.kinds.size(); ++phase) {
      phases.push_back({of.phased.latency(phase), of.phased.bytes(phase), {}});
      const auto kind = static_cast<std::size_t>(of.kinds[phase]);
      if (kind >= of_kind_.size()) of_kind_.resize(kind + 1, kNothing);
      if (of_kind_[kind] == kNothing) {
        const auto found = find_or_add(call, of.phased, phase);
        if (!found) return tl::unexpected(found.error());
        of_kind_[kind] = *found;
      }
      patterns.push_back(of_kind_[kind]);
    }
    return {};
  }

  // The group's pattern with these links, added if it is new.
  Expected<std::int32_t> find_or_add(std::int32_t call, const PhasedCall& phased,
                                     std::size_t phase) {
    const auto added = static_cast<std::int32_t>(patterns_.size());
    const std::span<const LinkUse> links = links_of(phased, phase, copies_of(group_)[0]);
    for (std::int32_t i = first_pattern_; i < added; ++i) {
      const auto first = patterns_[static_cast<std::size_t>(i)].of_copy(0);
      const auto is_there = [&](const LinkUse& use) { return of_copy_.has(use); };
      if (first.size() == links.size() && std::ranges::all_of(first, is_there)) return i;
    }
    auto pattern = pattern_of(call, phased, phase);
    if (!pattern) return tl::unexpected(pattern.error());
    of_all_.clear();
    of_all_.add(pattern->uses);
    classes_.part(added, of_all_.sums());
    patterns_.push_back(*std::move(pattern));
    return added;
  }

  // The links of one copy, each once. Valid until the next call.
  std::span<const LinkUse> links_of(const PhasedCall& phased, std::size_t phase, GroupView copy) {
    uses_.clear();
    phased.append_links(phase, fabric_, copy, uses_);
    of_copy_.clear();
    of_copy_.add(uses_);
    return of_copy_.sums();
  }

  // The pattern of a phase. Links are routed for the first copy whose first member has a certain
  // place in its domain; a later copy takes over its links if the two are alike, and else is routed
  // itself.
  Expected<Pattern> pattern_of(std::int32_t call, const PhasedCall& of_first, std::size_t phase) {
    const GroupCopies& copies = copies_of(group_);
    struct Followed {
      std::size_t copy = 0;
      std::vector<LinkUse> uses;
    };
    std::map<std::int32_t, Followed> followed;  // by the place of the first member in its domain
    Pattern pattern{.group = group_, .call = call, .uses = {}, .ends = {}};
    for (std::size_t i = 0; i < copies.size(); ++i) {
      Followed& known = followed[fabric_.place_of(copies[i].front())];
      if (known.uses.empty() ||
          !fabric_.append_alike(copies[known.copy], known.uses, copies[i], pattern.uses)) {
        const PhasedCall& phased = known_.of(fabric_.links_of(copies[i]), call).phased;
        if (phased.size() != of_first.size()) return unlike(group_, call, copies[i]);
        const std::span<const LinkUse> own = links_of(phased, phase, copies[i]);
        pattern.uses.insert(pattern.uses.end(), own.begin(), own.end());
        known = {i, {own.begin(), own.end()}};
      }
      if (i == 0) pattern.uses.reserve(copies.size() * pattern.uses.size());
      pattern.ends.push_back(pattern.uses.size());
    }
    return pattern;
  }

  // A hash that is equal for copies that use equally many links of each class.
  std::uint64_t fingerprint(std::span<const LinkUse> uses) {
    std::uint64_t sum = 0;
    for (const LinkUse& use : uses) {
      const std::int32_t of = classes_.of(use.link);
      Print& last = prints_[static_cast<std::size_t>(of)];
      if (use.share != last.share) {
        const auto share = static_cast<std::uint64_t>(rounded(use.share));
        last = {use.share, mixed(mixed(static_cast<std::uint64_t>(of) + 1) + share)};
      }
      sum += last.number;
    }
    return sum;
  }

  Expected<void> check(const Pattern& pattern) {
    const std::uint64_t first = fingerprint(pattern.of_copy(0));
    for (std::size_t i = 1; i < pattern.ends.size(); ++i) {
      if (fingerprint(pattern.of_copy(i)) == first) continue;
      return unlike(pattern.group, pattern.call, copies_of(pattern.group)[i]);
    }
    return {};
  }

  tl::unexpected<Error> unlike(std::int32_t group, std::int32_t call, GroupView copy) const {
    return failure("fold",
                   fmt::format("the groups of rank {} and of rank {} have unlike links for {}",
                               copies_of(group)[0].front(), copy.front(),
                               graph_.calls[static_cast<std::size_t>(call)].algorithm->name));
  }

  // Numbers the classes that carry anything, in the order of their first links.
  void number_classes() {
    number_.assign(classes_.size(), kNothing);
    const std::span<const BytesPerSecond> capacities = fabric_.capacities();
    out_.class_of.reserve(capacities.size());
    for (std::size_t link = 0; link < capacities.size(); ++link) {
      const std::int32_t of = classes_.of(static_cast<std::int32_t>(link));
      std::int32_t& number = number_[static_cast<std::size_t>(of)];
      if (number == kNothing && classes_.is_used(of)) {
        number = static_cast<std::int32_t>(out_.capacities.size());
        out_.capacities.push_back(capacities[link]);
      }
      out_.class_of.push_back(number);
    }
  }

  void set_paths() {
    std::vector<std::int32_t> classes;
    for (std::size_t i = 0; i < patterns_.size(); ++i) {
      classes.clear();
      for (const LinkUse& use : patterns_[i].of_copy(0)) classes.push_back(classes_.of(use.link));
      std::ranges::sort(classes);
      classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
      for (const std::int32_t of : classes) {
        patterns_[i].path.push_back({number_[static_cast<std::size_t>(of)],
                                     classes_.load(of, static_cast<std::int32_t>(i))});
      }
    }
  }

  const TaskGraph& graph_;
  Fabrics& fabric_;
  KnownCalls known_;
  std::vector<Pattern> patterns_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::int32_t>> patterns_of_;
  // State of the group whose calls are being added.
  std::int32_t group_ = kNothing;
  std::int32_t first_pattern_ = 0;
  std::vector<std::int32_t> of_kind_;  // pattern of each kind of phase
  std::vector<LinkUse> uses_;
  LinkSums of_copy_, of_all_;
  LinkClasses classes_;
  struct Print {
    double share = -1;
    std::uint64_t number = 0;
  };
  std::vector<Print> prints_;         // of each class: the last share and its hash
  std::vector<std::int32_t> number_;  // of each class
  FoldedLinks out_;
};

}  // namespace

std::vector<std::pair<std::int32_t, std::int32_t>> calls_in_use(const TaskGraph& graph) {
  std::vector<std::set<std::pair<std::int32_t, std::int32_t>>> of_list;  // channel and call
  for (const TaskList& list : graph.lists) {
    of_list.emplace_back();
    // The last channel of each call, usually also the next one's.
    std::vector<std::int32_t> last(graph.calls.size(), kNothing);
    for (const Task& task : list.tasks) {
      if (task.call < 0 || last[static_cast<std::size_t>(task.call)] == task.channel) continue;
      last[static_cast<std::size_t>(task.call)] = task.channel;
      of_list.back().insert({task.channel, task.call});
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

Expected<FoldedLinks> fold_links(const TaskGraph& graph, Fabrics& fabric) {
  return Folding(graph, fabric).fold();
}

}  // namespace trainyard

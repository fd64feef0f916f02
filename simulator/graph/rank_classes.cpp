#include "simulator/graph/rank_classes.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "model/hash.h"
#include "simulator/engine/phases.h"
#include "simulator/graph/symmetry.h"

namespace trainyard {
namespace {

using Prints = std::vector<std::uint64_t>;  // a hash for each member; equal for alike members

std::uint64_t print_of(std::uint64_t a, std::uint64_t b) { return mixed(mixed(a) + b); }

// Rounded, because shares that should be equal may differ in their last bits.
std::uint64_t print_of_share(double share) {
  return static_cast<std::uint64_t>(std::llround(share * 0x1p30));
}

// Numbers classes in the order in which their hashes first occur.
class Classes {
 public:
  std::int32_t of(std::uint64_t print) {
    return number_.try_emplace(print, static_cast<std::int32_t>(number_.size())).first->second;
  }
  std::size_t size() const { return number_.size(); }

 private:
  std::unordered_map<std::uint64_t, std::int32_t> number_;
};

// What a phase of a group's calls puts on links, for each copy of the group.
struct PhaseUses {
  std::int32_t group = 0;
  std::vector<LinkUse> uses;  // of copy 0, then of copy 1, …
  std::vector<std::size_t> ends;

  std::span<const LinkUse> of_copy(std::size_t copy) const { return run_at(copy, uses, ends); }
};

bool same_uses(std::span<const LinkUse> a, std::span<const LinkUse> b) {
  return std::ranges::equal(a, b, [](const LinkUse& x, const LinkUse& y) {
    return x.link == y.link && print_of_share(x.share) == print_of_share(y.share);
  });
}

class Parting {
 public:
  Parting(Fabrics& fabric, const TaskGraph& graph, const std::vector<std::int32_t>& rank_of)
      : fabric_(fabric), graph_(graph) {
    for (const std::int32_t rank : rank_of) of_rank_.push_back(static_cast<std::uint64_t>(rank));
    for (const BytesPerSecond capacity : fabric.capacities()) {
      of_link_.push_back(static_cast<std::uint64_t>(std::llround(capacity.value())));
    }
    loads_.resize(of_link_.size());
    begin_groups();
    for (const auto& [group, call] : calls_in_use(graph)) add_phases(group, call);
  }

  // Splits until nothing splits. False: there are more than `most` classes of ranks.
  bool part(std::size_t most) {
    for (std::size_t last = 0;;) {
      part_links();
      part_groups();
      part_ranks_by_groups();
      const std::size_t ranks = distinct(of_rank_);
      if (ranks > most) return false;
      std::size_t all = ranks + distinct(of_link_);
      for (const Prints& of_copy : of_group_) all += distinct(of_copy);
      if (all == last) return true;
      last = all;
    }
  }

  // Splits the graph's ranks by class, then its groups.
  void apply(TaskGraph& graph, std::vector<std::int32_t>& rank_of) const {
    Classes classes;
    std::vector<TaskRank> ranks;
    for (std::size_t device = 0; device < of_rank_.size(); ++device) {
      const std::int32_t old = std::exchange(rank_of[device], classes.of(of_rank_[device]));
      if (classes.size() > ranks.size()) {
        ranks.push_back(graph.ranks[static_cast<std::size_t>(old)]);
      }
    }
    std::vector<std::vector<std::int32_t>> of_old;  // new groups by old group
    const std::vector<GroupCopies> old = std::exchange(graph.copies, {});
    graph.groups.clear();
    for (std::size_t group = 0; group < old.size(); ++group) {
      of_old.push_back(add_groups(old[group], of_group_[group], rank_of, graph));
    }
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      for (std::int32_t& group : ranks[rank].groups) {
        group = group_with(static_cast<std::int32_t>(rank), of_old[static_cast<std::size_t>(group)],
                           graph.groups);
      }
    }
    graph.ranks = std::move(ranks);
  }

 private:
  static std::size_t distinct(const Prints& prints) {
    Classes classes;
    for (const std::uint64_t print : prints) classes.of(print);
    return classes.size();
  }

  // Adds a group for each class of copies; returns the new groups.
  static std::vector<std::int32_t> add_groups(const GroupCopies& copies, const Prints& prints,
                                              const std::vector<std::int32_t>& rank_of,
                                              TaskGraph& graph) {
    Classes classes;
    std::vector<std::int32_t> added;
    for (std::size_t copy = 0; copy < copies.size(); ++copy) {
      const auto of = static_cast<std::size_t>(classes.of(prints[copy]));
      if (of == added.size()) {
        added.push_back(static_cast<std::int32_t>(graph.groups.size()));
        graph.groups.push_back(ranks_among(copies[copy], rank_of));
        graph.copies.emplace_back();
      }
      graph.copies[static_cast<std::size_t>(added[of])].add(copies[copy]);
    }
    return added;
  }

  // The group of `among` that has the rank. All ranks of a class are in groups of the same class.
  static std::int32_t group_with(std::int32_t rank, std::span<const std::int32_t> among,
                                 const std::vector<TaskGroup>& groups) {
    return *std::ranges::find_if(among, [&](std::int32_t group) {
      const TaskGroup& members = groups[static_cast<std::size_t>(group)];
      return std::ranges::find(members, rank) != members.end();
    });
  }

  // The ranks of a group's members, each once, in the order of the group.
  static TaskGroup ranks_among(GroupView members, const std::vector<std::int32_t>& rank_of) {
    TaskGroup ranks;
    for (const std::int32_t device : members) {
      const std::int32_t rank = rank_of[static_cast<std::size_t>(device)];
      if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) ranks.push_back(rank);
    }
    return ranks;
  }

  // Groups of different shapes are in different classes from the start, since a call has different
  // phases on them.
  void begin_groups() {
    for (const GroupCopies& copies : graph_.copies) {
      Prints of_copy;
      for (std::size_t copy = 0; copy < copies.size(); ++copy) {
        const GroupLinks links = fabric_.links_of(copies[copy]);
        of_copy.push_back(print_of(static_cast<std::uint64_t>(links.size),
                                   static_cast<std::uint64_t>(links.ranks_per_domain)));
      }
      of_group_.push_back(std::move(of_copy));
    }
  }

  // Adds the phases of a call, except those with the same links as a phase that the group has: they
  // would split nothing further.
  void add_phases(std::int32_t group, std::int32_t call) {
    const GroupCopies& copies = graph_.copies[static_cast<std::size_t>(group)];
    std::vector<PhaseUses> added;
    for (std::size_t copy = 0; copy < copies.size(); ++copy) {
      const PhasedCall& phased = phased_on(copies[copy], call);
      while (added.size() < phased.size()) {
        added.push_back({group, {}, std::vector<std::size_t>(copy)});
      }
      for (std::size_t phase = 0; phase < added.size(); ++phase) {
        if (phase < phased.size()) {
          uses_.clear();
          phased.append_links(phase, fabric_, copies[copy], uses_);
          append_sums(uses_, added[phase].uses);
        }
        added[phase].ends.push_back(added[phase].uses.size());
      }
    }
    for (PhaseUses& phase : added) {
      const bool known = std::ranges::any_of(phases_, [&](const PhaseUses& other) {
        return other.group == group && other.ends == phase.ends &&
               same_uses(other.uses, phase.uses);
      });
      if (!known) phases_.push_back(std::move(phase));
    }
  }

  const PhasedCall& phased_on(GroupView copy, std::int32_t call) {
    const GroupLinks links = fabric_.links_of(copy);
    return known_
        .try_emplace({call, links.size, links.ranks_per_domain}, links,
                     graph_.calls[static_cast<std::size_t>(call)])
        .first->second;
  }

  // Appends the summed shares of each link.
  void append_sums(std::span<const LinkUse> links, std::vector<LinkUse>& uses) {
    touched_.clear();
    for (const LinkUse& use : links) add_load(use);
    for (const std::int32_t link : touched_) {
      uses.push_back({link, std::exchange(loads_[static_cast<std::size_t>(link)], 0)});
    }
  }

  void add_load(const LinkUse& use) {
    double& load = loads_[static_cast<std::size_t>(use.link)];
    if (load == 0) touched_.push_back(use.link);
    load += use.share;
  }

  // Splits links by what each class of groups puts on them in each phase.
  void part_links() {
    Prints parts(of_link_.size());
    std::map<std::uint64_t, std::vector<std::size_t>> by_class;  // copies of each class
    for (std::size_t phase = 0; phase < phases_.size(); ++phase) {
      const Prints& classes = of_group_[static_cast<std::size_t>(phases_[phase].group)];
      by_class.clear();
      for (std::size_t copy = 0; copy < classes.size(); ++copy) {
        by_class[classes[copy]].push_back(copy);
      }
      for (const auto& [print, copies] : by_class) {
        add_parts(phases_[phase], copies, print_of(phase, print), parts);
      }
    }
    for (std::size_t link = 0; link < parts.size(); ++link) {
      of_link_[link] = print_of(of_link_[link], parts[link]);
    }
  }

  // Adds to the hashes of the links that these copies use.
  void add_parts(const PhaseUses& phase, std::span<const std::size_t> copies, std::uint64_t pattern,
                 Prints& parts) {
    touched_.clear();
    for (const std::size_t copy : copies) {
      for (const LinkUse& use : phase.of_copy(copy)) add_load(use);
    }
    for (const std::int32_t link : touched_) {
      const auto at = static_cast<std::size_t>(link);
      parts[at] += print_of(pattern, print_of_share(std::exchange(loads_[at], 0)));
    }
  }

  // Splits groups by the links that they use and the ranks that they join.
  void part_groups() {
    std::vector<Prints> parts;
    for (const Prints& of_copy : of_group_) parts.emplace_back(of_copy.size());
    for (std::size_t phase = 0; phase < phases_.size(); ++phase) {
      const PhaseUses& of = phases_[phase];
      Prints& into = parts[static_cast<std::size_t>(of.group)];
      for (std::size_t copy = 0; copy < into.size(); ++copy) {
        for (const LinkUse& use : of.of_copy(copy)) {
          const std::uint64_t link = of_link_[static_cast<std::size_t>(use.link)];
          into[copy] += print_of(print_of(phase, link), print_of_share(use.share));
        }
      }
    }
    for (std::size_t group = 0; group < parts.size(); ++group) {
      for (std::size_t copy = 0; copy < parts[group].size(); ++copy) {
        std::uint64_t& print = of_group_[group][copy];
        print = print_of(print, parts[group][copy]);
        print = print_of(print, print_of_ranks(graph_.copies[group][copy]));
      }
    }
  }

  // A hash of the classes of a group's members.
  std::uint64_t print_of_ranks(GroupView members) {
    ranks_.clear();
    for (const std::int32_t device : members) {
      ranks_.push_back(of_rank_[static_cast<std::size_t>(device)]);
    }
    std::ranges::sort(ranks_);
    ranks_.erase(std::unique(ranks_.begin(), ranks_.end()), ranks_.end());
    std::uint64_t print = 0;
    for (const std::uint64_t rank : ranks_) print = print_of(print, rank);
    return print;
  }

  void part_ranks_by_groups() {
    Prints parts(of_rank_.size());
    for (std::size_t group = 0; group < of_group_.size(); ++group) {
      for (std::size_t copy = 0; copy < of_group_[group].size(); ++copy) {
        const std::uint64_t print = print_of(group, of_group_[group][copy]);
        for (const std::int32_t device : graph_.copies[group][copy]) {
          parts[static_cast<std::size_t>(device)] += mixed(print);
        }
      }
    }
    for (std::size_t device = 0; device < parts.size(); ++device) {
      of_rank_[device] = print_of(of_rank_[device], parts[device]);
    }
  }

  Fabrics& fabric_;
  const TaskGraph& graph_;
  std::map<std::tuple<std::int32_t, int, int>, PhasedCall> known_;  // by call and shape
  std::vector<PhaseUses> phases_;
  Prints of_rank_;  // of each device
  Prints of_link_;
  std::vector<Prints> of_group_;  // of each copy
  // Scratch space. loads_: of each link, 0 between uses.
  std::vector<double> loads_;
  std::vector<LinkUse> uses_;
  std::vector<std::int32_t> touched_;
  Prints ranks_;
};

}  // namespace

bool part_ranks(Fabrics& fabric, TaskGraph& graph, std::vector<std::int32_t>& rank_of) {
  constexpr std::size_t kWorth = 4;  // least devices a class on average
  Parting parting(fabric, graph, rank_of);
  if (!parting.part(rank_of.size() / kWorth)) return false;
  parting.apply(graph, rank_of);
  return true;
}

}  // namespace trainyard

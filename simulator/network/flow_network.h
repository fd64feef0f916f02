// Flows over links with max–min fair rates: no flow can go faster without slowing a flow on some
// full link that is already no faster (Bertsekas & Gallager 1992, §6.5). If two flows share a link
// of 10 GB/s and one of them also crosses a link of 4 GB/s, they get 4 and 6 GB/s. Fluid: the rate
// of a flow changes only when flows begin or end.
//
// Flows over the same links are one *path* with a count, so a thousand equal flows cost as much as
// one. Only paths that a change can reach, through links that several paths use, are computed
// again, once for all changes of one instant. A path alone on its links takes O(links).
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "model/cluster/routes.h"
#include "model/units.h"
#include "simulator/engine/event.h"

namespace trainyard {

class FlowNetwork {
 public:
  using PathId = std::uint32_t;

  // Requires: positive capacities; `events` outlives the network.
  FlowNetwork(std::span<const BytesPerSecond> capacities, Events& events);

  // Adds a path; the shares of a link that occurs several times are summed. A path without links
  // takes no time.
  PathId add_path(std::span<const LinkUse> uses);

  // A flow begins now; finish() returns its `token` when it ends.
  void start(PathId path, Bytes bytes, std::uint32_t token);
  // Call before the clock moves: computes the rates after all changes of this instant, and when the
  // next flows end.
  void settle();
  // Handles a transfer_ends event: appends the tokens of the flows that end; none if it is
  // outdated.
  void finish(Event event, std::vector<std::uint32_t>& tokens);

  // The bytes of all flows begun so far, by link.
  std::vector<Bytes> carried() const;

  // The rate of each flow of a path, for tests and reports. Requires: settle() since the last
  // change.
  BytesPerSecond rate(PathId path) const;

 private:
  struct Target {
    double progress = 0;  // the path's progress at which the flow is done
    std::uint32_t token = 0;
    auto operator<=>(const Target&) const = default;
  };
  struct Use {
    std::uint32_t link = 0;
    std::uint32_t place = 0;  // in the link's list of paths
    double share = 1;
  };
  struct Path {
    std::uint32_t first_use = 0, uses = 0;
    std::uint32_t version = 0;
    std::uint32_t visit = 0;
    bool changed = false;  // flows began or ended, so the next end is to be computed
    bool open = false;     // while rates are computed: not fixed yet
    double bytes = 0;      // of all its flows
    double alone = 0;      // rate of a single flow with all links to itself, bytes/ps
    double rate = 0;       // of each flow
    double progress = 0;   // bytes that a flow would have moved if it had been there from the start
    Picoseconds updated{0};
    std::vector<Target> targets;  // heap, the next to end in front
  };
  struct OnLink {
    PathId path = 0;
    std::uint32_t use = 0;
  };
  struct Link {
    double capacity = 0;  // bytes/ps
    std::uint32_t visit = 0;
    std::vector<OnLink> paths;  // the paths on it that have flows
    // While rates are computed:
    double left = 0, weight = 0;
    std::uint32_t open = 0;
  };

  std::span<Use> uses(Path& path) { return std::span(uses_).subspan(path.first_use, path.uses); }
  static double flows(const Path& path) { return static_cast<double>(path.targets.size()); }
  void join_links(PathId id);
  void leave_links(Path& path);
  void mark(PathId id);
  bool has_links_to_itself(Path& path);
  void gather(PathId seed);
  void share_out();
  void open_levels();
  void fix(PathId id, double rate);
  void set_rate(PathId id, double rate);
  void advance(Path& path);

  Events& events_;
  std::vector<Link> links_;
  std::vector<Path> paths_;
  std::vector<Use> uses_;
  std::vector<PathId> changed_;
  std::vector<std::uint32_t> freed_links_;  // links that a path has left and others still use
  std::uint32_t visit_ = 0;
  // The part of the network whose rates are being computed.
  std::vector<PathId> reached_paths_;
  std::vector<std::uint32_t> reached_links_;
  struct Level {
    double rate = 0;
    std::uint32_t index = 0;  // of a reached link; past the links, of a reached path
    bool operator<(const Level& other) const {  // the lowest in front of a heap
      return rate != other.rate ? rate > other.rate : index > other.index;
    }
  };
  std::vector<Level> levels_;
};

}  // namespace trainyard

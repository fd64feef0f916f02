// A cluster as it is drawn: racks of nodes that hang on the same switches, the links between racks
// added up, both read off the topology graph; and what a plan puts on each device: its place in
// every kind of process group, who else is in its group, what links their ring has.
#pragma once

#include <QCoreApplication>
#include <QString>
#include <memory>
#include <optional>
#include <vector>

#include "model/program/rank_layout.h"
#include "planner/planner.h"

namespace trainyard {

struct Question;

struct MapRack {
  std::vector<int> nodes;
};

// Between two racks, or between a rack and the spines (`to` is −1).
struct MapLink {
  int from = 0, to = -1;
  int cables = 0;
  BytesPerSecond bandwidth;  // of all of them, per direction
};

// Of the graph's edges those that are part of a link; its source is then on the side of `from`,
// or of `to`.
struct PlaceOfEdge {
  std::size_t link = 0;
  bool is_reversed = false;
};

// By `load`: of the links of the simulated step (gui/presenters/cluster/cluster_load.h).
enum class MapColour { stage, tensor, context, data, expert, memory, load };
inline constexpr int kMapColours = 7;

class ClusterMap {
  Q_DECLARE_TR_FUNCTIONS(ClusterMap)
 public:
  ClusterMap(std::shared_ptr<const Question> question, Candidate candidate);

  int devices_per_node() const { return devices_per_node_; }
  int devices() const { return devices_; }
  int ranks() const { return layout_.ranks(); }  // the other devices are idle
  const std::vector<MapRack>& racks() const { return racks_; }
  const std::vector<MapLink>& links() const { return links_; }
  // Of the n-th edge of make_topology(); nothing: it is inside a rack.
  std::optional<PlaceOfEdge> place_of_edge(std::size_t edge) const { return places_[edge]; }
  const Question& question() const { return *question_; }
  const Plan& plan() const { return candidate_.plan; }
  int node_of(int rank) const { return rank / devices_per_node_; }

  static QString colour_name(MapColour colour);
  // Places that a rank can have: the size of its group, or the number of stages.
  int places(MapColour colour) const;
  // From 0; requires a kind of group.
  int place_of(int rank, MapColour colour) const;
  // Of the device's memory, at the peak of the rank's stage.
  double memory_share(int rank) const;

  // Those that share the rank's group, in the order of their ring; of `memory` and `load` the
  // stage's tensor ranks.
  std::vector<int> members(int rank, MapColour colour) const;
  QString describe(int rank) const;                          // in a line or two
  QString describe_group(int rank, MapColour colour) const;  // its ring and its slowest link
  QString summary() const;                                   // the cluster in a line
  QString link_name(std::size_t link) const;                 // "rack 3 to the spines"

  // The rank that is first in its tensor group.
  int rank_at(int stage, int context, int replica) const;
  QString nodes_at(int stage, int context, int replica) const;  // of that tensor group

 private:
  void read_graph();
  std::optional<Group> group_of(MapColour colour) const;
  GroupShape shape_of(int rank, MapColour colour) const;
  int domain_of(int rank) const;

  std::shared_ptr<const Question> question_;
  Candidate candidate_;
  RankLayout layout_;
  int devices_per_node_ = 1, devices_ = 0, domain_ = 1;
  std::vector<MapRack> racks_;
  std::vector<MapLink> links_;
  std::vector<std::optional<PlaceOfEdge>> places_;  // of the graph's edges
};

}  // namespace trainyard

// A cluster as it is drawn, and what a plan places on each device. A rack is the nodes below the
// same leaf switch; a link is all cables between two racks. Both come from the topology graph. For
// each rank the map knows its place in every kind of process group, the members of the group, and
// the links of their ring.
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

// A link between two racks, or between a rack and the spines (`to` is −1).
struct MapLink {
  int from = 0, to = -1;
  int cables = 0;
  BytesPerSecond bandwidth;  // of all cables together, per direction
};

// The link that an edge of the topology graph is part of. The edge leads from MapLink::from to
// MapLink::to, or, if `is_reversed`, the other way.
struct PlaceOfEdge {
  std::size_t link = 0;
  bool is_reversed = false;
};

// What the colour of a device shows: its place in a kind of process group, the share of its memory
// that is used, or the load of its links (gui/presenters/cluster/cluster_load.h).
enum class MapColour { stage, tensor, context, data, expert, memory, load };
inline constexpr int kMapColours = 7;

class ClusterMap {
  Q_DECLARE_TR_FUNCTIONS(ClusterMap)
 public:
  ClusterMap(std::shared_ptr<const Question> question, Candidate candidate);

  int devices_per_node() const { return devices_per_node_; }
  int devices() const { return devices_; }
  int ranks() const { return layout_.ranks(); }  // devices beyond this number are idle
  const std::vector<MapRack>& racks() const { return racks_; }
  const std::vector<MapLink>& links() const { return links_; }
  // The place of the n-th edge of make_topology(); nothing if the edge is part of no link.
  std::optional<PlaceOfEdge> place_of_edge(std::size_t edge) const { return places_[edge]; }
  const Question& question() const { return *question_; }
  const Plan& plan() const { return candidate_.plan; }
  int node_of(int rank) const { return rank / devices_per_node_; }

  static QString colour_name(MapColour colour);
  // How many places a rank can have: the parallel degree of this kind. Of `stage`, `memory` and
  // `load`: the number of stages.
  int places(MapColour colour) const;
  // Counts from 0, below places(). Of `memory` and `load`: the rank's stage.
  int place_of(int rank, MapColour colour) const;
  // The peak memory of the rank's stage over the memory of the device.
  double memory_share(int rank) const;

  // The ranks of this rank's group, in the order of their ring. Of `stage`: one rank of each stage.
  // Of `data`: the D·c ranks that reduce dense gradients. Of `memory` and `load`: the
  // tensor-parallel group.
  std::vector<int> members(int rank, MapColour colour) const;
  QString describe(int rank) const;                          // up to three lines
  QString describe_group(int rank, MapColour colour) const;  // its ring and its slowest link
  QString summary() const;                                   // one line about the cluster
  QString link_name(std::size_t link) const;                 // "rack 3 to the spines"

  // The first rank of the tensor-parallel group at this place.
  int rank_at(int stage, int context, int replica) const;
  QString nodes_at(int stage, int context, int replica) const;  // the nodes of that group

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
  std::vector<std::optional<PlaceOfEdge>> places_;  // [edge of the graph]
};

}  // namespace trainyard

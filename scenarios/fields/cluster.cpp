// The fields of a cluster: equal nodes from a node document, or spelled out; node and fabric
// documents. Bandwidths are per direction: per device inside a node, per NIC outside. Design §3.
#include <fmt/format.h>

#include <algorithm>

#include "model/cluster/fabric_shape.h"
#include "scenarios/fields/documents.h"
#include "scenarios/fields/reference.h"
#include "scenarios/interchange/hardware/nccl_topology.h"

namespace trainyard {
namespace {

constexpr CountShape kNodes{.most = 1e6};
constexpr CountShape kDevicesPerNode{.most = 1e4};
constexpr std::int64_t kMostDevices = 16'777'216;
const Section<InterNode>& inter_node_section() {
  static const Section<InterNode> section = [] {
    std::vector<Field<InterNode>> fields = inter_node_fields();
    for (Field<InterNode>& field : fields) {
      const std::string& key = field.spec.key;
      field.spec.required = key == "kind" || key == "nics_per_node" || key == "bandwidth";
    }
    return Section<InterNode>("inter_node", "The fabric between nodes.", std::move(fields),
                              {.finish = [](InterNode& inter, const Place& place) {
                                return check_keys_of_kind(inter, place);
                              }});
  }();
  return section;
}

const Section<FabricMeasured>& fabric_measured_section() {
  using M = FabricMeasured;
  static const Section<M> section(
      "fabric_measured",
      "Measured collectives across nodes that a fabric's figures were fitted to.",
      {
          reference<node_section>("node", &M::node, "node that the measurements ran on").required(),
          text("source", &M::source, "source of the measured rows, as the data spells it")
              .required(),
          text("algorithm", &M::algorithm,
               "collective algorithm that ran (as in `plan.collective`)")
              .absent("the fastest"),
      });
  return section;
}

// The fields of a fabric that a cluster has too, kept in its `inter`.
std::vector<Field<FabricDocument>> fabric_fields() {
  std::vector<Field<FabricDocument>> fields = {
      text("name", &FabricDocument::name, "name that tables show")
          .absent("the name of the catalog entry"),
      text("source", &FabricDocument::source, "where the figures come from"),
  };
  for (const Field<InterNode>& field : inter_node_fields()) {
    const std::string& key = field.spec.key;
    const bool from_node = key == "nics_per_node" || key == "bandwidth";
    Field<FabricDocument> lifted{
        field.spec,
        [read = field.read](const Json& value, FabricDocument& fabric, const Place& place) {
          return read(value, fabric.inter, place);
        },
        [write = field.write](const FabricDocument& fabric) { return write(fabric.inter); }};
    if (from_node) lifted.spec.absent = "the node's own NICs";
    fields.push_back(std::move(lifted));
  }
  fields.push_back(
      object<fabric_measured_section>("measured", &FabricDocument::measured,
                                      "measured collectives that the figures were fitted to")
          .absent("they were not fitted"));
  fields.push_back(sources<fabric_section, FabricDocument>());
  return fields;
}

// Fails if these nodes cannot have the fabric; `key`: where the cluster names it.
Expected<void> check_fabric(const Cluster& cluster, const Place& place, std::string_view key) {
  const auto checked = check_fabric(cluster);
  return checked ? checked : (place / key).error(checked.error().message);
}

// NVLink reaches beyond a node only through switches.
Expected<void> check_domain(const Cluster& cluster, const Place& place) {
  const Place at = place / "nvlink_domain";
  const int devices = cluster.devices_per_node;
  if (cluster.nvlink_domain % devices != 0) {
    return at.error(fmt::format("found {}; allowed: a multiple of the {} devices of a node",
                                cluster.nvlink_domain, devices));
  }
  if (cluster.nvlink_domain == devices || cluster.intra.kind == IntraNodeKind::nvswitch) return {};
  return at.error(
      fmt::format("found {} with intra_node of kind \"{}\"; allowed: with \"nvswitch\", "
                  "or the devices of a node",
                  cluster.nvlink_domain, name_of(cluster.intra.kind)));
}

// Refuses large meshes: each device has a link to each other one, and no device has ports for so
// many. `place`: of the number of devices.
Expected<void> check_mesh(const IntraNode& intra, int devices, const Place& place) {
  constexpr int kMostOfMesh = 64;
  if (intra.kind != IntraNodeKind::nvlink_mesh || devices <= kMostOfMesh) return {};
  return place.error(
      fmt::format("found {}; allowed: at most {} on an nvlink-mesh", devices, kMostOfMesh));
}

Expected<void> finish_spelled_out(Cluster& cluster, const Place& place) {
  if (auto done = check_size(cluster, place); !done) return done;
  const Place per_node = place / "devices_per_node";
  if (auto done = check_mesh(cluster.intra, cluster.devices_per_node, per_node); !done) return done;
  if (cluster.nvlink_domain == 0) cluster.nvlink_domain = cluster.devices_per_node;
  if (auto done = check_domain(cluster, place); !done) return done;
  if (cluster.nodes > 1 && cluster.inter.kind == InterNodeKind::none) {
    return place.error(fmt::format(
        "found no \"inter_node\"; allowed: absent when nodes is 1, not {}", cluster.nodes));
  }
  cluster.name = fmt::format("{} x {}", cluster.devices_per_node, cluster.device.name);
  return check_fabric(cluster, place, "inter_node");
}

const Section<Cluster>& cluster_section() {
  using C = Cluster;
  static const Section<C> section(
      "cluster", "A cluster of equal nodes, spelled out.",
      {
          reference<device_section>("device", &C::device, "type of device").required(),
          count("devices_per_node", &C::devices_per_node, "number of devices in a node",
                kDevicesPerNode)
              .required(),
          count("nodes", &C::nodes, "number of nodes", kNodes).required(),
          object<intra_node_section>("intra_node", &C::intra, "links inside a node").required(),
          object<inter_node_section>("inter_node", &C::inter, "fabric between nodes")
              .absent("allowed only when `nodes` is 1"),
          count("nvlink_domain", &C::nvlink_domain,
                "number of devices that reach each other by NVLink, across nodes too", kNodes)
              .absent("`devices_per_node`"),
          quantity("host_memory", &C::host_memory, "host memory of a node, for what is offloaded")
              .absent("unknown: taken to be enough"),
          quantity("host_memory_bandwidth", &C::host_memory_bandwidth,
                   "bandwidth of a node's host memory, for an optimizer on the host"),
          quantity("nvme_bandwidth", &C::nvme_bandwidth,
                   "NVMe bandwidth of a node, for offloading and checkpoints"),
      },
      {.finish = finish_spelled_out});
  return section;
}

struct ClusterOfNodes {
  Node node;
  int nodes = 0;
  FabricDocument fabric;
};

const Section<ClusterOfNodes>& cluster_of_nodes_section() {
  using C = ClusterOfNodes;
  static const Section<C> section(
      "cluster_of_nodes", "A cluster of equal nodes from a node document.",
      {
          reference<node_section>("node", &C::node, "node that the cluster is made of").required(),
          count("nodes", &C::nodes, "number of nodes", kNodes).required(),
          reference<fabric_section>("fabric", &C::fabric, "fabric that connects the nodes")
              .absent("the node's own NICs on a non-blocking rail-optimised fat tree"),
      });
  return section;
}

Expected<void> assemble(const ClusterOfNodes& parts, Cluster& cluster, const Place& place) {
  cluster = cluster_of(parts.node, parts.nodes, parts.fabric.inter);
  if (auto done = check_size(cluster, place); !done) return done;
  return check_fabric(cluster, place, "fabric");
}

struct ClusterOfTopology {
  std::string path;
  Device device;
  int nodes = 1;
  FabricDocument fabric;
};

const Section<ClusterOfTopology>& cluster_of_topology_section() {
  using C = ClusterOfTopology;
  static const Section<C> section(
      "cluster_of_topology", "A cluster of equal nodes, each as NCCL describes it.",
      {
          text("nccl_topology", &C::path,
               "path, absolute or relative to the document, of the file that NCCL_TOPO_DUMP_FILE "
               "wrote",
               {PathShape{"an NCCL topology (XML)"}})
              .required(),
          reference<device_section>("device", &C::device, "type of device")
              .absent("as the file names it or suggests"),
          count("nodes", &C::nodes, "number of nodes", kNodes),
          reference<fabric_section>("fabric", &C::fabric, "fabric that connects the nodes")
              .absent("the node's own NICs on a non-blocking rail-optimised fat tree"),
      });
  return section;
}

struct ClusterOfGroups {
  std::vector<ClusterOfNodes> groups;
  std::optional<BytesPerSecond> bandwidth;
  std::optional<Seconds> latency;
};

Field<ClusterOfGroups> groups_field() {
  return Field<ClusterOfGroups>{
      {.key = "groups",
       .shape = {ListShape{
           {Shape{ObjectShape{&spec_of<cluster_of_nodes_section>, {}}}}, 2, kMostGroups}},
       .doc = "groups of unlike nodes, such as device generations; every node has equally many "
              "devices. For `trainyard plan`, `estimate`, `simulate`, `compare`, `program`, "
              "`goodput`, `diff` and sweeps"},
      [](const Json& value, ClusterOfGroups& all, const Place& place) -> Expected<void> {
        for (std::size_t i = 0; i < value.size(); ++i) {
          ClusterOfNodes& group = all.groups.emplace_back();
          auto done = cluster_of_nodes_section().read(value[i], group, place / i);
          if (!done) return done;
        }
        return {};
      },
      [](const ClusterOfGroups&) { return std::nullopt; }}
      .required();
}

const Section<ClusterOfGroups>& cluster_of_groups_section() {
  using C = ClusterOfGroups;
  static const Section<C> section(
      "cluster_of_groups", "A cluster of groups of unlike nodes.",
      {
          groups_field(),
          quantity("boundary_bandwidth", &C::bandwidth,
                   "bandwidth of one device to another group, per direction")
              .absent("a device's share of its node's NICs, in the group where that is less"),
          quantity("boundary_latency", &C::latency, "latency (α) of a message to another group")
              .absent("the longer latency of the two groups' fabrics"),
      });
  return section;
}

Expected<void> read_topology(const Json& value, Scenario& scenario, const Place& place) {
  ClusterOfTopology parts;
  if (auto done = cluster_of_topology_section().read(value, parts, place); !done) return done;
  std::optional<NamedDevice> device;
  if (const auto named = value.find("device"); named != value.end()) {
    device = {named->is_string() ? named->get<std::string>() : parts.device.name, parts.device};
  }
  auto opened = open_text(parts.path, place / "nccl_topology");
  if (!opened) return tl::unexpected(opened.error());
  const auto node = nccl_topology_node(
      {opened->document.name, opened->document.file.stem().string(), std::move(opened->text)},
      device);
  if (!node) return tl::unexpected(node.error());
  for (const std::string& assumption : node->assumptions) {
    scenario.assumptions.push_back(assumption);
  }
  return assemble({node->node, parts.nodes, parts.fabric}, scenario.job.cluster, place);
}

// Checks that every group's fabric can have all nodes: a plan through several groups must be legal
// in a cluster of as many nodes as all have, whichever group's they are.
Expected<void> check_fabrics_of_all(const UnlikeCluster& unlike, const Place& place) {
  int nodes = 0;
  for (const Cluster& group : unlike.groups) nodes += group.nodes;
  for (std::size_t g = 0; g < unlike.groups.size(); ++g) {
    const Cluster& group = unlike.groups[g];
    if (group.inter.kind == InterNodeKind::graph) {
      return (place / g).error(
          "found a drawn fabric; allowed with groups of unlike nodes: fat-tree, rail, dragonfly, "
          "torus");
    }
    const auto checked = check_fabric(with_nodes(group, nodes));
    if (!checked) {
      return (place / g).error(
          fmt::format("with the nodes of all groups: {}", checked.error().message));
    }
  }
  return {};
}

Expected<void> read_groups(const Json& value, Scenario& scenario, const Place& place) {
  ClusterOfGroups parts;
  if (auto done = cluster_of_groups_section().read(value, parts, place); !done) return done;
  UnlikeCluster unlike{.groups = {}, .boundary = {parts.bandwidth, parts.latency}};
  for (std::size_t g = 0; g < parts.groups.size(); ++g) {
    Cluster& group = unlike.groups.emplace_back();
    auto done = assemble(parts.groups[g], group, place / "groups" / g);
    if (!done) return done;
    const int first = unlike.groups.front().devices_per_node;
    if (group.devices_per_node == first) continue;
    return (place / "groups")
        .error(fmt::format("found nodes of {} and of {} devices; allowed: of equal numbers", first,
                           group.devices_per_node));
  }
  if (auto done = check_fabrics_of_all(unlike, place / "groups"); !done) return done;
  scenario.job.cluster = unlike.groups.front();
  scenario.unlike = std::move(unlike);
  return {};
}

Expected<void> read_cluster(const Json& value, Scenario& scenario, const Place& place) {
  if (value.contains("groups")) return read_groups(value, scenario, place);
  Cluster& cluster = scenario.job.cluster;
  if (value.contains("nccl_topology")) return read_topology(value, scenario, place);
  if (!value.contains("node")) return cluster_section().read(value, cluster, place);
  ClusterOfNodes parts;
  if (auto done = cluster_of_nodes_section().read(value, parts, place); !done) return done;
  return assemble(parts, cluster, place);
}

Expected<void> finish_node(Node& node, const Place& place) {
  if (auto done = check_mesh(node.intra, node.devices, place / "devices"); !done) return done;
  if (node.nvlink_domain == 0) return {};
  return check_domain(
      {.devices_per_node = node.devices, .intra = node.intra, .nvlink_domain = node.nvlink_domain},
      place);
}

}  // namespace

Expected<void> check_size(const Cluster& cluster, const Place& place) {
  const std::int64_t devices = std::int64_t{cluster.devices_per_node} * cluster.nodes;
  if (devices <= kMostDevices) return {};
  return (place / "nodes")
      .error(fmt::format("found {} ({} devices in all); allowed: at most {} devices", cluster.nodes,
                         devices, kMostDevices));
}

Cluster cluster_of(const Node& node, int nodes, const InterNode& inter) {
  Cluster cluster;
  cluster.name = node.name;
  cluster.device = node.device;
  cluster.devices_per_node = node.devices;
  cluster.nodes = nodes;
  cluster.intra = node.intra;
  cluster.inter = inter;
  if (cluster.inter.nics_per_node == 0) cluster.inter.nics_per_node = node.nics;
  if (cluster.inter.bandwidth.value() == 0) cluster.inter.bandwidth = node.nic_bandwidth;
  cluster.host_memory = node.host_memory;
  cluster.host_memory_bandwidth = node.host_memory_bandwidth;
  cluster.nvme_bandwidth = node.nvme_bandwidth;
  cluster.nvlink_domain = node.nvlink_domain > 0 ? node.nvlink_domain : node.devices;
  return cluster;
}

const Section<IntraNode>& intra_node_section() {
  using I = IntraNode;
  static const Section<I> section(
      "intra_node", "The links inside a node.",
      {
          choice("kind", &I::kind, named<IntraNodeKind>(kIntraNodeKinds),
                 "how the devices are wired")
              .required(),
          quantity("bandwidth", &I::bandwidth, "bandwidth of one device's links, per direction")
              .required(),
          quantity("latency", &I::latency, "latency (α) of one message step", Zero::allowed),
      });
  return section;
}

const Section<Node>& node_section() {
  using N = Node;
  static const Section<N> section(
      "node", "A node: devices, the links among them, and its NICs.",
      {
          text("name", &N::name, "name that tables show").absent("the name of the catalog entry"),
          text("source", &N::source, "where the figures come from"),
          reference<device_section>("device", &N::device, "type of device").required(),
          count("devices", &N::devices, "number of devices in the node", kDevicesPerNode)
              .required(),
          object<intra_node_section>("intra_node", &N::intra, "links inside the node").required(),
          count("nics", &N::nics, "number of NICs in the node").required(),
          quantity("nic_bandwidth", &N::nic_bandwidth, "bandwidth of one NIC, per direction")
              .required(),
          count("nvlink_domain", &N::nvlink_domain,
                "number of devices that reach each other by NVLink, across nodes too", kNodes)
              .absent("`devices`"),
          quantity("host_memory", &N::host_memory, "host memory of the node, for what is offloaded")
              .absent("unknown: taken to be enough"),
          quantity("host_memory_bandwidth", &N::host_memory_bandwidth,
                   "bandwidth of the node's host memory, for an optimizer on the host"),
          quantity("nvme_bandwidth", &N::nvme_bandwidth,
                   "NVMe bandwidth of the node, for offloading and checkpoints"),
      },
      {.finish = finish_node});
  return section;
}

const Section<FabricDocument>& fabric_section() {
  static const Section<FabricDocument> section(
      "fabric", "What connects the nodes of a cluster.", fabric_fields(),
      {.finish = [](FabricDocument& fabric, const Place& place) {
        return check_keys_of_kind(fabric.inter, place);
      }});
  return section;
}

Field<Scenario> cluster_field() {
  return {{.key = "cluster",
           .shape = {AnyShape{
               {Shape{ObjectShape{&spec_of<cluster_of_nodes_section>, "node"}},
                Shape{ObjectShape{&spec_of<cluster_of_topology_section>, "nccl_topology"}},
                Shape{ObjectShape{&spec_of<cluster_of_groups_section>, "groups"}},
                Shape{ObjectShape{&spec_of<cluster_section>, {}}}}}},
           .doc = "cluster that the network is trained on"},
          read_cluster,
          [](const Scenario&) { return std::nullopt; }};
}

}  // namespace trainyard

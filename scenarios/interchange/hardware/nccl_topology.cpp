#include "scenarios/interchange/hardware/nccl_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/pending/disjoint_sets.hpp>
#include <charconv>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_set>

#include "scenarios/interchange/documents/xml.h"
#include "scenarios/json/json_document.h"

namespace trainyard {
namespace {

constexpr std::string_view kSwitchClass = "0x068000";  // PCI class of an NVSwitch

struct Accelerator {
  pugi::xml_node place;
  std::string_view pci_id;
  double transfers = 0;  // GT/s of a lane
  int lanes = 0;
  int sm = 0;
  bool measured = false;  // has numbers that only a dump of NCCL has, which looked for links
  int links = 0;
  bool switched = false;
  std::string_view bus_id;
  std::vector<std::string_view> targets;  // bus ids of the GPUs or switches that its links lead to
};

struct NicPort {
  std::string name;
  BytesPerSecond bandwidth;  // 0: not in the file
  double transfers = 0;
  int lanes = 0;
  bool near = false;  // behind the PCIe switch of a GPU
};

struct Machine {
  std::vector<Accelerator> accelerators;
  std::vector<NicPort> ports;
  int hosts = 1;
};

// The number at the start of "16.0 GT/s PCIe"; 0 if no bus can have it.
double leading_number(std::string_view text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value > 0 && value <= 1000 ? value : 0;
}

class TopologyReader {
 public:
  explicit TopologyReader(const ForeignFile& file) : file_(file) {}

  Expected<Machine> read(const pugi::xml_document& document) {
    const pugi::xml_node system = document.child("system");
    if (!system) return file_.error("found no <system>; allowed: an NCCL topology");
    std::string first_host;
    std::set<std::string> hosts;
    for (const pugi::xml_node cpu : system.children("cpu")) {
      const std::string host = cpu.attribute("host_hash").value();
      if (hosts.empty()) first_host = host;
      hosts.insert(host);
      if (host != first_host) continue;
      for (const pugi::xml_node child : cpu.children()) visit_slot(child);
    }
    machine_.hosts = static_cast<int>(std::max(hosts.size(), std::size_t{1}));
    if (error_) return tl::unexpected(*error_);
    if (machine_.accelerators.empty()) {
      return error_at(file_, system,
                      "found no GPU; allowed: one or more (a <gpu>, or a <pci> of class 0x0302)");
    }
    if (auto fits = check_size(system); !fits) return tl::unexpected(fits.error());
    if (auto apart = check_apart(); !apart) return tl::unexpected(apart.error());
    if (auto alike = check_alike(); !alike) return tl::unexpected(alike.error());
    return std::move(machine_);
  }

 private:
  struct Slot {
    double transfers = 0;
    int lanes = 0;
  };

  // Checks that a node document can express the machine.
  Expected<void> check_size(pugi::xml_node system) {
    constexpr std::size_t kMostOfHost = 10'000;
    constexpr std::size_t kMostInDomain = 1'000'000;
    const std::size_t gpus = machine_.accelerators.size();
    const auto hosts = static_cast<std::size_t>(machine_.hosts);
    if (gpus <= kMostOfHost && hosts * gpus <= kMostInDomain) return {};
    return error_at(file_, system,
                    fmt::format("found {} host{} of {} GPUs; allowed: at most {} GPUs a host and "
                                "{} in all",
                                hosts, hosts == 1 ? "" : "s", gpus, kMostOfHost, kMostInDomain));
  }

  // Checks that no GPU is listed twice: it would count as two devices.
  Expected<void> check_apart() {
    std::unordered_set<std::string_view> seen;
    for (const Accelerator& gpu : machine_.accelerators) {
      if (gpu.bus_id.empty() || seen.insert(gpu.bus_id).second) continue;
      return error_at(
          file_, gpu.place,
          fmt::format("found two GPUs of busid {}; allowed: a busid of its own for each GPU",
                      shown(gpu.bus_id)));
    }
    return {};
  }

  // Checks, as far as the file tells, that all devices are alike: a node has one kind.
  Expected<void> check_alike() {
    std::string_view pci_id;
    int sm = 0;
    for (const Accelerator& gpu : machine_.accelerators) {
      if (pci_id.empty()) pci_id = gpu.pci_id;
      if (sm == 0) sm = gpu.sm;
      if (!gpu.pci_id.empty() && gpu.pci_id != pci_id) {
        return error_at(file_, gpu.place,
                        fmt::format("found GPUs of PCI number {} and of {}; allowed: of one kind",
                                    shown(pci_id), shown(gpu.pci_id)));
      }
      if (gpu.sm == 0 || gpu.sm == sm) continue;
      return error_at(
          file_, gpu.place,
          fmt::format("found GPUs of compute capability sm {} and of {}; allowed: of one kind", sm,
                      gpu.sm));
    }
    return {};
  }

  // A whole number; 0 if the attribute is absent.
  int whole(pugi::xml_node node, const char* name, int most) {
    const pugi::xml_attribute attribute = node.attribute(name);
    if (!attribute) return 0;
    const std::string_view text = attribute.value();
    int value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool fits = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() &&
                      value >= 0 && value <= most;
    if (fits) return value;
    if (!error_) {
      error_ = error_at(file_, node,
                        fmt::format("found {}=\"{}\"; allowed: a whole number from 0 to {}", name,
                                    shown_inside(text), most))
                   .value();
    }
    return 0;
  }

  static std::string shown_inside(std::string_view text) {
    const std::string quoted = shown(text);
    return quoted.substr(1, quoted.size() - 2);
  }

  // Everything behind one port of a CPU shares its PCIe switch.
  void visit_slot(pugi::xml_node node) {
    const std::size_t gpus = machine_.accelerators.size();
    const std::size_t ports = machine_.ports.size();
    visit(node, {});
    if (machine_.accelerators.size() == gpus) return;
    for (NicPort& port : std::span(machine_.ports).subspan(ports)) port.near = true;
  }

  void visit(pugi::xml_node node, Slot slot) {
    const std::string_view name = node.name();
    if (name == "net") {
      add_port(node, slot);
    } else if (name == "nic") {
      for (const pugi::xml_node child : node.children()) visit(child, slot);
    } else if (name == "pci") {
      visit_pci(node);
    }
  }

  void visit_pci(pugi::xml_node node) {
    const Slot slot{leading_number(node.attribute("link_speed").value()),
                    whole(node, "link_width", 64)};
    const std::string_view type = node.attribute("class").value();
    if (type.starts_with("0x0302") || type.starts_with("0x0300")) {
      add_accelerators(node, slot);
    } else if (type.starts_with("0x02") && !node.child("nic")) {
      machine_.ports.push_back({node.attribute("busid").value(), {}, slot.transfers, slot.lanes});
    } else {
      for (const pugi::xml_node child : node.children()) visit(child, slot);
    }
  }

  void add_accelerators(pugi::xml_node node, Slot slot) {
    Accelerator accelerator{.place = node,
                            .pci_id = node.attribute("device").value(),
                            .transfers = slot.transfers,
                            .lanes = slot.lanes,
                            .bus_id = node.attribute("busid").value()};
    const pugi::xml_node gpu = node.child("gpu");
    accelerator.measured = gpu && !accelerator.pci_id.empty();
    accelerator.sm = whole(gpu, "sm", 1000);
    for (const pugi::xml_node link : gpu.children("nvlink")) {
      const int count = whole(link, "count", 1000);
      if (count == 0) continue;
      accelerator.links += count;
      accelerator.targets.emplace_back(link.attribute("target").value());
      accelerator.switched |= link.attribute("tclass").value() == kSwitchClass;
    }
    machine_.accelerators.push_back(std::move(accelerator));
  }

  // A port may be listed once under every CPU. Speed is in Mbit/s.
  void add_port(pugi::xml_node node, Slot slot) {
    NicPort port{node.attribute("name").value(),
                 BytesPerSecond(whole(node, "speed", 100'000'000) * 1e6 / 8), slot.transfers,
                 slot.lanes};
    if (names_.insert(port.name).second) machine_.ports.push_back(std::move(port));
  }

  const ForeignFile& file_;
  Machine machine_;
  std::unordered_set<std::string> names_;  // of ports
  std::optional<Error> error_;
};

struct Suggestion {
  const KnownDevice* device = nullptr;
  std::string why;  // empty: the file names it
};

// The device that the file suggests by what it says about its GPUs. A device that it names but the
// catalog lacks is replaced only by one of the same compute capability.
Expected<Suggestion> suggested_by(const ForeignFile& file, const Accelerator& gpu) {
  if (const auto* device = device_of_pci_id(gpu.pci_id)) return Suggestion{device, ""};
  const auto* alike = gpu.sm > 0 ? device_of_sm(gpu.sm) : nullptr;
  if (alike != nullptr) {
    const std::string unknown =
        gpu.pci_id.empty() ? ""
                           : fmt::format("; PCI number {}, which the file names, it does not have",
                                         shown(gpu.pci_id));
    return Suggestion{alike, fmt::format("the first of the catalog with compute capability sm {}{}",
                                         gpu.sm, unknown)};
  }
  if (gpu.sm > 0 || !gpu.pci_id.empty()) {
    const bool both = gpu.sm > 0 && !gpu.pci_id.empty();
    return error_at(
        file, gpu.place,
        fmt::format("found a GPU of {}{}{}, which the catalog does not have; allowed: --device "
                    "NAME, or \"device\" in a cluster",
                    gpu.pci_id.empty() ? "" : "PCI number " + shown(gpu.pci_id),
                    both ? " and " : "",
                    gpu.sm > 0 ? fmt::format("compute capability sm {}", gpu.sm) : ""));
  }
  const auto* device = device_of_pcie(gpu.transfers);
  return Suggestion{
      device != nullptr ? device : known_device("a100-sxm-80gb"),
      fmt::format("the file names none; the usual one at {:.4g} GT/s of PCIe", gpu.transfers)};
}

// The size of the largest set of GPUs that NVLinks join, over other GPUs or switches.
int largest_island(const Machine& machine) {
  std::map<std::string_view, std::size_t> places;  // number of each bus id
  const auto place_of = [&](std::string_view bus_id) {
    return places.try_emplace(bus_id, places.size()).first->second;
  };
  std::size_t most = 0;  // of bus ids
  for (const Accelerator& gpu : machine.accelerators) most += 1 + gpu.targets.size();
  boost::disjoint_sets_with_storage<> sets(most);
  for (const Accelerator& gpu : machine.accelerators) {
    for (const std::string_view target : gpu.targets) {
      sets.union_set(place_of(gpu.bus_id), place_of(target));
    }
  }
  std::map<std::size_t, int> sizes;
  int largest = 0;
  for (const Accelerator& gpu : machine.accelerators) {
    largest = std::max(largest, ++sizes[sets.find_set(place_of(gpu.bus_id))]);
  }
  return largest;
}

// Uses the PCIe bandwidth of the GPU's slot and notes `why`; empty: the dump shows that there is no
// NVLink.
void take_pcie(const Accelerator& slot, std::string_view why, ImportedNode& imported) {
  if (slot.transfers == 0 || slot.lanes == 0) {
    return assume_pcie(imported, why.empty() ? "the file has no NVLink and no PCIe speed" : why);
  }
  IntraNode& intra = imported.node.intra;
  intra.kind = IntraNodeKind::pcie;
  intra.bandwidth = pcie_bandwidth(slot.transfers, slot.lanes);
  if (why.empty()) return;
  imported.assumptions.push_back(
      fmt::format("{}: PCIe of {:.4g} GB/s, the slots'", why, intra.bandwidth.value() / 1e9));
}

// For GPUs without NVLinks in the file.
void read_unlinked(const Accelerator& gpu, ImportedNode& imported) {
  if (gpu.measured) return take_pcie(gpu, {}, imported);
  IntraNode& intra = imported.node.intra;
  if (const auto kind = nvlink_kind(imported)) {
    intra.kind = *kind;
    intra.bandwidth = imported.node.device.link_bandwidth;
    imported.assumptions.push_back(
        fmt::format("the file has no NVLinks, which NCCL finds at run time: {} of {:.4g} GB/s a "
                    "device, as {} has",
                    name_of(*kind), intra.bandwidth.value() / 1e9, imported.device));
    return;
  }
  std::string why;
  if (known_device(imported) == nullptr) {
    why = fmt::format("the file has no NVLink, and {} names none", imported.device);
  }
  take_pcie(gpu, why, imported);
}

void read_intra(const Machine& machine, ImportedNode& imported) {
  const auto fewest = std::ranges::min_element(machine.accelerators, {}, &Accelerator::links);
  const auto most = std::ranges::max_element(machine.accelerators, {}, &Accelerator::links);
  const auto gpus = static_cast<int>(machine.accelerators.size());
  if (most->links == 0) return read_unlinked(*fewest, imported);
  if (const int island = largest_island(machine); island < gpus) {
    return take_pcie(*fewest, islands_in_words(island, gpus), imported);
  }
  if (fewest->links != most->links) {
    imported.assumptions.push_back(
        fewest_links_in_words(fewest->links, most->links, fewest->switched));
  }
  IntraNode& intra = imported.node.intra;
  intra.kind = fewest->switched ? IntraNodeKind::nvswitch : IntraNodeKind::nvlink_mesh;
  intra.bandwidth = nvlink_bandwidth(imported, fewest->links, most->links);
}

// The bandwidth of the fastest usual NIC that the PCIe slot can feed.
BytesPerSecond nic_of_slot(const NicPort& port) {
  const BytesPerSecond slot = pcie_bandwidth(port.transfers, port.lanes);
  for (const double gigabits : {800.0, 400.0, 200.0, 100.0}) {
    if (slot >= BytesPerSecond(gigabits * 1e9 / 8)) return BytesPerSecond(gigabits * 1e9 / 8);
  }
  return BytesPerSecond(100e9 / 8);
}

// The ports behind the PCIe switch of a GPU or, if there are none, all ports.
std::vector<NicPort> ports_of_fabric(const Machine& machine, ImportedNode& imported) {
  std::vector<NicPort> near;
  std::ranges::copy_if(machine.ports, std::back_inserter(near), &NicPort::near);
  if (near.empty()) return machine.ports;
  if (near.size() < machine.ports.size()) {
    imported.assumptions.push_back(near_nics_in_words(machine.ports.size(), near.size()));
  }
  return near;
}

// The speed whose ports have most bandwidth together, which ignores a single faster port of the
// host, and sockets.
BytesPerSecond usual_speed(std::span<const NicPort> ports) {
  std::map<BytesPerSecond, BytesPerSecond> together;
  for (const NicPort& port : ports) together[port.bandwidth] += port.bandwidth;
  const auto usual = std::ranges::max_element(
      together, {}, &std::pair<const BytesPerSecond, BytesPerSecond>::second);
  return usual->first;
}

void note_unlike_ports(std::span<const NicPort> ports, ImportedNode& imported) {
  const BytesPerSecond used = imported.node.nic_bandwidth;
  const auto faster = std::ranges::count_if(ports, [&](auto& p) { return p.bandwidth > used; });
  const auto slower = std::ranges::count_if(ports, [&](auto& p) { return p.bandwidth < used; });
  if (faster + slower == 0) return;
  std::string others = faster > 0 ? fmt::format("{} faster", faster) : "";
  if (slower > 0) others += fmt::format("{}{} slower", others.empty() ? "" : " and ", slower);
  imported.assumptions.push_back(fmt::format(
      "of {} NICs the {} of {:.4g} Gbit/s {} used: {} left out", ports.size(), imported.node.nics,
      used.value() * 8 / 1e9, imported.node.nics == 1 ? "is" : "are", others));
}

void read_ports(const Machine& machine, ImportedNode& imported) {
  Node& node = imported.node;
  if (machine.ports.empty()) {
    node.nics = 1;
    node.nic_bandwidth = BytesPerSecond(100e9 / 8);
    imported.assumptions.emplace_back("the file has no network port: one of 100 Gbit/s");
    return;
  }
  const std::vector<NicPort> ports = ports_of_fabric(machine, imported);
  node.nic_bandwidth = usual_speed(ports);
  node.nics = static_cast<int>(std::ranges::count(ports, node.nic_bandwidth, &NicPort::bandwidth));
  if (node.nic_bandwidth.value() > 0) return note_unlike_ports(ports, imported);
  node.nic_bandwidth = nic_of_slot(ports.front());
  imported.assumptions.push_back(
      fmt::format("the file has no speed of a port: {:.4g} Gbit/s, what the slots feed",
                  node.nic_bandwidth.value() * 8 / 1e9));
}

}  // namespace

Expected<ImportedNode> nccl_topology_node(const ForeignFile& file,
                                          const std::optional<NamedDevice>& device) {
  const auto document = parse_xml(file);
  if (!document) return tl::unexpected(document.error());
  const auto machine = TopologyReader(file).read(**document);
  if (!machine) return tl::unexpected(machine.error());
  ImportedNode imported;
  imported.node.name = file.stem;
  imported.node.devices = static_cast<int>(machine->accelerators.size());
  Suggestion guess;
  if (!device) {
    auto suggested = suggested_by(file, machine->accelerators.front());
    if (!suggested) return tl::unexpected(suggested.error());
    guess = *std::move(suggested);
  }
  choose_device(imported, device, guess.device, guess.why);
  read_intra(*machine, imported);
  read_ports(*machine, imported);
  if (machine->hosts > 1) {
    const bool joined = imported.node.intra.kind == IntraNodeKind::nvswitch;
    if (joined) imported.node.nvlink_domain = machine->hosts * imported.node.devices;
    imported.assumptions.push_back(fmt::format("{} hosts share {}: the node is the first",
                                               machine->hosts,
                                               joined ? "one NVLink domain" : "no NVLink"));
  }
  note_rack(imported);
  return imported;
}

Expected<Imported> import_nccl_topology(const std::filesystem::path& path,
                                        const std::string& device) {
  const auto named = named_device(device);
  if (!named) return tl::unexpected(named.error());
  const auto file = read_foreign_file(path);
  if (!file) return tl::unexpected(file.error());
  const auto node = nccl_topology_node(*file, *named);
  if (!node) return tl::unexpected(node.error());
  return Imported{node_document(*node, fmt::format("NCCL topology {}", file->name)),
                  node_summary(*node),
                  node->assumptions,
                  {}};
}

}  // namespace trainyard

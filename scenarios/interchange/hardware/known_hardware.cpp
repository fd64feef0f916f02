#include "scenarios/interchange/hardware/known_hardware.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>

#include "scenarios/catalog.h"

namespace trainyard {
namespace {

constexpr BytesPerSecond kEdr{12.5e9}, kHdr{25e9}, kNdr{50e9}, kXdr{100e9};

// Source: NVIDIA datasheets; the device ids are from pci.ids (pci-ids.ucw.cz) and the list of
// NVIDIA's open kernel modules.
constexpr std::array kDevices = {
    KnownDevice{"v100-sxm-32gb", "0x1db5", 70, 8, 6, kEdr},
    KnownDevice{"a100-sxm-80gb", "0x20b2", 80, 16, 12, kHdr},
    KnownDevice{"a100-sxm-40gb", "0x20b0", 80, 16, 12, kHdr},
    KnownDevice{"h100-sxm-80gb", "0x2330", 90, 32, 18, kNdr},
    KnownDevice{"h200-sxm-141gb", "0x2335", 90, 32, 18, kNdr},
    KnownDevice{"h800-sxm-80gb", "0x2324", 90, 32, 8, kHdr},
    KnownDevice{"a800-sxm-80gb", "", 80, 16, 8, kHdr},
    KnownDevice{"h100-pcie-80gb", "0x2331", 90, 32, 0, kHdr},
    KnownDevice{"h100-nvl-94gb", "0x2321", 90, 32, 0, kHdr},
    KnownDevice{"b200-sxm-180gb", "0x2901", 100, 32, 18, kNdr},
    KnownDevice{"gb200-192gb", "0x2941", 100, 32, 18, kNdr, 72},
    KnownDevice{"b300-sxm-288gb", "0x3182", 103, 64, 18, kXdr},
    KnownDevice{"gb300-288gb", "0x31c2", 103, 64, 18, kXdr, 72},
    KnownDevice{"gb300-288gb", "0x31c3", 103, 64, 18, kXdr, 72},
    KnownDevice{"l40s-48gb", "0x26b9", 89, 16, 0, kHdr},
    KnownDevice{"rtx-4090-24gb", "0x2684", 89, 16, 0, kEdr},
};

template <typename Member, typename Value>
const KnownDevice* first(Member KnownDevice::*member, const Value& value) {
  const auto* const found = std::ranges::find(kDevices, value, member);
  return found == kDevices.end() ? nullptr : found;
}

}  // namespace

const KnownDevice* device_of_pci_id(std::string_view device) {
  return device.empty() ? nullptr : first(&KnownDevice::pci_id, device);
}
const KnownDevice* device_of_sm(int sm) { return first(&KnownDevice::sm, sm); }
const KnownDevice* device_of_links(int nvlinks) {
  return nvlinks == 0 ? known_device("l40s-48gb") : first(&KnownDevice::nvlinks, nvlinks);
}
const KnownDevice* device_of_pcie(double transfers) {
  return first(&KnownDevice::pcie_transfers, transfers);
}
const KnownDevice* known_device(std::string_view name) { return first(&KnownDevice::name, name); }

std::string_view catalog_name_of_product(std::string_view product) {
  // The first entry that the name contains decides. Entries without a catalog name are relatives
  // that the catalog does not have.
  constexpr std::array<std::pair<std::string_view, std::string_view>, 20> kProducts = {{
      {"GB300", "gb300-288gb"},
      {"GB200", "gb200-192gb"},
      {"B300", "b300-sxm-288gb"},
      {"B200", "b200-sxm-180gb"},
      {"GH200", ""},
      {"H200 NVL", ""},
      {"H200", "h200-sxm-141gb"},
      {"H100 80GB HBM3", "h100-sxm-80gb"},
      {"H100 PCIe", "h100-pcie-80gb"},
      {"H100 NVL", "h100-nvl-94gb"},
      {"H800 PCIe", ""},
      {"H800", "h800-sxm-80gb"},
      {"A800-SXM4-80GB", "a800-sxm-80gb"},
      {"A100-SXM4-80GB", "a100-sxm-80gb"},
      {"A100-SXM4-40GB", "a100-sxm-40gb"},
      {"V100-SXM2-32GB", "v100-sxm-32gb"},
      {"L40S", "l40s-48gb"},
      {"RTX 4090 D", ""},
      {"RTX 4090 Laptop", ""},
      {"RTX 4090", "rtx-4090-24gb"},
  }};
  const auto* const found = std::ranges::find_if(kProducts, [&](const auto& known) {
    return product.find(known.first) != std::string_view::npos;
  });
  return found == kProducts.end() ? std::string_view() : found->second;
}

Expected<std::optional<NamedDevice>> named_device(const std::string& reference) {
  if (reference.empty()) return std::nullopt;
  auto document = read_device(reference, "--device");
  if (!document) return tl::unexpected(document.error());
  return NamedDevice{reference, std::move(document->device)};
}

const KnownDevice* known_device(const ImportedNode& imported) {
  const KnownDevice* known = known_device(imported.device);
  return known != nullptr ? known : known_device(imported.node.device.name);
}

void choose_device(ImportedNode& imported, const std::optional<NamedDevice>& named,
                   const KnownDevice* guess, std::string_view why) {
  assert((named || guess != nullptr) && "a device that nobody names is guessed");
  imported.device = named ? named->name : std::string(guess->name);
  imported.node.device =
      named ? named->device : read_device(imported.device, "the catalog").value().device;
  if (!named && !why.empty()) {
    imported.assumptions.push_back(fmt::format("device {}: {}", imported.device, why));
  }
}

BytesPerSecond pcie_bandwidth(double transfers, int lanes) {
  const double code = transfers < 8 ? 8.0 / 10 : 128.0 / 130;
  return BytesPerSecond(transfers * 1e9 / 8 * code * lanes);
}

void assume_pcie(ImportedNode& imported, std::string_view why) {
  const KnownDevice* known = known_device(imported);
  const Device& device = imported.node.device;
  IntraNode& intra = imported.node.intra;
  intra.kind = IntraNodeKind::pcie;
  intra.bandwidth = device.link_bandwidth;
  std::string_view whose = "the device's link";
  if (known != nullptr && known->nvlinks > 0) {
    constexpr int kLanes = 16;
    intra.bandwidth = pcie_bandwidth(known->pcie_transfers, kLanes);
    whose = "16 lanes of the device's generation";
  } else if (known == nullptr && device.link_kind != IntraNodeKind::pcie &&
             device.host_bandwidth > BytesPerSecond(0)) {
    intra.bandwidth = device.host_bandwidth;
    whose = "what the device has to its host";
  }
  imported.assumptions.push_back(
      fmt::format("{}: PCIe of {:.4g} GB/s, {}", why, intra.bandwidth.value() / 1e9, whose));
}

std::optional<IntraNodeKind> nvlink_kind(const ImportedNode& imported) {
  constexpr BytesPerSecond kMostOfPcie{128e9};  // sixteen lanes of PCIe 6
  const Device& device = imported.node.device;
  const KnownDevice* known = known_device(imported);
  if (device.link_kind == IntraNodeKind::pcie) return std::nullopt;
  if (device.link_kind) return device.link_kind;
  if (known != nullptr && known->nvlinks == 0) return std::nullopt;
  if (known == nullptr && device.link_bandwidth <= kMostOfPcie) return std::nullopt;
  return known != nullptr && known->sm < 80 ? IntraNodeKind::nvlink_mesh : IntraNodeKind::nvswitch;
}

BytesPerSecond nvlink_bandwidth(ImportedNode& imported, int links, int most) {
  constexpr BytesPerSecond kUsualLink{25e9};  // NVLink 2 to 4, each direction
  const Device& device = imported.node.device;
  const KnownDevice* known = known_device(imported);
  const bool own = device.link_kind != IntraNodeKind::pcie;
  if (own && known != nullptr && known->nvlinks > 0) {
    return links * (device.link_bandwidth / known->nvlinks);
  }
  if (own && known == nullptr) {
    imported.assumptions.push_back(
        fmt::format("{} does not say how many NVLinks it has: {} are taken to have the {:.4g} GB/s "
                    "of its document together",
                    imported.device, most, device.link_bandwidth.value() / 1e9));
    return device.link_bandwidth * (static_cast<double>(links) / most);
  }
  imported.assumptions.push_back(
      fmt::format("{} does not say what an NVLink of its {} has: 25 GB/s", imported.device, links));
  return links * kUsualLink;
}

void note_rack(ImportedNode& imported) {
  const KnownDevice* known = known_device(imported);
  const Node& node = imported.node;
  const int domain = std::max(node.devices, node.nvlink_domain);
  const bool part = known != nullptr && node.intra.kind == IntraNodeKind::nvswitch;
  if (!part || domain >= known->rack) return;
  imported.assumptions.push_back(
      fmt::format("the NVLink domain is the {} GPUs of the file: a rack of {} has {} "
                  "(nvlink_domain)",
                  domain, known->name, known->rack));
}

std::string fewest_links_in_words(int fewest, int most, bool switched) {
  return fmt::format("the GPUs have {} to {} NVLinks: {}all are taken to have the fewest", fewest,
                     most, switched ? "links are missing, and " : "");
}

std::string near_nics_in_words(std::size_t all, std::size_t near) {
  return fmt::format("of {} NICs the {} behind the PCIe switch of a GPU {} used", all, near,
                     near == 1 ? "is" : "are");
}

std::string islands_in_words(int largest, int gpus) {
  return fmt::format("NVLinks join at most {} of the {} GPUs, which a node cannot say", largest,
                     gpus);
}

std::string node_document(const ImportedNode& imported, std::string_view source) {
  Json json = {{"trainyard", "node/1"}};
  json.update(node_section().write(imported.node, Keys::said));
  json["source"] = std::string(source);
  if (find_in_catalog("device", imported.device) != nullptr) json["device"] = imported.device;
  return text_of(json);
}

std::string node_summary(const ImportedNode& imported) {
  const Node& node = imported.node;
  const auto gigabytes = [](BytesPerSecond rate) { return rate.value() / 1e9; };
  return fmt::format(
      "{} device{} ({}), {:.4g} GB/s each inside the node · {} NIC{} of {:.4g} Gbit/s",
      node.devices, node.devices == 1 ? "" : "s", imported.device, gigabytes(node.intra.bandwidth),
      node.nics, node.nics == 1 ? "" : "s", 8 * gigabytes(node.nic_bandwidth));
}

}  // namespace trainyard

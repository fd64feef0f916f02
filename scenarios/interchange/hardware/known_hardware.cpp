#include "scenarios/interchange/hardware/known_hardware.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenarios/catalog.h"

namespace trainyard {
namespace {

constexpr BytesPerSecond kNvlink2{25e9};  // NVLink 2 to 4: 25 GB/s a link and direction
constexpr BytesPerSecond kNvlink5{50e9};
constexpr BytesPerSecond kEdr{12.5e9}, kHdr{25e9}, kNdr{50e9}, kXdr{100e9};

// NVIDIA datasheets; pci.ids (pci-ids.ucw.cz) for the device numbers.
constexpr std::array kDevices = {
    KnownDevice{"v100-sxm-32gb", "0x1db5", 70, 8, 6, kNvlink2, kEdr},
    KnownDevice{"a100-sxm-80gb", "0x20b2", 80, 16, 12, kNvlink2, kHdr},
    KnownDevice{"a100-sxm-40gb", "0x20b0", 80, 16, 12, kNvlink2, kHdr},
    KnownDevice{"h100-sxm-80gb", "0x2330", 90, 32, 18, kNvlink2, kNdr},
    KnownDevice{"h200-sxm-141gb", "0x2335", 90, 32, 18, kNvlink2, kNdr},
    KnownDevice{"h800-sxm-80gb", "0x2324", 90, 32, 8, kNvlink2, kHdr},
    KnownDevice{"a800-sxm-80gb", "", 80, 16, 8, kNvlink2, kHdr},
    KnownDevice{"h100-pcie-80gb", "0x2331", 90, 32, 0, {}, kHdr},
    KnownDevice{"h100-nvl-94gb", "0x2321", 90, 32, 0, {}, kHdr},
    KnownDevice{"b200-sxm-180gb", "0x2901", 100, 32, 18, kNvlink5, kNdr},
    KnownDevice{"gb200-192gb", "0x2941", 100, 32, 18, kNvlink5, kNdr},
    KnownDevice{"b300-sxm-288gb", "", 103, 64, 18, kNvlink5, kXdr},
    KnownDevice{"l40s-48gb", "0x26b9", 89, 16, 0, {}, kHdr},
    KnownDevice{"rtx-4090-24gb", "0x2684", 89, 16, 0, {}, kEdr},
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
  // The first that the name holds. Without a name of ours: relatives that the catalog does not
  // have.
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

void choose_device(ImportedNode& imported, const std::optional<NamedDevice>& named,
                   const KnownDevice& guess, std::string_view why) {
  imported.device = named ? named->name : std::string(guess.name);
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
  const KnownDevice* known = known_device(imported.device);
  const Device& device = imported.node.device;
  IntraNode& intra = imported.node.intra;
  intra.kind = IntraNodeKind::pcie;
  intra.bandwidth = device.link_bandwidth;
  std::string_view whose = "the device's link";
  if (known != nullptr && known->nvlinks > 0) {
    constexpr int kLanes = 16;
    intra.bandwidth = pcie_bandwidth(known->pcie_transfers, kLanes);
    whose = "16 lanes of the device's generation";
  } else if (known == nullptr && device.host_bandwidth > BytesPerSecond(0)) {
    intra.bandwidth = device.host_bandwidth;
    whose = "what the device has to its host";
  }
  imported.assumptions.push_back(
      fmt::format("{}: PCIe of {:.4g} GB/s, {}", why, intra.bandwidth.value() / 1e9, whose));
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
  return fmt::format("{} devices ({}), {:.4g} GB/s each inside the node · {} NICs of {:.4g} Gbit/s",
                     node.devices, imported.device, gigabytes(node.intra.bandwidth), node.nics,
                     8 * gigabytes(node.nic_bandwidth));
}

}  // namespace trainyard

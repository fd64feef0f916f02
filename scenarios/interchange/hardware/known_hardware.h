// What a file that describes a machine leaves out, from the datasheets of the devices it can be
// made of: topology files name links and slots, seldom the device.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/fields/documents.h"
#include "scenarios/machine/device_document.h"

namespace trainyard {

struct KnownDevice {
  std::string_view name;         // in the catalog
  std::string_view pci_id;       // PCI device of vendor 10de (pci.ids); empty: not told by it
  int sm = 0;                    // compute capability, as NCCL writes it
  double pcie_transfers = 0;     // GT/s of a lane
  int nvlinks = 0;               // of one device, its link_bandwidth together; 0: PCIe
  BytesPerSecond nic_bandwidth;  // of the NICs it is usually sold with
  int rack = 0;                  // devices that NVLink joins across nodes; 0: it does not
};

// Nearest first where several fit.
const KnownDevice* device_of_pci_id(std::string_view device);
const KnownDevice* device_of_sm(int sm);
const KnownDevice* device_of_links(int nvlinks);
const KnownDevice* device_of_pcie(double transfers);
const KnownDevice* known_device(std::string_view name);
// By what the driver calls it: "NVIDIA H100 80GB HBM3".
std::string_view catalog_name_of_product(std::string_view product);  // empty: not known

// A device as a user names it: a catalog name, a path, or the name inside an inline object.
struct NamedDevice {
  std::string name;
  Device device;
};

// What `--device` names; nothing when it is empty.
Expected<std::optional<NamedDevice>> named_device(const std::string& reference);

// A node that was read from a file, and its device as the file or the user names it.
struct ImportedNode {
  Node node;
  std::string device;
  std::vector<std::string> assumptions;
};

// By the name that it was asked by, or else the one in its document; null: not known.
const KnownDevice* known_device(const ImportedNode& imported);

// Takes the device that the user names, else `guess`, and notes `why` it is that one.
void choose_device(ImportedNode& imported, const std::optional<NamedDevice>& named,
                   const KnownDevice* guess, std::string_view why);

// PCIe's bandwidth per direction: GT/s of a lane, less the line code, by the lanes.
BytesPerSecond pcie_bandwidth(double transfers, int lanes);

// The links of a node without NVLinks among all of its devices, where the file does not say what
// PCIe slots they have: what the device has to its host. Notes `why`. Requires: choose_device().
void assume_pcie(ImportedNode& imported, std::string_view why);
// How a device's NVLinks join devices, where the file leaves them out; nothing: it has none, or
// does not say.
std::optional<IntraNodeKind> nvlink_kind(const ImportedNode& imported);
// Of `links` NVLinks of a device, where devices of the file have up to `most`: as its document has
// it. Notes what that does not say.
BytesPerSecond nvlink_bandwidth(ImportedNode& imported, int links, int most);
// Notes a file that shows less than NVLink joins: a tray of a rack.
void note_rack(ImportedNode& imported);
// Of NVLinks that join only some of the devices (bridges between pairs).
std::string islands_in_words(int largest, int gpus);
std::string fewest_links_in_words(int fewest, int most, bool switched);
// Of NICs elsewhere, which serve storage.
std::string near_nics_in_words(std::size_t all, std::size_t near);

// A node/1 document that names its device.
std::string node_document(const ImportedNode& imported, std::string_view source);
std::string node_summary(const ImportedNode& imported);

}  // namespace trainyard

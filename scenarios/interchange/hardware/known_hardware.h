// Fills in what a file that describes a machine leaves out, from the datasheets of the devices that
// it may be made of: topology files describe links and slots, but seldom name the device.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/fields/documents.h"
#include "scenarios/machine/device_document.h"

namespace trainyard {

struct KnownDevice {
  std::string_view name;      // in the catalog
  std::string_view pci_id;    // PCI device id of vendor 10de (pci.ids); empty: not identified by it
  int sm = 0;                 // compute capability, as NCCL writes it
  double pcie_transfers = 0;  // GT/s of a lane
  int nvlinks = 0;            // of one device, which together have its link_bandwidth; 0: PCIe
  BytesPerSecond nic_bandwidth;  // of the NICs it is usually sold with
  int rack = 0;                  // devices that NVLink joins across nodes; 0: none
};

// The device with this property; the most likely one if several have it; null: not known.
const KnownDevice* device_of_pci_id(std::string_view device);
const KnownDevice* device_of_sm(int sm);
const KnownDevice* device_of_links(int nvlinks);
const KnownDevice* device_of_pcie(double transfers);
const KnownDevice* known_device(std::string_view name);
// The catalog's name of a device that the driver calls "NVIDIA H100 80GB HBM3", say.
std::string_view catalog_name_of_product(std::string_view product);  // empty: not known

// A device as a user names it: by catalog name, path, or the name inside an inline object.
struct NamedDevice {
  std::string name;
  Device device;
};

// The device that `--device` names; none if the reference is empty.
Expected<std::optional<NamedDevice>> named_device(const std::string& reference);

// A node that was read from a file, and the name that the file or the user gives its device.
struct ImportedNode {
  Node node;
  std::string device;
  std::vector<std::string> assumptions;
};

// The known device of that name, else of the name in the device's document; null: not known.
const KnownDevice* known_device(const ImportedNode& imported);

// Takes the device that the user names, else `guess`, and then notes `why` it is that one.
void choose_device(ImportedNode& imported, const std::optional<NamedDevice>& named,
                   const KnownDevice* guess, std::string_view why);

// PCIe bandwidth per direction: `transfers` (GT/s of a lane) less the line code, times the lanes.
BytesPerSecond pcie_bandwidth(double transfers, int lanes);

// For a node without NVLinks: joins all devices by PCIe with the bandwidth that the device has to
// its host, where the file does not say what PCIe slots it has. Notes `why`. Requires:
// choose_device().
void assume_pcie(ImportedNode& imported, std::string_view why);
// How the device's NVLinks join devices, if the file does not say; none: it has no NVLinks, or its
// document does not say.
std::optional<IntraNodeKind> nvlink_kind(const ImportedNode& imported);
// The bandwidth of `links` NVLinks of a device by its document; `most`: the most that any device of
// the file has. Notes what has to be assumed.
BytesPerSecond nvlink_bandwidth(ImportedNode& imported, int links, int most);
// Notes if the file shows only a part of an NVLink domain: a tray of a rack.
void note_rack(ImportedNode& imported);
// A note on NVLinks that join only some of the devices (bridges between pairs), one on devices with
// different numbers of links, and one on NICs that serve storage because they are far from any GPU.
std::string islands_in_words(int largest, int gpus);
std::string fewest_links_in_words(int fewest, int most, bool switched);
std::string near_nics_in_words(std::size_t all, std::size_t near);

// A node/1 document that names its device.
std::string node_document(const ImportedNode& imported, std::string_view source);
std::string node_summary(const ImportedNode& imported);

}  // namespace trainyard

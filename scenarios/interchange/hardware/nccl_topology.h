// NCCL's description of a node: what NCCL_TOPO_DUMP_FILE writes (devices, NVLinks and network ports
// with their speed), or what a cloud provider ships as NCCL_TOPO_FILE (PCI slots only). Elements
// and attributes as NCCL 2.29 reads them (src/graph/xml.cc, src/graph/topo.cc).
//
// Bandwidths are those of the datasheets, links times their rate, not NCCL's cautious constants. If
// the file leaves out NVLinks, port speeds or the device, those of the device that its PCIe
// generation suggests are assumed and noted; a file that names a device which the catalog lacks is
// refused. Of the network ports, those behind the PCIe switch of a GPU belong to the fabric.
#pragma once

#include <filesystem>
#include <string>

#include "scenarios/interchange/documents/foreign_file.h"
#include "scenarios/interchange/hardware/known_hardware.h"
#include "scenarios/interchange/imported.h"

namespace trainyard {

// `device`: none for the one that the file suggests.
Expected<ImportedNode> nccl_topology_node(const ForeignFile& file,
                                          const std::optional<NamedDevice>& device);

Expected<Imported> import_nccl_topology(const std::filesystem::path& file,
                                        const std::string& device);

}  // namespace trainyard

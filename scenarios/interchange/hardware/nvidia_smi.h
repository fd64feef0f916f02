// The matrix that `nvidia-smi topo -m` prints: which links lie between each pair of GPUs, and how
// far each NIC is (NVIDIA System Management Interface documentation, topo). It names neither the
// GPU nor the speed of a NIC; those of the device with as many NVLinks are assumed.
#pragma once

#include <filesystem>
#include <string>

#include "scenarios/interchange/documents/foreign_file.h"
#include "scenarios/interchange/hardware/known_hardware.h"
#include "scenarios/interchange/imported.h"

namespace trainyard {

// `device`: none for the first of the catalog with as many NVLinks.
Expected<ImportedNode> nvidia_smi_node(const ForeignFile& file,
                                       const std::optional<NamedDevice>& device);

Expected<Imported> import_nvidia_smi(const std::filesystem::path& file, const std::string& device);

}  // namespace trainyard

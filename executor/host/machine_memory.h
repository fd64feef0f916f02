// What this machine has for a run.
#pragma once

#include <filesystem>

#include "model/units.h"

namespace trainyard {

// All of its memory, or as much as the container may take that this process is in: memory.max of
// the control groups (Linux, cgroup v2) at `groups`. 0: unknown.
Bytes machine_memory(const std::filesystem::path& groups = "/sys/fs/cgroup");

}  // namespace trainyard

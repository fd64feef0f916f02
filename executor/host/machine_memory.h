// How much memory this machine offers a run.
#pragma once

#include <filesystem>

#include "model/units.h"

namespace trainyard {

// The machine's memory, or the limit of the container that this process is in if that is less:
// memory.max of the control groups (Linux, cgroup v2) at `groups`. 0: unknown.
Bytes machine_memory(const std::filesystem::path& groups = "/sys/fs/cgroup");

}  // namespace trainyard

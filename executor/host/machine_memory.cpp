#include "executor/host/machine_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace trainyard {

Bytes machine_memory(const std::filesystem::path& groups) {
  const auto pages = static_cast<double>(::sysconf(_SC_PHYS_PAGES));
  const auto page = static_cast<double>(::sysconf(_SC_PAGESIZE));
  Bytes memory(std::max(0.0, pages) * std::max(0.0, page));
  std::ifstream limit(groups / "memory.max");  // "max": none
  if (double bytes = 0; limit >> bytes) memory = std::min(memory, Bytes(bytes));
  return memory;
}

}  // namespace trainyard

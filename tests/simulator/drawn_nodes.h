// The catalog's nodes that the agreement laws draw their plans from: those that existed when the
// bounds of the laws were set. Adding a node to the list would change every plan drawn after it.
#pragma once

#include <string>
#include <vector>

#include "scenarios/catalog.h"

namespace trainyard {

inline std::vector<std::string> drawn_nodes() {
  std::vector<std::string> nodes = catalog_names("node");
  std::erase(nodes, "ndmi300xv5");
  return nodes;
}

}  // namespace trainyard

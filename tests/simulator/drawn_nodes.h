// Nodes of the plans that the agreement laws draw: those that the catalog had when the laws' bounds
// were set. With one more every plan of a draw is another.
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

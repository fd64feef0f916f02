// One name, one definition. The namespace is flat, so two headers that each define a `Place`, or an
// inline `mixed(uint64_t)`, compile apart and link together: the linker keeps one of two
// destructors or functions, and nobody is told (the one-definition rule, C++20 [basic.def.odr]/13).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace trainyard {

// One line per second definition in a header: "simulator/graph/playlist.h:14: Place is defined in
// scenarios/fields/place.h too". Looked at are types, and functions that are inline or constexpr,
// the latter told apart by their parameters, that open at the left margin: what is in classes or
// anonymous namespaces is not, nor are templates,
// nor the emulated device's headers. An unreadable tree gives no lines, so a caller
// checks `checked_files`.
struct DefinitionReport {
  int checked_files = 0;
  std::vector<std::string> violations;
};
DefinitionReport check_definitions(const std::filesystem::path& root);

}  // namespace trainyard

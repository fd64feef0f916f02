// Checks the one-definition rule (C++20 [basic.def.odr]/13) on the text of the headers. The project
// has one flat namespace, so two headers that each define a `Place`, or an inline
// `mixed(uint64_t)`, compile apart and link together. The linker then silently keeps one of the two
// functions or destructors.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace trainyard {

// One line per second definition in a header: "simulator/graph/playlist.h:14: Place is defined in
// scenarios/fields/place.h too". The check sees types and functions that begin at the left margin:
// every type, and inline or constexpr functions, which their parameters tell apart. It does not see
// members, anonymous namespaces, templates and the headers of the emulated device. An unreadable
// tree gives no lines, so a caller also checks `checked_files`.
struct DefinitionReport {
  int checked_files = 0;
  std::vector<std::string> violations;
};
DefinitionReport check_definitions(const std::filesystem::path& root);

}  // namespace trainyard

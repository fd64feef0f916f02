// One name, one type. The namespace is flat, so two headers that each define a `Place` compile
// apart and link together: the linker keeps one of two destructors, and nobody is told (the
// one-definition rule, C++20 [basic.def.odr]/13).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace trainyard {

// One line per second definition in a header: "simulator/playlist.h:14: Place is defined in
// scenarios/fields/place.h too". Types of classes and of anonymous namespaces are not looked at:
// only lines that open a type at the left margin are. An unreadable tree gives no lines, so a
// caller checks `checked_files`.
struct TypeReport {
  int checked_files = 0;
  std::vector<std::string> violations;
};
TypeReport check_type_names(const std::filesystem::path& root);

}  // namespace trainyard

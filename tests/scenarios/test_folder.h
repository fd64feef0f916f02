// Files that the tests of scenarios/ read or hold to be current.
#pragma once

#include <filesystem>

namespace trainyard {

inline std::filesystem::path source_folder() { return TRAINYARD_SOURCE_FOLDER; }
inline std::filesystem::path test_folder() { return source_folder() / "tests" / "scenarios"; }

}  // namespace trainyard

// Folders whose files the tests of scenarios/ read, or compare with what the code generates.
#pragma once

#include <filesystem>

namespace trainyard {

inline std::filesystem::path source_folder() { return TRAINYARD_SOURCE_FOLDER; }
inline std::filesystem::path test_folder() { return source_folder() / "tests" / "scenarios"; }

}  // namespace trainyard

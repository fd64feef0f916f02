// What a file that is dropped on the window, or opened in it, is for, by how it begins. Nothing is
// checked here: who opens it says what is wrong with it.
#pragma once

#include <filesystem>

namespace trainyard {

enum class DroppedFile {
  document,       // of the open scenario, or a scenario
  sweep,          // a document of one
  sweep_results,  // of a sweep
  measured_runs,  // a profile, or a list of scenarios that were measured
  trace,
};
DroppedFile dropped_file(const std::filesystem::path& file);

}  // namespace trainyard

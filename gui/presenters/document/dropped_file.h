// Guesses the kind of a file that is dropped on the window or opened in it, from its name and its
// first 64 KiB. Nothing is checked here: the code that opens the file says what is wrong with it.
#pragma once

#include <filesystem>

namespace trainyard {

enum class DroppedFile {
  document,       // a scenario, a part of one, or anything that is not recognised
  sweep,          // a sweep document
  sweep_results,  // the SQLite file with the results of a sweep
  measured_runs,  // a profile, or a list of scenarios with measured times
  trace,
};
DroppedFile dropped_file(const std::filesystem::path& file);

}  // namespace trainyard

// Sweeps and result files that the tests of this folder share, written as users write them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "scenarios/sweep/results/store.h"
#include "scenarios/sweep/run_sweep.h"
#include "scenarios/sweep/sweep.h"

namespace trainyard {

// A folder that only the running test uses.
std::filesystem::path sweep_folder();
std::filesystem::path write_sweep_file(const std::string& name, const std::string& text);

// The scenario of most tests: Llama-3.1-8B on four nodes of eight H100.
std::string base_scenario();
// A sweep over base_scenario(); `keys` is the rest of the document, such as `"vary": […]`.
std::string sweep_text(const std::string& keys);
Expected<Sweep> sweep_from(const std::string& keys);

// overrides_text of every point, in order; "" for a point that the constraints leave out.
std::vector<std::string> all_overrides(const Sweep& sweep);

inline const Session kSession{.version = "1.0", .host = "host", .workers = 1};

// Runs the sweep and stores its answers in a result file, which may exist already.
SweepOutcome run(const Sweep& sweep, const std::filesystem::path& file,
                 const SweepOptions& options = {});

// The rows of table `points`, one line each.
std::string dump(const std::filesystem::path& file);

}  // namespace trainyard

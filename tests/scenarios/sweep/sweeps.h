// Sweeps that tests share, written as users write them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "scenarios/sweep/results/store.h"
#include "scenarios/sweep/run_sweep.h"
#include "scenarios/sweep/sweep.h"

namespace trainyard {

// A folder of this test alone.
std::filesystem::path sweep_folder();
std::filesystem::path write_sweep_file(const std::string& name, const std::string& text);

// The scenario of most tests: Llama-3.1-8B on four nodes of eight H100.
std::string base_scenario();
// A sweep over it; `keys`: the rest of the document, such as `"vary": […]`.
std::string sweep_text(const std::string& keys);
Expected<Sweep> sweep_from(const std::string& keys);

// overrides_text of every point, in order; those that the constraints leave out are "".
std::vector<std::string> all_overrides(const Sweep& sweep);

inline const Session kSession{.version = "1.0", .host = "host", .workers = 1};

// Answers into a result file, new or not.
SweepOutcome run(const Sweep& sweep, const std::filesystem::path& file,
                 const SweepOptions& options = {});

// Everything in table `points`, a line a row.
std::string dump(const std::filesystem::path& file);

}  // namespace trainyard

// A simulation as a trace for ui.perfetto.dev (Chrome's JSON trace format): a process for each
// rank, a track for each of its streams, arrows from sends to receives, counters for memory and for
// the messages under way. It streams into an OutputFile (json/output_file.h).
#pragma once

#include <filesystem>
#include <functional>

#include "model/expected.h"
#include "simulator/step.h"

namespace trainyard {

// `interrupted` is asked now and then: once it is true nothing is left behind, and it is an error.
Expected<void> write_trace(const std::filesystem::path& file, const StepSimulation& simulation,
                           const std::function<bool()>& interrupted);

}  // namespace trainyard

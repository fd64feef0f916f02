// Writes a simulation as a trace for ui.perfetto.dev (Chrome's JSON trace format): a process for
// each rank, a track for each of its streams, arrows from sends to receives, counters for memory
// and for messages under way. It is streamed into an OutputFile (json/output_file.h).
#pragma once

#include <filesystem>
#include <functional>

#include "model/expected.h"
#include "simulator/step.h"

namespace trainyard {

// Once `interrupted`, which is asked now and then, returns true, this fails and leaves no file.
Expected<void> write_trace(const std::filesystem::path& file, const StepSimulation& simulation,
                           const std::function<bool()>& interrupted);

}  // namespace trainyard

// Collectives measured among ranks of their own, which the supervisor starts; what they find stands
// on the board of rank 0.
#pragma once

#include <filesystem>

#include "executor/board.h"
#include "model/calibration/kernel_samples.h"

namespace trainyard {

// In a rank process: measures, for about `budget`.
Expected<void> run_collective_rank(const std::filesystem::path& folder, Seconds budget);
// In the supervisor's, when the ranks are done.
std::vector<CollectiveSample> collective_samples(Board& board, int ranks);

}  // namespace trainyard

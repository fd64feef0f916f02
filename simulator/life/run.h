// Simulates the life of one run, event by event: it trains, takes checkpoints, is interrupted and
// recovers, until its work is done or its calendar ends. The same settings and seed give the same
// life to the nanosecond.
//
// Assumes that any failure stops the whole job, that lost work is repeated at full price, and that
// nodes are alike. A straggler slows the whole job; once detected it is evicted, which restarts the
// job. A job that has shrunk grows back after a checkpoint as soon as a node is repaired. A run
// without a calendar that would take a hundred times its work is given up as soon as that is almost
// certain.
#pragma once

#include <atomic>
#include <cstdint>

#include "simulator/life/accounting.h"
#include "simulator/life/settings.h"

namespace trainyard {

// Once `*interrupted` is true the life ends, unfinished; it is checked at every event.
Life live(const LifeSettings& settings, std::uint64_t seed,
          const std::atomic<bool>* interrupted = nullptr);

// About the most events that simulating one run takes: its checkpoints, and the disturbances until
// its calendar ends or, without one, until it would be given up.
double expected_events(const LifeSettings& settings);
// A run of more events takes longer to simulate than anyone waits.
inline constexpr double kMostEvents = 1e8;

}  // namespace trainyard

// The life of one run, event by event: it trains, checkpoints, is struck, recovers, until its work
// is done or its calendar ends. The same settings and seed give the same life to the nanosecond.
//
// Assumes that any failure stops the whole job, that work lost is done again at full price, and
// that nodes are alike. A run without a calendar that gets on so slowly that it would take a
// hundred times its work is given up as soon as that is sure. A straggler slows the whole job and
// is evicted, with all others, once detected; a job that has shrunk grows back after a checkpoint
// as soon as a node is repaired.
#pragma once

#include <atomic>
#include <cstdint>

#include "simulator/life/accounting.h"
#include "simulator/life/settings.h"

namespace trainyard {

// `interrupted` is asked at every event: once it is true the life ends, unfinished.
Life live(const LifeSettings& settings, std::uint64_t seed,
          const std::atomic<bool>* interrupted = nullptr);

// Checkpoints and, in the time after which it is given up, disturbances of such a run: what
// simulating it costs at most, nearly.
double expected_events(const LifeSettings& settings);
// With more of them, one run takes longer than anyone waits.
inline constexpr double kMostEvents = 1e8;

}  // namespace trainyard

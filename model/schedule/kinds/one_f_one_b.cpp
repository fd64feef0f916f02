// 1F1B (PipeDream-Flush; Narayanan et al. 2021): stage i runs p − i − 1 forward passes ahead, then
// one forward and one backward in turn, so that at most p − i micro-batches are in flight.
#include <algorithm>

#include "model/schedule/span.h"

namespace trainyard::kinds {
namespace {

Expected<void> accepts(PipelineShape shape) { return accepts_one_chunk(shape, "1f1b"); }

int chunks_in_flight(PipelineShape shape, int stage) {
  return std::min(shape.microbatches, shape.stages - stage);
}

PassList passes(PipelineShape shape) {
  PassList list(static_cast<std::size_t>(shape.stages));
  for (int stage = 0; stage < shape.stages; ++stage) {
    std::vector<Pass>& mine = list[static_cast<std::size_t>(stage)];
    const int ahead = chunks_in_flight(shape, stage) - 1;
    for (int i = 0; i < ahead; ++i) mine.push_back({PassKind::forward, i, 0});
    for (int i = 0; i < shape.microbatches; ++i) {
      if (i + ahead < shape.microbatches) mine.push_back({PassKind::forward, i + ahead, 0});
      mine.push_back({PassKind::backward, i, 0});
    }
  }
  return list;
}

// Handbook §8: the largest over j of the time when stage j never waits for another: filling up to
// j, its own m micro-batches, and what of the later stages' work is not hidden behind j's warm-up
// and cool-down passes. (m+p−1)(F+B+W) when stages are equal; within 1.4 % for unlike ones.
Seconds span(PipelineShape shape, std::span<const PassTimes> times) {
  Seconds after;  // Σ T_i, i > j
  for (const PassTimes& stage : times) after += stage.total();
  Seconds before;  // Σ T_i, i < j
  Seconds longest;
  int later_stages = static_cast<int>(times.size());
  for (const PassTimes& stage : times) {
    const Seconds total = stage.total();
    after -= total;
    --later_stages;
    const Seconds exposed_filling = std::max(Seconds(0), after - later_stages * stage.forward);
    const Seconds exposed_draining = std::max(Seconds(0), after - later_stages * stage.backward());
    longest =
        std::max(longest, before + shape.microbatches * total + exposed_filling + exposed_draining);
    before += total;
  }
  return longest;
}

}  // namespace

extern const Schedule one_f_one_b = {
    .name = "1f1b",
    .splits_backward = false,
    .needs_chunks = false,
    .copies_of_parameters = 1,
    .optimizer_barrier = true,
    .accepts = accepts,
    .passes = passes,
    .in_domain = always_in_domain,
    .span = span,
    .chunks_in_flight = chunks_in_flight,
};

}  // namespace trainyard::kinds

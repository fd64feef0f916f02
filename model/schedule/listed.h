// A schedule that a user wrote down: pass lists for one p, v and m, with a descriptor, so that
// everything that takes a schedule takes it. The lists are played once when it is made, so that a
// deadlock or a missing or repeated pass is found there.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/expected.h"
#include "model/schedule/schedule.h"

namespace trainyard {

struct ListedSchedule {
  std::string name;
  PipelineShape shape;  // the only one it accepts
  PassList passes;
  bool optimizer_barrier = true;
  std::vector<int> chunks_in_flight, pairs;  // per stage
  std::vector<int> weight_gradients_at_end, chunks_between_halves;
  std::vector<int> chunks_past_input_gradient;
  Schedule descriptor{};  // shapes that it makes point to this object
};

// The result is never moved: plans share its ownership and point at its descriptor. An error is
// that of the player ("stage 2: backward of micro-batch 0, chunk 0 waits for ever: a deadlock").
Expected<std::shared_ptr<const ListedSchedule>> list_schedule(std::string name, PipelineShape shape,
                                                              PassList passes,
                                                              bool optimizer_barrier);

}  // namespace trainyard

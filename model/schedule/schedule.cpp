#include "model/schedule/schedule.h"

#include <algorithm>

namespace trainyard {

bool is_return(PipelineShape shape, int microbatch) {
  return shape.route == Route::both_ways && microbatch >= shape.microbatches / 2;
}

ChunkPlace place_of(PipelineShape shape, int microbatch, int layer_chunk) {
  const int round = layer_chunk / shape.stages;
  const int step = layer_chunk % shape.stages;
  const int reverse = shape.stages - 1 - step;
  switch (shape.route) {
    case Route::loop:
      break;
    case Route::vee:
      return {round == 0 ? step : reverse, round};
    case Route::both_ways:
      if (is_return(shape, microbatch)) return {reverse, 1};
      break;
  }
  return {step, round};
}

Bytes most_kept(const Schedule& schedule, PipelineShape shape, int stage,
                std::span<const Bytes> of_chunks) {
  const bool alike =
      std::ranges::all_of(of_chunks, [&](Bytes of_chunk) { return of_chunk == of_chunks.front(); });
  if (alike || schedule.most_kept == nullptr) {
    return schedule.chunks_in_flight(shape, stage) * of_chunks.front();
  }
  return schedule.most_kept(shape, stage, of_chunks);
}

const Schedule* find_schedule(std::string_view name) {
  const auto all = schedules();
  const auto found =
      std::find_if(all.begin(), all.end(), [name](const Schedule* s) { return s->name == name; });
  return found == all.end() ? nullptr : *found;
}

}  // namespace trainyard

// A pipeline schedule: for every stage, the ordered list of passes that it runs in one step. A
// schedule is a constant descriptor (a name and pure functions) in a file of its own in
// model/schedule/kinds/. The build generates the table `schedules()` from that folder, so adding a
// schedule is adding a file.
//
// The player, the simulator and the executor all run the same pass list. Closed forms are those of
// handbook §8; they are exact for equal stages and free communication where `in_domain` holds.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "model/expected.h"
#include "model/units.h"

namespace trainyard {

enum class PassKind : std::uint8_t {
  forward,
  backward,         // input and weight gradient in one
  input_gradient,   // B
  weight_gradient,  // W
};

struct Pass {
  PassKind kind = PassKind::forward;
  int microbatch = 0;
  int chunk = 0;  // the stage's own number: 0 … chunks_held − 1
  // A forward pass that runs side by side with the backward pass after it in the list (DualPipe).
  bool paired = false;
  friend bool operator==(const Pass&, const Pass&) = default;
};
using PassList = std::vector<std::vector<Pass>>;  // [stage][position]

// The order in which a micro-batch passes the stages.
enum class Route : std::uint8_t {
  loop,      // from the first stage to the last, v times
  vee,       // to the last stage in chunk 0, back to the first stage in chunk 1 (ZB-V)
  both_ways  // DualPipe: the first half of the micro-batches from the first stage to the last in
             // chunk 0, the other half from the last to the first in chunk 1, a copy of the layers
};

struct ListedSchedule;  // model/schedule/listed.h

// The sizes p, v and m of a step, and its route.
struct PipelineShape {
  int stages = 1;
  int chunks = 1;  // virtual stages v
  int microbatches = 1;
  Route route = Route::loop;
  const ListedSchedule* listed = nullptr;  // a user's own pass list; null: a registered schedule
};

// Where a layer chunk is. Layer chunks are numbered 0 … p·v − 1 in the order in which a micro-batch
// passes them; a stage numbers its own chunks from 0. Example: p = 2, v = 2 on a loop puts layer
// chunk 2 on stage 0 as its chunk 1.
struct ChunkPlace {
  int stage = 0;
  int chunk = 0;  // local
};
inline int layer_chunks(PipelineShape shape) { return shape.stages * shape.chunks; }
inline int chunks_held(PipelineShape shape) {  // by a stage, DualPipe's copies counted
  return shape.route == Route::both_ways ? 2 * shape.chunks : shape.chunks;
}
bool is_return(PipelineShape shape, int microbatch);  // goes from the last stage to the first
ChunkPlace place_of(PipelineShape shape, int microbatch, int layer_chunk);
inline int layer_chunk_of(PipelineShape shape, ChunkPlace place) {
  const bool backwards = shape.route != Route::loop && place.chunk == 1;
  const int step = backwards ? shape.stages - 1 - place.stage : place.stage;
  return shape.route == Route::both_ways ? step : place.chunk * shape.stages + step;
}

// Duration of one stage's passes for one micro-batch, in all chunks that it visits: F, B and W of
// handbook §8.
struct PassTimes {
  Seconds forward, input_gradient, weight_gradient;
  Seconds hidden;  // saved when a forward runs beside a backward pass: F&B = F + B + W − hidden
  Seconds backward() const { return input_gradient + weight_gradient; }
  Seconds total() const { return forward + backward(); }
  // Adds F, B and W of `others`, `times` times each; `hidden` stays as it is.
  PassTimes& add(const PassTimes& others, double times = 1) {
    forward += others.forward * times;
    input_gradient += others.input_gradient * times;
    weight_gradient += others.weight_gradient * times;
    return *this;
  }
};

inline int one_at_end(PipelineShape /*shape*/, int /*stage*/) { return 1; }
inline int no_pairs(PipelineShape /*shape*/, int /*stage*/) { return 0; }
inline int none_between_halves(PipelineShape /*shape*/, int /*stage*/) { return 0; }

struct Schedule {
  std::string_view name;  // as documents spell it: "1f1b"
  bool splits_backward;   // uses input_gradient and weight_gradient passes
  bool needs_chunks;      // made for v > 1
  Route route;
  bool optimizer_barrier;  // true: all stages wait before the optimizer; false: steps follow each
                           // other at one span (handbook §8)
  const ListedSchedule* listed = nullptr;
  // Whether the schedule can run this shape at all. The error names the nearest legal value of the
  // offending key ("/plan/virtual_stages", "/plan/micro_batch", …).
  Expected<void> (*accepts)(PipelineShape shape);
  // Makes the shapes that all functions below take.
  PipelineShape shape(int stages, int chunks, int microbatches) const {
    return {stages, chunks, microbatches, route, listed};
  }
  // Requires: accepts(shape).
  PassList (*passes)(PipelineShape shape);
  // Closed forms of longest_span and makespan below, which do not allocate; null: the pass list is
  // played. Exact for equal stages where `in_domain` holds, else handbook §8's approximation.
  bool (*in_domain)(PipelineShape shape, PassTimes times) = nullptr;
  Seconds (*closed_span)(PipelineShape shape, std::span<const PassTimes> times) = nullptr;
  Seconds (*closed_makespan)(PipelineShape shape, std::span<const PassTimes> times) = nullptr;
  // r of handbook §8, 0 … 1: the share of every other stage's passes of one micro-batch that
  // lengthens the span while the pipeline fills and drains: span ≈ m·max T + (ΣT − max T)·r. The
  // planner deals unlike layers to stages by it. Null: under this schedule it does not.
  double (*fill)(PipelineShape shape, PassTimes times) = nullptr;
  // Number of forward-backward pairs that `stage` runs side by side.
  int (*pairs)(PipelineShape shape, int stage) = no_pairs;
  // Number of weight-gradient passes that end the list of `stage` with no other pass between them,
  // at least 1. Registered schedules with several chunks or copies on a stage return 1: each
  // chunk's gradients are reduced after its own last pass.
  int (*weight_gradients_at_end)(PipelineShape shape, int stage) = one_at_end;
  // Most chunks of `stage` that are at one time between the start of their input-gradient pass and
  // the end of their weight-gradient pass, if these are separate passes. What was recomputed or
  // gathered for the first pass stays for the second.
  int (*chunks_between_halves)(PipelineShape shape, int stage) = none_between_halves;
  // Most chunks whose activations `stage` keeps at once; a chunk has L/(p·v) layers.
  int (*chunks_in_flight)(PipelineShape shape, int stage);
  // A lower bound of how many of those are past their input-gradient pass and no longer keep what
  // only that pass reads: chunks_in_flight minus the most that are before it at once.
  int (*chunks_past_input_gradient)(PipelineShape shape, int stage) = none_between_halves;
  // The most bytes that a stage keeps at once, if a micro-batch keeps `of_chunks[c]` in chunk c: a
  // sum along the pass list. Null: a stage has one chunk.
  Bytes (*most_kept)(PipelineShape shape, int stage, std::span<const Bytes> of_chunks) = nullptr;
};

// The most bytes of activations that `stage` keeps at once, if a micro-batch keeps `of_chunks[c]`
// in chunk c. If all chunks keep alike, that is chunks_in_flight times one of them.
// Requires: as many entries as the stage holds chunks.
Bytes most_kept(const Schedule& schedule, PipelineShape shape, int stage,
                std::span<const Bytes> of_chunks);

// Whether the backward passes of a pipeline with `stages` stages are split into input and weight
// gradient. A single stage waits for nobody, so software runs it without a pipeline and delays no
// weight gradient; a user's own pass list is run as it is.
inline bool splits_backward(const Schedule& schedule, int stages) {
  return schedule.splits_backward && (stages > 1 || schedule.listed != nullptr);
}

// The longest span of any stage, with free communication. `times` has an entry for each stage, or,
// if the chunks of a stage differ, one for each chunk, those of a stage one after the other. Equal
// stages give handbook §8's table.
Seconds longest_span(const Schedule& schedule, PipelineShape shape,
                     std::span<const PassTimes> times);
// From zero to the end of the last pass: the step under an optimizer barrier. It equals the longest
// span of every schedule whose stage 0 has that span.
Seconds makespan(const Schedule& schedule, PipelineShape shape, std::span<const PassTimes> times);

// All registered schedules, sorted by file name (generated table).
std::span<const Schedule* const> schedules();
const Schedule* find_schedule(std::string_view name);  // nullptr: no schedule has that name

}  // namespace trainyard

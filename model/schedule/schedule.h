// A pipeline schedule: for every stage the ordered list of passes it runs in one step. A schedule
// is a constant descriptor (name and pure functions), one file each in model/schedule/kinds/; the
// build generates the table `schedules()` from that folder, so adding a schedule is adding a file.
//
// The same pass list feeds the player, the simulator and the executor; the closed forms are those
// of handbook §8, for equal stages and free communication within `in_domain`.
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
  int chunk = 0;  // local: 0 … chunks_held − 1
  // A forward pass that runs beside the backward pass behind it in the list (DualPipe).
  bool paired = false;
  friend bool operator==(const Pass&, const Pass&) = default;
};
using PassList = std::vector<std::vector<Pass>>;  // [stage][position]

// The way of a micro-batch through the stages.
enum class Route : std::uint8_t {
  loop,      // from the first stage to the last, v times
  vee,       // to the last stage in chunk 0 and back in chunk 1 (ZB-V)
  both_ways  // the first half of the micro-batches from the first stage to the last in chunk 0, the
             // other half from the last to the first in chunk 1, a copy of the layers (DualPipe)
};

struct ListedSchedule;  // model/schedule/listed.h

// p, v and m of a step.
struct PipelineShape {
  int stages = 1;
  int chunks = 1;  // virtual stages v
  int microbatches = 1;
  Route route = Route::loop;
  const ListedSchedule* listed = nullptr;  // where the pass list is a user's own
};

// Chunks of layers, numbered in the order in which a micro-batch passes them, and where they are.
struct ChunkPlace {
  int stage = 0;
  int chunk = 0;  // local
};
inline int layer_chunks(PipelineShape shape) { return shape.stages * shape.chunks; }
inline int chunks_held(PipelineShape shape) {  // by a stage
  return shape.route == Route::both_ways ? 2 * shape.chunks : shape.chunks;
}
bool is_return(PipelineShape shape, int microbatch);  // it goes from the last stage to the first
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
  Seconds hidden;  // of F + B + W, when a forward pass runs beside a backward pass: F&B is the rest
  Seconds backward() const { return input_gradient + weight_gradient; }
  Seconds total() const { return forward + backward(); }
  // F, B and W of other passes, so many times; what is hidden is the whole's own.
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
  bool needs_chunks;      // v > 1 is what it is for
  Route route;
  bool optimizer_barrier;  // false: steps follow each other at one span (handbook §8)
  const ListedSchedule* listed = nullptr;
  // Whether it can run this shape at all; the error names the nearest legal value of the offending
  // key ("/plan/virtual_stages", "/plan/micro_batch", …).
  Expected<void> (*accepts)(PipelineShape shape);
  // The functions below take shapes that this one made.
  PipelineShape shape(int stages, int chunks, int microbatches) const {
    return {stages, chunks, microbatches, route, listed};
  }
  // Requires: accepts(shape).
  PassList (*passes)(PipelineShape shape);
  // Closed forms of longest_span and makespan below, which do not allocate; null: the pass list is
  // played instead. Exact for equal stages in the domain, else the approximation of handbook §8.
  bool (*in_domain)(PipelineShape shape, PassTimes times) = nullptr;
  Seconds (*closed_span)(PipelineShape shape, std::span<const PassTimes> times) = nullptr;
  Seconds (*closed_makespan)(PipelineShape shape, std::span<const PassTimes> times) = nullptr;
  // What a stage shows of each other one while the pipeline fills and drains, 0 … 1 of its passes
  // of one micro-batch: handbook §8's r, by which planners deal unlike layers to stages. Null: they
  // deal none under this schedule.
  double (*fill)(PipelineShape shape, PassTimes times) = nullptr;
  // Pairs of a forward and a backward pass that `stage` runs side by side.
  int (*pairs)(PipelineShape shape, int stage) = no_pairs;
  // Weight gradients that end the list of `stage`, with no other pass between them: at least 1. Not
  // counted where a stage has several chunks or copies: their reductions follow each chunk.
  int (*weight_gradients_at_end)(PipelineShape shape, int stage) = one_at_end;
  // Most chunks of `stage` whose input gradient has begun and whose weight gradient has not ended,
  // where those are passes of their own: what was repeated or fetched for the one stays for the
  // other.
  int (*chunks_between_halves)(PipelineShape shape, int stage) = none_between_halves;
  // Most chunk activations alive at once on `stage`, in chunks of L/(p·v) layers.
  int (*chunks_in_flight)(PipelineShape shape, int stage);
  // At least so many of these have had their input gradient and no longer keep what it alone reads:
  // `chunks_in_flight` less the most that are alive at once before theirs.
  int (*chunks_past_input_gradient)(PipelineShape shape, int stage) = none_between_halves;
  // The most that the chunks alive at once keep, `of_chunks[c]` of each micro-batch in chunk c: a
  // sum over the pass list. Null: a stage has one chunk.
  Bytes (*most_kept)(PipelineShape shape, int stage, std::span<const Bytes> of_chunks) = nullptr;
};

// The most that the activations alive at once on `stage` take, in bytes, where a micro-batch keeps
// `of_chunks[c]` in chunk c. Chunks that keep alike: as many as are in flight.
// Requires: as many entries as the stage holds chunks.
Bytes most_kept(const Schedule& schedule, PipelineShape shape, int stage,
                std::span<const Bytes> of_chunks);

// Whether passes of `stages` stages come in halves. One stage waits for nobody: software runs it
// without a pipeline, and nothing is put off; a user's own list is run as it is.
inline bool splits_backward(const Schedule& schedule, int stages) {
  return schedule.splits_backward && (stages > 1 || schedule.listed != nullptr);
}

// Longest span with unlike stages (`times[i]` of stage i; or of unlike chunks, those that a stage
// holds one after the other), free communication; equal stages give handbook §8's table.
Seconds longest_span(const Schedule& schedule, PipelineShape shape,
                     std::span<const PassTimes> times);
// From zero to the end of the last pass: the step under an optimizer barrier. The same for every
// schedule whose stage 0 has the longest span.
Seconds makespan(const Schedule& schedule, PipelineShape shape, std::span<const PassTimes> times);

// All registered schedules, sorted by file name (generated table).
std::span<const Schedule* const> schedules();
const Schedule* find_schedule(std::string_view name);  // nullptr: none of that name

}  // namespace trainyard

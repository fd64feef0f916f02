#include "model/cost/chunk_passes.h"

#include <span>

namespace trainyard {
namespace {

void add(const PassTimes& unit, double times, PassTimes& sum) {
  sum.forward += unit.forward * times;
  sum.input_gradient += unit.input_gradient * times;
  sum.weight_gradient += unit.weight_gradient * times;
}

PassTimes layers_of(const PreparedJob& job, const LayersOfChunks& layers, int chunk,
                    const UnitPasses& units) {
  PassTimes sum;
  if (job.only_kind) {
    add(units.layers[static_cast<std::size_t>(index_of(*job.only_kind))], layers[chunk], sum);
    return sum;
  }
  const LayerCounts counts = job.layers_between(layers.before(chunk), layers[chunk]);
  for (std::size_t kind = 0; kind < counts.size(); ++kind) {
    if (counts[kind] > 0) add(units.layers[kind], counts[kind], sum);
  }
  return sum;
}

}  // namespace

void append_chunk_passes(const PreparedJob& job, const Plan& plan, int stage,
                         const UnitPasses& units, const PassTimes& all,
                         std::vector<PassTimes>& out) {
  const PipelineShape shape = pipeline_shape(plan);
  const LayersOfChunks layers(plan, job.job.model.layers);
  const auto held = static_cast<std::size_t>(chunks_held(shape));
  const double share = 1.0 / shape.chunks;
  const double met = shape.chunks / static_cast<double>(held);  // by one micro-batch
  out.resize(out.size() + held);
  const std::span<PassTimes> chunks = std::span(out).last(held);
  PassTimes sum;
  for (std::size_t chunk = 0; chunk < held; ++chunk) {
    const int position = layer_chunk_of(shape, {stage, static_cast<int>(chunk)});
    PassTimes& own = chunks[chunk];
    own = layers_of(job, layers, position, units);
    if (position == 0) add(units.embedding, 1, own);
    if (position == layer_chunks(shape) - 1) add(units.head, 1, own);
    add(own, 1, sum);
  }
  PassTimes rest = all;
  add(sum, -met, rest);
  for (PassTimes& own : chunks) {
    add(rest, share, own);
    own.hidden = all.hidden * share;
  }
}

}  // namespace trainyard

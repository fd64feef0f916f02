#include "model/cost/chunk_passes.h"

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
  const std::size_t first = out.size();
  const int held = chunks_held(shape);
  const double met = static_cast<double>(shape.chunks) / held;  // by one micro-batch
  PassTimes rest = all;
  for (int chunk = 0; chunk < held; ++chunk) {
    const int position = layer_chunk_of(shape, {stage, chunk});
    PassTimes own = layers_of(job, layers, position, units);
    if (position == 0) add(units.embedding, 1, own);
    if (position == layer_chunks(shape) - 1) add(units.head, 1, own);
    add(own, -met, rest);
    own.hidden = all.hidden / shape.chunks;
    out.push_back(own);
  }
  for (std::size_t i = first; i < out.size(); ++i) add(rest, 1.0 / shape.chunks, out[i]);
}

}  // namespace trainyard

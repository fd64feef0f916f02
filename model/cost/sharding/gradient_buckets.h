// Buckets of gradients: which of a chunk's units (layers, ends) are reduced in one message, and
// gathered in one after a sharded update (Stack::bucket_parameters). The program and the estimate
// cut chunks by the same rule.
#pragma once

#include "model/cost/sharding/stage_parameters.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "model/schedule/schedule.h"
#include "model/workload/training.h"

namespace trainyard {

// Whether units move in buckets: gradients and updated weights once a step, beside the passes.
// Where weights or gradients lie outside the device each unit has copies of its own and is one.
bool uses_buckets(const Training& training, const Plan& plan);

// Whether the embedding, or the head, is in no bucket with layers: where another stage holds a copy
// of its matrix, whose gradient is added to it.
struct EndsApart {
  bool embedding = false, head = false;
};
EndsApart ends_apart(const Transformer& model, const Plan& plan);

// A bucket of this chunk takes in units, from the chunk's last one on, until it has so many
// parameters of a rank, dense ones and experts' each in buckets of their own; infinity: all.
double bucket_limit(const Stack& stack, const Plan& plan, ChunkPlace place);

// A chunk of like layers, by parameters of a rank; 0: the chunk does not have this end.
struct ChunkParameters {
  double embedding = 0, layer = 0, head = 0;
  int layers = 0;
  EndsApart apart;
};
// Its buckets in the order of a backward pass: that with the head, full ones, and the last one, for
// what is left. Example: a head of 30, five layers of 20 and a limit of 40: the head and one layer,
// twice two layers.
struct BucketedChunk {
  int with_head = 0;       // layers in the head's bucket
  int each = 1, full = 0;  // layers of a full bucket, and how many of those there are
  int rest = 0;            // layers of the last one
  bool one = false;        // the head's bucket has all of the chunk
  int messages = 0;
};
BucketedChunk bucketed(const ChunkParameters& chunk, double limit);

// Without a pipeline a schedule's chunks follow each other as one.
int chunks_with_passes(const Plan& plan);

// The chunk's buckets on a stage, of dense parameters or of experts, its layers alike.
BucketedChunk buckets_of_chunk(const PreparedJob& job, const Plan& plan,
                               const StageParameters& stage, int chunk, bool experts);

}  // namespace trainyard

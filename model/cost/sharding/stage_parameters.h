// Parameters that one rank of a stage holds before ZeRO shards them, dense and expert apart: they
// are reduced and sharded over different groups (handbook §1, §2, §12.1).
#pragma once

#include <vector>

#include "model/job.h"
#include "model/plan/plan.h"

namespace trainyard {

struct LayersSideBySide {
  double larger = 0, smaller = 0;
  bool operator==(const LayersSideBySide&) const = default;
};

struct StageParameters {
  double dense = 0;
  double experts = 0;
  double largest_layer = 0;  // dense and experts: what ZeRO-3 gathers at a time
  // The two that have the most together of those next to each other in a chunk; nothing where each
  // is alone.
  LayersSideBySide side_by_side;
  double tied_embedding = 0;  // the part whose gradient first and last stage must add up
  // Of `dense`; a tied one is the embedding's, and a copy of that for MTP layers is the head's.
  double embedding_matrix = 0, head_matrix = 0, final_norm = 0;
  double of_ends() const { return embedding_matrix + head_matrix + final_norm; }
  bool embedding = false, head = false;  // whether the stage holds the first, the last chunk
  int layers = 0;
  LayerCounts kinds{};  // layers of each kind on the stage

  bool operator==(const StageParameters&) const = default;
};

// One entry a stage; `out` keeps its capacity, so that a second call allocates nothing.
void stage_parameters(const PreparedJob& job, const Plan& plan, std::vector<StageParameters>& out);

}  // namespace trainyard

// Parameters that one rank of a stage holds before ZeRO shards them. Dense and expert parameters
// are counted apart because they are reduced and sharded over different groups (handbook §1, §2,
// §12.1).
#pragma once

#include <vector>

#include "model/job.h"
#include "model/plan/plan.h"

namespace trainyard {

// Parameters of two consecutive layers.
struct LayersSideBySide {
  double larger = 0, smaller = 0;
  bool operator==(const LayersSideBySide&) const = default;
};

struct StageParameters {
  double dense = 0;
  double experts = 0;
  double largest_layer = 0;  // dense and experts: what ZeRO-3 gathers at a time
  // The two consecutive layers of a chunk that have the most parameters together; 0 where every
  // chunk has one layer.
  LayersSideBySide side_by_side;
  double tied_embedding = 0;  // the part whose gradient first and last stage must add up
  // Included in `dense`. A tied matrix on a stage with both ends counts as embedding_matrix; the
  // last stage's copy of the embedding, for a tied head or for MTP layers, as head_matrix.
  double embedding_matrix = 0, head_matrix = 0, final_norm = 0;
  double of_ends() const { return embedding_matrix + head_matrix + final_norm; }
  bool embedding = false, head = false;  // whether the stage holds the first, the last chunk
  int layers = 0;
  LayerCounts kinds{};  // layers of each kind on the stage

  bool operator==(const StageParameters&) const = default;
};

// Fills one entry a stage. `out` keeps its capacity, so that a second call allocates nothing.
void stage_parameters(const PreparedJob& job, const Plan& plan, std::vector<StageParameters>& out);

}  // namespace trainyard

// What the operations of a program take on a device: each is a part of an operator of the network
// (model/workload/operators.h) and has one of its three times (model/cost/compute.h), so that the
// program and the analytic estimate price the same kernels. A reader prices a block once, not each
// of its calls.
#pragma once

#include <array>
#include <vector>

#include "model/cost/compute.h"
#include "model/cost/sharding/data_parallel.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "model/program/program.h"
#include "model/units.h"

namespace trainyard {

class OperationPrices {
 public:
  // Requires: both outlive it.
  OperationPrices(const PreparedJob& job, const Plan& plan);

  // Kernel time on this rank; 0 for communication, whose time is the network's. The norm and the
  // update of the optimizer read and write each parameter of the rank's part once, in the memory
  // that has the states; the update of a layer's whole matrices (Muon) has its products beside
  // that. Copies take what the link to the host takes.
  Seconds of(const Program& program, const Block& block, const Operation& operation) const;

 private:
  struct Priced {
    LayerKind layer;
    bool in_layer = false;  // else at an end of the network
    Operator op;
    OperatorTime time;
    OperatorTime casts;  // of it: the casts before a GEMM of 8 or 4 bits
  };
  const Priced* find(LayerKind kind, OperatorKind part) const;
  static Seconds kernel_time(const Priced& priced, const Operation& operation);
  Seconds update_time(const Program& program, const Block& block, const Operation& update) const;

  const PreparedJob& job_;
  BytesPerSecond updates_at_;
  std::array<OrthogonalisationTime, kLayerKinds> orthogonalisation_{};
  std::vector<Priced> priced_;
};

}  // namespace trainyard

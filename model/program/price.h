// The time of a program's operations on a device. Each operation is a part of an operator of the
// network (model/workload/operators.h) and has one of that operator's three times
// (model/cost/compute.h). So the program and the analytic estimate price the same kernels. A reader
// of the program prices a block once, not each of its calls.
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

  // Kernel time on this rank; 0 for communication, which the network's model prices. Gradient norm
  // and optimizer update read and write each parameter of this rank's part once, at the bandwidth
  // of the memory that holds the states; Muon's update of a layer adds its matrix products. A copy
  // takes its bytes over the bandwidth of the link to the host.
  Seconds of(const Program& program, const Block& block, const Operation& operation) const;

 private:
  struct Priced {
    LayerKind layer;
    bool in_layer = false;  // false: an operator of the embedding or the head
    Operator op;
    OperatorTime time;
    OperatorTime casts;  // the part of `time` that casts the inputs of a GEMM of 8 or 4 bits
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

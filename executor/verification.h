// Checks that a sharded program computes what the unsharded one does: trains the same network on
// one rank with the same arithmetic, and compares every number of gradients and weights with every
// rank that holds it. A number that no rank holds, or that is NaN, counts as a difference too.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "executor/rank_executor.h"
#include "executor/transport/transport.h"

namespace trainyard {

// An unsharded tensor, row by row.
struct WholeTensor {
  std::int64_t columns = 1;
  std::vector<float> numbers;
};
using WholeTensors = std::map<TensorName, WholeTensor>;

struct UnshardedRun {
  std::vector<double> losses, gradient_norms;  // by step
  // The first step whose gradient did not overflow (executor/loss_scale.h); `gradients` are of that
  // step.
  std::size_t first_taken = 0;
  double first_norm() const { return gradient_norms[first_taken]; }
  WholeTensors gradients;
  WholeTensors weights;  // after the last step
};

// How many steps are run, and on which batches.
struct StepPlan {
  int steps = 1;
  bool same_batch = false;  // every step sees the first batch
};

// The network of `setting` on one rank, one sequence a micro-batch; with a capacity factor the
// plan's micro-batch. It drops the tokens that the ranks of the plan drop.
Setting unsharded(const Setting& setting);
Expected<UnshardedRun> run_unsharded(const Setting& setting, const StepPlan& steps, Watch& watch);
// To bytes and back: rank 0 sends the run to the others.
std::string packed(const UnshardedRun& run);
UnshardedRun unpacked(std::string_view bytes);

// How far apart two runs may be, as fractions: `tensor` of a gradient's norm and `weight` of a
// weight's norm, or `global` of the global gradient norm where that allows more; `loss` of the
// loss; `norm` of the gradient norm.
struct Tolerance {
  double tensor = 1e-5;
  double weight = 1e-5;
  double global = 1e-6;
  double loss = 1e-5;
  double norm = 1e-5;
};
// fp32 has the defaults above. bf16 and fp16 round to 8 or 11 bits after every operation, and each
// plan does so in another order. Where experts' scores come of such other sums (of tensor-,
// context- or expert-parallel ranks, or of larger micro-batches), the order may decide a near tie,
// so that other tokens reach an expert and its gradient changes visibly. Where GEMMs cast to 8
// bits, such a rounding moves one number in some thirty to the next one of e4m3, an eighth away,
// and one in sixteen to the next one of e5m2, a quarter away.
Tolerance tolerance_of(const Setting& setting);

// The share() of a difference in which a number is missing or NaN.
inline constexpr double kNoShare = 1e30;

struct Difference {
  std::string what;  // "gradient of mlp up weight of layer 3", "loss"
  double error = 0;  // norm of the difference, less what compare() lets a weight be off
  double allowed = 0;
  std::int64_t unknown = 0;  // numbers that no rank holds
  // Whether every number is known and is neither NaN nor infinite.
  bool is_finite() const { return unknown == 0 && error < kNoShare; }
  bool holds() const { return is_finite() && error <= allowed; }
  double share() const { return is_finite() ? error / allowed : kNoShare; }
};

enum class Compared { gradients, weights };

// Collective over all ranks; each brings what it holds, all get the same list. Where the gradient
// is next to zero, Adam turns noise into whole steps: such a weight may be off by another
// 2·rate·steps.
struct TensorComparison {
  const Setting& setting;
  const Program& program;
  const Holdings& holdings;
  Transport& transport;
  const UnshardedRun& expected;
  Watch& watch;  // told of each tensor
  int steps = 1;
};
Expected<std::vector<Difference>> compare(const TensorComparison& with, Compared what,
                                          const std::vector<HeldTensor>& held);
Difference scalar_difference(const std::string& what, double found, double expected,
                             double tolerance);

}  // namespace trainyard

// The proof that a sharded program does what the unsharded one does: the same network on one rank,
// with the same arithmetic, and every number of gradients and weights compared with the ranks that
// hold it. A number that no rank holds, or that is none, is a difference too.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "executor/rank_executor.h"
#include "executor/transport/transport.h"

namespace trainyard {

// Whole tensors, row by row.
struct WholeTensor {
  std::int64_t columns = 1;
  std::vector<float> numbers;
};
using WholeTensors = std::map<TensorName, WholeTensor>;

struct UnshardedRun {
  std::vector<double> losses, gradient_norms;  // by step
  // The first whose gradient did not overflow (executor/loss_scale.h): of it are the gradients.
  std::size_t first_taken = 0;
  double first_norm() const { return gradient_norms[first_taken]; }
  WholeTensors gradients;
  WholeTensors weights;  // after the last one
};

// How steps follow each other, and what is kept of them.
struct StepPlan {
  int steps = 1;
  bool same_batch = false;  // every step sees the first batch
};

// The plan of `setting` on one rank, a sequence a micro-batch; drops the tokens that its ranks do.
Setting unsharded(const Setting& setting);
Expected<UnshardedRun> run_unsharded(const Setting& setting, const StepPlan& steps, Watch& watch);
// To and from bytes, for the other ranks.
std::string packed(const UnshardedRun& run);
UnshardedRun unpacked(std::string_view bytes);

// How far apart two runs may be: of a gradient's norm, of a weight's, of the global norm where that
// is more, of the loss and of the gradient norm itself.
struct Tolerance {
  double tensor = 1e-5;
  double weight = 1e-5;
  double global = 1e-6;
  double loss = 1e-5;
  double norm = 1e-5;
};
// fp32: the above. bf16, fp16: rounding to 8 or 11 bits after every operation, in another order on
// every plan. Where that order decides which experts a token goes to (scores that nearly tie,
// summed by several ranks), a tensor has other tokens in it. Where GEMMs cast, such a rounding also
// takes one number in some thirty over to the next that e4m3 has, an eighth away, and one in
// sixteen to that of e5m2, a quarter away.
Tolerance tolerance_of(const Setting& setting);

// In the place of a share of what is allowed, where there is a number that no rank has or that is
// none.
inline constexpr double kNoShare = 1e30;

struct Difference {
  std::string what;  // "gradient of mlp up weight of layer 3", "loss"
  double error = 0;  // norm of the difference
  double allowed = 0;
  std::int64_t unknown = 0;  // numbers that no rank has
  // Whether each is a number wherever it ought to be known, an overflow not among them.
  bool is_finite() const { return unknown == 0 && error < kNoShare; }
  bool holds() const { return is_finite() && error <= allowed; }
  double share() const { return is_finite() ? error / allowed : kNoShare; }
};

enum class Compared { gradients, weights };

// Collective over all ranks, each with what it holds; all get the list. Adam turns noise into whole
// steps where there is next to no gradient: there a weight may be off by 2·rate·steps more.
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

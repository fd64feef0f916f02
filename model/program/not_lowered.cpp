#include "model/program/not_lowered.h"

#include <string_view>

#include "model/cost/memory.h"

namespace trainyard {
namespace {

struct Gap {
  std::string_view where, what;
  bool (*present)(const Training& training, const Plan& plan);
};

// Ring attention adds up blocks by the log-sum-exp of a fused kernel's rows: a score matrix in
// memory has none, and no software runs one so. The others want operations that do not exist yet:
// weights and gradients that come and go with every pass.
constexpr Gap kGaps[] = {
    {"/plan/context_parallel", "ring attention without a fused kernel",
     [](const Training& t, const Plan& p) {
       return p.context_parallel > 1 && !t.stack.flash_attention &&
              p.context_parallel_algorithm == ContextAlgorithm::ring;
     }},
    {"/plan/offload", "weights or gradients outside the device",
     [](const Training&, const Plan& p) {
       return p.offload.parameters != OffloadTarget::none ||
              p.offload.gradients != OffloadTarget::none;
     }},
    {"/plan/offload/optimizer",
     "the optimizer outside the device where its master weights are the stack's only weights",
     [](const Training& t, const Plan& p) {
       return !keeps_weights(t, p) && p.offload.optimizer != OffloadTarget::none;
     }},
};

}  // namespace

std::optional<Error> not_lowered(const Training& training, const Plan& plan) {
  for (const Gap& gap : kGaps) {
    if (gap.present(training, plan)) {
      return Error{std::string(gap.where), "not lowered yet: " + std::string(gap.what)};
    }
  }
  return std::nullopt;
}

}  // namespace trainyard

#include "model/program/not_lowered.h"

#include <string_view>

#include "model/cost/memory.h"

namespace trainyard {
namespace {

struct Gap {
  std::string_view where, what;
  bool (*present)(const Transformer& model, const Training& training, const Plan& plan);
};

// Ring attention adds up blocks by the log-sum-exp of a fused kernel's rows: a score matrix in
// memory has none, and no software runs one so. The others want operations that do not exist yet:
// weights and gradients that come and go with every pass.
constexpr Gap kGaps[] = {
    {"/plan/context_parallel", "ring attention without a fused kernel",
     [](const Transformer&, const Training& t, const Plan& p) {
       return p.context_parallel > 1 && !t.stack.flash_attention &&
              p.context_parallel_algorithm == ContextAlgorithm::ring;
     }},
    {"/plan/recompute",
     "recomputation of every second GEMM of layers with experts or latent attention",
     [](const Transformer& m, const Training& t, const Plan& p) {
       return recomputes(p, RecomputeMode::selective) &&
              t.stack.selective == SelectiveRecompute::every_second_matmul &&
              (m.experts > 0 || m.latent_attention);
     }},
    {"/plan/offload", "weights or gradients outside the device",
     [](const Transformer&, const Training&, const Plan& p) {
       return p.offload.parameters != OffloadTarget::none ||
              p.offload.gradients != OffloadTarget::none;
     }},
    {"/plan/offload/optimizer",
     "the optimizer outside the device where its master weights are the stack's only weights",
     [](const Transformer&, const Training& t, const Plan& p) {
       return !keeps_weights(t, p) && p.offload.optimizer != OffloadTarget::none;
     }},
};

}  // namespace

std::optional<Error> not_lowered(const Transformer& model, const Training& training,
                                 const Plan& plan) {
  for (const Gap& gap : kGaps) {
    if (gap.present(model, training, plan)) {
      return Error{std::string(gap.where), "not lowered yet: " + std::string(gap.what)};
    }
  }
  return std::nullopt;
}

}  // namespace trainyard

#include "model/program/not_lowered.h"

#include <string_view>

namespace trainyard {
namespace {

struct Gap {
  std::string_view where, what;
  bool (*present)(const Training& training, const Plan& plan);
};

// Ring attention adds up blocks by the log-sum-exp of a fused kernel's rows: a score matrix in
// memory has none, and no software runs one so.
constexpr Gap kGaps[] = {
    {"/plan/context_parallel", "ring attention without a fused kernel",
     [](const Training& t, const Plan& p) {
       return p.context_parallel > 1 && !t.stack.flash_attention &&
              p.context_parallel_algorithm == ContextAlgorithm::ring;
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

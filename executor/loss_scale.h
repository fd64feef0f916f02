// The factor by which the loss is multiplied before a backward pass in fp16, so that gradients are
// not lost below fp16's least number (Micikevicius et al. 2018, §3.2). It is dynamic, with the
// defaults of PyTorch's torch.amp.GradScaler: a step whose gradient is not finite is left out and
// halves the factor; 2000 steps in a row without one double it. Every rank sees the same norm of
// the whole gradient, so all ranks decide alike. Without an optimizer barrier the update does not
// wait for the norm and nothing detects an overflow: the factor then stays as it is.
#pragma once

#include "executor/setting.h"

namespace trainyard {

class LossScale {
 public:
  explicit LossScale(const Setting& setting)
      : adapts_(scales_loss(setting) && setting.plan.optimizer_barrier),
        value_(scales_loss(setting) ? setting.descent.loss_scale : 1) {}

  // A power of two if it started as one; 1 for recipes whose gradients need none.
  double value() const { return value_; }
  // Adapts the factor for the next step to the norm that this step has found. True: this step's
  // update is left out.
  bool update(double squared_norm);

 private:
  bool adapts_;
  double value_;
  int good_steps_ = 0;
};

}  // namespace trainyard

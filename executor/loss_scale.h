// The factor between the loss and what a backward pass in fp16 starts from, so that gradients are
// not lost below fp16's least number (Micikevicius et al. 2018, §3.2). Dynamic: a step whose
// gradient is not finite is left out and halves it, 2000 steps in a row without one double it, as
// PyTorch's torch.amp.GradScaler does with its defaults. Every rank sees the same norm of the whole
// gradient, so all of them decide alike. Where the update does not wait for the norm (no optimizer
// barrier) nothing says that a step overflowed: the factor stays.
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
  // By the norm that a step has found, for the step after it. True: the step is left out.
  bool update(double squared_norm);

 private:
  bool adapts_;
  double value_;
  int good_steps_ = 0;
};

}  // namespace trainyard

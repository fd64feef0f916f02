#include "executor/loss_scale.h"

#include <cmath>

namespace trainyard {

bool LossScale::update(double squared_norm) {
  constexpr int kGrowthInterval = 2000;
  if (!adapts_) return false;
  if (!std::isfinite(squared_norm)) {
    value_ /= 2;
    good_steps_ = 0;
    return true;
  }
  if (++good_steps_ == kGrowthInterval) {
    value_ *= 2;
    good_steps_ = 0;
  }
  return false;
}

}  // namespace trainyard

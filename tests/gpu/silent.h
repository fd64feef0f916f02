// A watch of a rank that nobody looks at.
#pragma once

#include "executor/rank_executor.h"

namespace trainyard {

class Silent final : public Watch {
  void begins(std::int64_t, const IssuedOperation&) override {}
};

}  // namespace trainyard

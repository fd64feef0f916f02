// A watch of a rank that ignores every report.
#pragma once

#include "executor/rank_executor.h"

namespace trainyard {

class Silent final : public Watch {
  void begins(std::int64_t, const IssuedOperation&) override {}
};

}  // namespace trainyard

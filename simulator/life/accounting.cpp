#include "simulator/life/accounting.h"

namespace trainyard {

std::string_view name_of(Spent kind) {
  static constexpr std::array<std::string_view, kSpentKinds> kNames = {
      "useful", "checkpoint", "lost_work", "detection", "diagnosis",   "rescheduling",
      "start",  "load",       "warm_up",   "waiting",   "maintenance", "degraded"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace trainyard

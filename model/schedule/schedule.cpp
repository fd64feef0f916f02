#include "model/schedule/schedule.h"

#include <algorithm>

namespace trainyard {

const Schedule* find_schedule(std::string_view name) {
  const auto all = schedules();
  const auto found =
      std::find_if(all.begin(), all.end(), [name](const Schedule* s) { return s->name == name; });
  return found == all.end() ? nullptr : *found;
}

}  // namespace trainyard

#include "planner/group_watch.h"

#include <algorithm>

namespace trainyard {

void GroupWatch::start_way() {
  const int ways_left = all_ways_ - ways_++;
  end_of_way_ = elapsed() + (options_.time_limit - elapsed()) / ways_left;
}

bool GroupWatch::is_over(double done) {
  if (options_.progress) report(done);
  const bool late = options_.time_limit > Seconds(0) && elapsed() >= end_of_way_;
  stopped_ = stopped_ || late || interrupted();
  return late || interrupted();
}

SearchOptions GroupWatch::search_options() const {
  SearchOptions options{.space = options_.space,
                        .base = {.layers_per_stage = options_.layers_per_stage},
                        .objective = options_.objective,
                        .top = 1,
                        .interrupted = options_.interrupted,
                        .valuation = options_.valuation,
                        .second = options_.second};
  // Of a limit that is over there is a little left: 0 would be none.
  constexpr Seconds kLeast(1e-3);
  if (options_.time_limit > Seconds(0)) {
    options.time_limit = std::max(kLeast, end_of_way_ - elapsed());
  }
  if (options_.progress) options.progress = [this](double done) { report(done); };
  return options;
}

}  // namespace trainyard

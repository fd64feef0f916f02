#include "planner/heterogeneous/group_watch.h"

#include "planner/heterogeneous/value.h"

namespace trainyard {

void GroupWatch::start_way() {
  const int ways_left = all_ways_ - ways_++;
  end_of_way_ = watch_.elapsed() + (options_.time_limit - watch_.elapsed()) / ways_left;
}

bool GroupWatch::is_over(double done) {
  if (options_.progress) report(done);
  const bool late = options_.time_limit > Seconds(0) && watch_.elapsed() >= end_of_way_;
  stopped_ = stopped_ || late || interrupted();
  return late || interrupted();
}

GroupSearchOptions GroupWatch::options_for_rest() const {
  GroupSearchOptions rest = options_;
  if (rest.time_limit > Seconds(0)) rest.time_limit = left_until(rest.time_limit, watch_.elapsed());
  return rest;
}

SearchOptions GroupWatch::search_options() const {
  SearchOptions options{.space = options_.space,
                        .base = {.layers_per_stage = options_.layers_per_stage},
                        .objective = options_.objective,
                        .top = 1,
                        .interrupted = options_.interrupted,
                        .valuation = options_.valuation,
                        .second = options_.second};
  if (options_.time_limit > Seconds(0)) {
    options.time_limit = left_until(end_of_way_, watch_.elapsed());
  }
  // This holds where all groups wait for the slowest, too: the value of the pacemaker's own plan is
  // no higher than theirs. It does not hold for memory, of which a search of one cluster counts the
  // bytes, and this one the share.
  if (is_at_least_step(options_.objective)) options.worth = options_.worth;
  if (options_.progress) options.progress = [this](double done) { report(done); };
  return options;
}

}  // namespace trainyard

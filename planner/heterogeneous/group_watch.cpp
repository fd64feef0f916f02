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
  // Where all wait for the slowest too: its own value is no higher than theirs. Of memory a search
  // of one cluster takes the bytes, and this one their share.
  if (is_at_least_step(options_.objective)) options.worth = options_.worth;
  if (options_.progress) options.progress = [this](double done) { report(done); };
  return options;
}

}  // namespace trainyard

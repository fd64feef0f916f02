// Says when a search of the ways to use unlike groups stops: its time limit is shared out evenly
// among the ways that are left.
#pragma once

#include "model/interrupted.h"
#include "planner/heterogeneous/groups.h"
#include "planner/planner.h"
#include "planner/time_limit.h"

namespace trainyard {

class GroupWatch {
 public:
  GroupWatch(const GroupSearchOptions& options, int ways) : options_(options), all_ways_(ways) {}

  void start_way();
  // Whether the search of this way is to end. `done`: the fraction of it that was looked at.
  bool is_over(double done);
  void stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }
  const GroupSearchOptions& options() const { return options_; }

  // Options for a search of one cluster that takes the whole of this way.
  SearchOptions search_options() const;
  // Options for a further search, with the time that is left.
  GroupSearchOptions options_for_rest() const;

 private:
  bool interrupted() const { return is_set(options_.interrupted); }
  void report(double done) const { options_.progress((ways_ - 1 + done) / all_ways_); }

  const GroupSearchOptions& options_;
  const int all_ways_;
  const Stopwatch watch_;
  Seconds end_of_way_;
  int ways_ = 0;
  bool stopped_ = false;
};

}  // namespace trainyard

// What more searches tell beside an answer that is there: the worth of a little more of each
// resource and whether fewer nodes are faster, or ways out where nothing fits. They run while the
// improvement goes one step after the other, which leaves processors idle.
#pragma once

#include <atomic>
#include <future>
#include <string>

#include "planner/findings/findings.h"
#include "planner/planner.h"
#include "scenarios/question.h"

namespace trainyard {

class AddedSearches {
 public:
  // Begins. `question` outlives this.
  AddedSearches(const Question& question, SearchOptions options, const SearchResult& result);
  // Waits for the end, showing progress. Of searches that were stopped nothing is taken.
  void take(PlanFindings& findings);

 private:
  std::string what_;
  std::atomic<double> done_ = 0;
  std::future<PlanFindings> found_;  // last: it uses the others, and waits for its end
};

}  // namespace trainyard

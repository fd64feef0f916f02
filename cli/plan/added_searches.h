// Further searches for an answer that is already found. If a plan fits: what a little more of each
// resource is worth, and whether fewer nodes are faster; else: changes that would let a plan fit.
// They run in the background while the plan is improved step by step, which leaves processors idle.
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
  // Starts the searches. Requires: `question` outlives this object.
  AddedSearches(const Question& question, SearchOptions options, const SearchResult& result);
  // Waits for the end with a progress bar and adds what was found; nothing if the searches were
  // stopped.
  void take(PlanFindings& findings);

 private:
  std::string what_;
  std::atomic<double> done_ = 0;
  // last: the search uses the others, and its destructor waits for it
  std::future<PlanFindings> found_;
};

}  // namespace trainyard

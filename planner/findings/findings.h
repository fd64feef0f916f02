// The answers that come with the plans of a search: what baselines cost, why not another plan, what
// a little more of each resource is worth, and ways out where nothing fits. Plain values: the
// command fills them, text and JSON show them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/findings/marginal.h"
#include "planner/findings/notes.h"
#include "planner/findings/ways_out.h"
#include "planner/improvement.h"
#include "planner/planner.h"

namespace trainyard {

// A key of a plan that is held at one value.
struct PinnedKey {
  std::string key;    // its long name
  std::string value;  // as it was given
};

// The best plan with some keys pinned, or why there is none.
struct Explained {
  std::vector<PinnedKey> pinned;
  std::optional<Candidate> candidate;  // the best of them; if none fits, the closest to fitting
  std::string reason;                  // why there is no candidate
  std::vector<std::string> notes;      // such as pinned keys that have no effect on it
};

// A plan as people make it without a planner.
struct PlanBaseline {
  std::string_view name;
  std::optional<Candidate> candidate;  // nothing: not legal for this job
  std::string reason;                  // why it is not legal or does not fit; empty: it does
};

// The document of a plan that was written.
struct WrittenPlan {
  std::string file;
  bool improved = false;  // the improved plan; else the first of the list
};

struct PlanFindings {
  std::vector<PlanBaseline> baselines;
  std::vector<MarginalValue> marginal;  // empty: nothing fits, or the search was stopped
  std::vector<WayOut> ways_out;         // when nothing fits
  std::optional<WayOut> fewer_nodes;    // when these are faster than all
  std::optional<Explained> explained;   // when it was asked for
  std::optional<Improvement> improvement;
  std::vector<PlanNote> notes;
  std::optional<WrittenPlan> written;
  bool cut_short = false;  // by a time limit or an interruption, after a search that was complete

  // Whether the improved plan fits; it may do so where no plan of the search does.
  bool improvement_fits() const { return improvement && improvement->candidate.estimate.feasible; }
};

}  // namespace trainyard

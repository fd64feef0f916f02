// What people ask of a search beside its plans: what the plans they know would cost, why not this
// one, what a little more of each resource is worth, and ways out where nothing fits. Values: the
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

// A key of a plan held fast.
struct PinnedKey {
  std::string key;    // its long name
  std::string value;  // as it was given
};

// The best plan with some keys pinned, or why there is none.
struct Explained {
  std::vector<PinnedKey> pinned;
  std::optional<Candidate> candidate;  // the best of them; one that does not fit when none does
  std::string reason;                  // without a candidate
  std::vector<std::string> notes;      // what was pinned and has no effect on it, and the like
};

// What people do without a planner.
struct PlanBaseline {
  std::string_view name;
  std::optional<Candidate> candidate;  // nothing: not legal for this job
  std::string reason;                  // why it is not, or does not fit; empty: it is and does
};

// The document that was asked for.
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

  // Of a search of which nothing does, too.
  bool improvement_fits() const { return improvement && improvement->candidate.estimate.feasible; }
};

}  // namespace trainyard

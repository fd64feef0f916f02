// Answers one point of a sweep on one thread: by an estimate, a simulation, a plan search, the life
// of a run or a run on hardware. A point that cannot be answered gets a row with the reason, also
// where memory runs out.
#pragma once

#include <optional>
#include <utility>

#include "planner/planner.h"
#include "scenarios/sweep/point_reader.h"
#include "scenarios/sweep/results/point_row.h"
#include "scenarios/sweep/run_sweep.h"

namespace trainyard {

// Fills in the figures of an estimate, and whether the plan fits.
void fill_row(const PreparedJob& job, const Scenario& settings, const Candidate& candidate,
              PointRow& row);

// Rows that refuse every point of a lease, for the reason `why`.
AnsweredLease refused_lease(const Sweep& sweep, Lease lease, const std::string& why);

class PointAnswerer {
 public:
  // Requires: `sweep` outlives this. `runner` is needed for "evaluate": "run" only.
  explicit PointAnswerer(const Sweep& sweep, Runner runner = nullptr)
      : sweep_(sweep), runner_(std::move(runner)), reader_(std::in_place, sweep) {}

  // False: the constraints exclude the point, and `row` is to be dropped.
  bool answer(std::int64_t point, PointRow& row);

 private:
  void answer_asked(PointRow& row);
  void give_up(const char* why, PointRow& row);
  Expected<void> run(PointRow& row) const;

  const Sweep& sweep_;
  Runner runner_;
  std::optional<PointReader> reader_;  // never empty; replaced after a failure
  std::vector<SweepValue> values_;
  Candidate candidate_;  // reused, so that an estimate allocates nothing
};

}  // namespace trainyard

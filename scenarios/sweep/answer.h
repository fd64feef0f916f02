// Answers one point of a sweep: estimate, simulation, plan search, the life of a run or a run on
// hardware, on one thread. What cannot be answered is a row too, with the reason; so is what throws
// for want of memory.
#pragma once

#include <optional>
#include <utility>

#include "planner/planner.h"
#include "scenarios/sweep/point_reader.h"
#include "scenarios/sweep/results/point_row.h"
#include "scenarios/sweep/run_sweep.h"

namespace trainyard {

// Figures and verdict of an estimate.
void fill_row(const PreparedJob& job, const Scenario& settings, const Candidate& candidate,
              PointRow& row);

// Of points that nobody can answer.
AnsweredLease refused_lease(const Sweep& sweep, Lease lease, const std::string& why);

class PointAnswerer {
 public:
  // Refers to `sweep`. `runner` is for sweeps of runs.
  explicit PointAnswerer(const Sweep& sweep, Runner runner = nullptr)
      : sweep_(sweep), runner_(std::move(runner)), reader_(std::in_place, sweep) {}

  // False: the constraints leave the point out, and `row` is not to be kept.
  bool answer(std::int64_t point, PointRow& row);

 private:
  void answer_asked(PointRow& row);
  void give_up(const char* why, PointRow& row);
  Expected<void> run(PointRow& row) const;

  const Sweep& sweep_;
  Runner runner_;
  std::optional<PointReader> reader_;  // always there
  std::vector<SweepValue> values_;
  Candidate candidate_;  // used again and again, so that an estimate allocates nothing
};

}  // namespace trainyard
